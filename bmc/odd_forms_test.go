package bmc

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"ingot/model"
	"ingot/model/must"
)

func TestAbsoluteLinks(t *testing.T) {
	for name, tt := range map[string]struct{ of, doc, want string }{
		"of the root":                       {"/redfish/v1/", `{"Systems":{"@odata.id":"Systems"}}`, `{"Systems":{"@odata.id":"/redfish/v1/Systems"}}`},
		"of a member, from the parent":      {"/redfish/v1/Systems", `{"Members":[{"@odata.id": "Systems/1"}]}`, `{"Members":[{"@odata.id": "/redfish/v1/Systems/1"}]}`},
		"of a member, from the collection":  {"/redfish/v1/Systems", `{"Members":[{"@odata.id":"1"}]}`, `{"Members":[{"@odata.id":"/redfish/v1/Systems/1"}]}`},
		"of a member, with a slash":         {"/redfish/v1/Systems/", `{"Members":[{"@odata.id":"1"}]}`, `{"Members":[{"@odata.id":"/redfish/v1/Systems/1"}]}`},
		"of an action":                      {"/redfish/v1/Systems/1", `{"target":"1/Actions/Reset"}`, `{"target":"/redfish/v1/Systems/1/Actions/Reset"}`},
		"up":                                {"/redfish/v1/Systems/1", `{"@odata.id":"../Chassis/1"}`, `{"@odata.id":"/redfish/v1/Chassis/1"}`},
		"without a slash in front":          {"/redfish/v1/", `{"@odata.id":"redfish/v1/Systems"}`, `{"@odata.id":"/redfish/v1/Systems"}`},
		"that are absolute are kept":        {"/redfish/v1/", `{"@odata.id":"/redfish/v1/Systems","Name":"target"}`, `{"@odata.id":"/redfish/v1/Systems","Name":"target"}`},
		"that name a host are kept":         {"/redfish/v1/", `{"@odata.id":"https://h/redfish/v1/Systems"}`, `{"@odata.id":"https://h/redfish/v1/Systems"}`},
		"within the document are kept":      {"/redfish/v1/", `{"@odata.id":"#/Fans/0"}`, `{"@odata.id":"#/Fans/0"}`},
		"that are no links are not touched": {"/redfish/v1/", `{"@odata.id":5,"target":null,"@odata.id":""}`, `{"@odata.id":5,"target":null,"@odata.id":""}`},
	} {
		if got := string(absolute([]byte(tt.doc), &url.URL{Path: tt.of})); got != tt.want {
			t.Errorf("%s: got %s, want %s", name, got, tt.want)
		}
	}
}

// rewritten serves the fake's answers after a change of their text.
func rewritten(f *fake, change func(path, body string) string) {
	f.answers(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodGet {
			return false
		}
		f.answers(nil)
		rec := httptest.NewRecorder()
		f.ServeHTTP(rec, r)
		rewritten(f, change)
		w.WriteHeader(rec.Code)
		io.WriteString(w, change(r.URL.Path, rec.Body.String()))
		return true
	})
}

// Forms that the specification does not have, and that lose nothing.
func TestOddForms(t *testing.T) {
	for name, change := range map[string]func(path, body string) string{
		"NUL after the document": func(_, body string) string { return body + "\x00\x00 \n" },
		"UUID with NUL behind it": func(_, body string) string {
			return strings.ReplaceAll(body, `823347823834"`, `823347823834\u0000\u0007x"`)
		},
		"UUID as a URN": func(_, body string) string { return strings.ReplaceAll(body, `"38947555-`, `"urn:uuid:38947555-`) },
		"links from the root": func(path, body string) string {
			return onlyAt(path, "/redfish/v1/", body, `"/redfish/v1/Systems"`, `"Systems"`)
		},
		"members by their names": func(path, body string) string {
			return onlyAt(path, "/redfish/v1/Systems", body, `"`+sysURI+`"`, `"1"`)
		},
		"members from the parent": func(path, body string) string {
			return onlyAt(path, "/redfish/v1/Systems", body, `"`+sysURI+`"`, `"Systems/1"`)
		},
		"links of a system to it":  func(path, body string) string { return onlyAt(path, sysURI, body, `"`+sysURI+`/Pro`, `"1/Pro`) },
		"target of a reset, alike": func(path, body string) string { return onlyAt(path, sysURI, body, `"`+sysURI+`/Act`, `"1/Act`) },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t, plain)
			delete(f.resources["/redfish/v1/"], "ProtocolFeaturesSupported")
			rewritten(f, change)
			p := newPool(t, Options{})
			facts := must.Get(p.Discover(t.Context(), f.target()))(t)
			s := machine(f)
			if len(facts.Systems) != 1 || facts.Systems[0].URI != s.URI || facts.Systems[0].UUID != s.UUID {
				t.Fatalf("got %+v", facts)
			}
			inv := must.Get(p.Inventory(t.Context(), s))(t).Inventory
			if len(inv.Processors) != 1 || len(inv.Problems) > 0 {
				t.Errorf("got %+v", inv)
			}
			must.Get(p.Reset(t.Context(), s, model.ResetOn, ""))(t)
			if power := must.Get(p.Power(t.Context(), s))(t); power != model.PowerOn {
				t.Errorf("the machine is %s", power)
			}
		})
	}
}

func onlyAt(path, at, body, old, text string) string {
	if path != at {
		return body
	}
	return strings.ReplaceAll(body, old, text)
}

// A collection that is empty where it is expanded, though it counts members, is read without that for an hour.
func TestExpandedAndEmpty(t *testing.T) {
	f, now := newFake(t, plain), newClock()
	f.answers(func(w http.ResponseWriter, r *http.Request) bool {
		if !r.URL.Query().Has("$expand") {
			return false
		}
		json.NewEncoder(w).Encode(object{"Members": []any{}, "Members@odata.count": 1})
		return true
	})
	p := newPool(t, Options{Clock: now.Now})
	for _, want := range []int{1, 0, 1} { // expanded requests for the systems
		f.requests()
		facts := must.Get(p.Discover(t.Context(), f.target()))(t)
		n := counted(f.requests(), "GET /redfish/v1/Systems?$expand=.($levels=1)")
		if len(facts.Systems) != 1 || n != want {
			t.Errorf("%d systems with %d expanded requests, want %d", len(facts.Systems), n, want)
		}
		now.add(plainFor / 2)
	}
}

func TestBMCWithAZone(t *testing.T) {
	loop := must.Get(net.InterfaceByName("lo"))(t)
	listener, err := net.Listen("tcp6", "[fe80::1%lo]:0")
	if err != nil {
		t.Logf("NOT TESTED by a connection: %s has no link-local address", loop.Name)
	} else {
		listener.Close()
	}
	p := newPool(t, Options{Networks: model.BMCNetworks{{Prefix: netip.MustParsePrefix("fe80::/10")}}})
	_, err = p.Discover(t.Context(), model.BMCTarget{Name: "b", Scheme: "https", Address: "[fe80::1%lo]:1", Username: "u"})
	if !errors.Is(err, ErrUnreachable) || strings.Contains(err.Error(), "invalid URL") {
		t.Errorf("got %v, want an attempt to connect", err)
	}
}

func TestNothingShown(t *testing.T) {
	for power, want := range map[string][]string{
		"Off": nil,
		"On":  {"the BMC shows no processor", "the BMC shows no memory"},
	} {
		f := newFake(t, plain)
		f.resources[sysURI]["PowerState"] = power
		for _, part := range []string{"Processors", "Memory", "MemorySummary"} {
			delete(f.resources[sysURI], part)
		}
		p := newPool(t, Options{})
		if got := must.Get(p.Inventory(t.Context(), f.system1()))(t).Inventory.Problems; !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", power, got, want)
		}
	}
}

func TestDrivesOfTheChassis(t *testing.T) {
	f := newFake(t, plain)
	f.resources[sysURI]["Storage"] = nil
	f.resources[sysURI]["Links"].(object)["Chassis"] = []any{linked("/redfish/v1/Chassis/1")}
	f.resources["/redfish/v1/Chassis/1"] = object{
		"Id": "1", "Name": "Chassis", "Drives": linked("/redfish/v1/Chassis/1/Drives"),
		"Links": object{"ComputerSystems": []any{linked(sysURI)}},
	}
	f.resources["/redfish/v1/Chassis/1/Drives"] = listed("/redfish/v1/Chassis/1/Drives/1")
	f.resources["/redfish/v1/Chassis/1/Drives/1"] = object{"Id": "1", "Name": "Drive 1", "SerialNumber": "S1"}
	p := newPool(t, Options{})
	inv := must.Get(p.Inventory(t.Context(), f.system1()))(t).Inventory
	if len(inv.Storages) != 1 || len(inv.Storages[0].Drives) != 1 || inv.Storages[0].Drives[0].SerialNumber != "S1" {
		t.Errorf("got %+v, problems %q", inv.Storages, inv.Problems)
	}
}

// An override that is never kept is written in all variants, and then after growing pauses.
func TestOverrideThatIsNeverKept(t *testing.T) {
	f, now := newFake(t, plain), newClock()
	f.store = func(string, object) int { return http.StatusBadRequest }
	p := newPool(t, Options{Clock: now.Now})
	writes := func() int {
		f.requests()
		_, err := p.BootOnce(context.Background(), f.system1(), model.BootPXE)
		if !errors.Is(err, ErrOverrideNotKept) {
			t.Errorf("got %v", err)
		}
		return len(slices.DeleteFunc(f.requests(), func(r string) bool { return !strings.HasPrefix(r, http.MethodPatch) }))
	}
	all := writes()
	var got []int
	for _, pause := range []time.Duration{time.Minute, refusedPause, refusedPause, refusedPause} {
		now.add(pause)
		got = append(got, writes())
	}
	if want := []int{0, all, 0, all}; all == 0 || !slices.Equal(got, want) {
		t.Errorf("got %v writes, want %v", got, want)
	}
}

// An override that was set for a restart which the machine does not support is cleared.
func TestOverrideOfAnUnsupportedRestart(t *testing.T) {
	f := newFake(t, plain)
	f.resources[sysURI]["Actions"].(object)["#ComputerSystem.Reset"].(object)["ResetType@Redfish.AllowableValues"] = []any{"On", "ForceOff"}
	p := newPool(t, Options{})
	must.Get(p.BootOnce(t.Context(), f.system1(), model.BootPXE))(t)
	if _, err := p.Reset(t.Context(), f.system1(), model.ResetForceRestart, ""); !errors.Is(err, ErrUnsupported) || !NotCarriedOut(err) {
		t.Errorf("got %v, want what is certain to have changed nothing", err)
	}
	if boot := f.resources[sysURI]["Boot"].(object); boot["BootSourceOverrideEnabled"] != "Disabled" {
		t.Errorf("the override is %v", boot)
	}
}
