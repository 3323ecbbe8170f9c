package bmc

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ingot/model"
	"ingot/model/must"
)

// okError is an error that is served with 200.
const okError = `{"error": {"code": "Base.1.0.GeneralError", "message": "A general error.",
	"@Message.ExtendedInfo": [{"MessageId": "Base.1.0.InternalError", "Message": "Try again."}]}}`

// says has the fake answer GETs of a path with 200 and a body.
func (f *fake) says(path, body string) {
	f.answers(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodGet || r.URL.Path != path || path != "/redfish/v1/" && !f.knows(r) {
			return false
		}
		w.Write([]byte(body))
		return true
	})
}

// An answer that shows no machines is believed only if it says that there are none.
func TestDiscoverBelievesNoHalfAnswer(t *testing.T) {
	const systems = "/redfish/v1/Systems"
	tests := map[string]struct {
		path, body string
		want       string // in the error; "" = it is believed
	}{
		"an error that is served with 200": {path: systems, body: okError, want: "A general error. Try again."},
		"null":                             {path: systems, body: "null", want: "no JSON object"},
		"nothing":                          {path: systems, body: "", want: "no JSON object"},
		"a collection without Members": {
			path: systems, body: `{"Name": "Systems", "Members@odata.count": 0}`, want: "no Members",
		},
		"a collection whose Members are null": {path: systems, body: `{"Name": "Systems", "Members": null}`, want: "no Members"},
		"fewer members than there are": {
			path: systems, body: `{"Name": "Systems", "Members": [], "Members@odata.count": 1}`,
			want: "shows 0 of 1 members",
		},
		"a member in which there is but an error": {
			path: systems, body: `{"Name": "Systems", "Members": [` + okError + `], "Members@odata.count": 1}`,
			want: "shows 0 of 1 members",
		},
		"a collection that says that it is empty": {
			path: systems, body: `{"Name": "Systems", "Members": [], "Members@odata.count": 0}`, want: "",
		},
		"a service root that is an error":   {path: "/redfish/v1/", body: okError, want: "A general error. Try again."},
		"a service root that is null":       {path: "/redfish/v1/", body: "null", want: "not a Redfish service root"},
		"a service root that leads nowhere": {path: "/redfish/v1/", body: `{"Name": "Root"}`, want: "not a Redfish service root"},
		"further pages that say nothing of a page": {
			path: systems,
			body: `{"Name": "Systems", "Members": [], "Members@odata.count": 1, "Members@odata.nextLink": "` + systems + `/more"}`,
			want: "404",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFake(t, plain)
			f.says(tt.path, tt.body)
			got, err := newPool(t, Options{}).Discover(context.Background(), f.target())
			switch {
			case tt.want == "" && (err != nil || len(got.Systems) != 0):
				t.Errorf("got %+v, %v; want that there are none", got, err)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("got %+v, %v; want an error that says %q", got, err, tt.want)
			}
		})
	}
}

// Members may come on several pages, of which each says how many there are in all.
func TestCountIsOfAllPages(t *testing.T) {
	f := newFake(t, plain)
	f.expand = false
	f.resources["/redfish/v1/Systems"] = object{
		"Name": "Systems", "Members": []any{}, "Members@odata.count": 1, "Members@odata.nextLink": "/redfish/v1/Systems2",
	}
	f.resources["/redfish/v1/Systems2"] = object{"Name": "Systems", "Members": []any{object{"@odata.id": sysURI}}, "Members@odata.count": 1}
	got, err := newPool(t, Options{}).Discover(context.Background(), f.target())
	if err != nil || len(got.Systems) != 1 {
		t.Errorf("got %+v, %v; want one system", got, err)
	}
}

// A system that is listed and cannot be read is there, whoever it is.
func TestDiscoverKeepsWhatCannotBeRead(t *testing.T) {
	answers := map[string]func(w http.ResponseWriter){
		"an error that is served with 200": func(w http.ResponseWriter) { w.Write([]byte(okError)) },
		"500": func(w http.ResponseWriter) {
			fail(w, http.StatusInternalServerError, "Base.1.0.InternalError")
		},
		"a list": func(w http.ResponseWriter) { w.Write([]byte("[]")) },
	}
	for name, answer := range answers {
		t.Run(name, func(t *testing.T) {
			f := newFake(t, plain)
			f.expand = false
			f.answers(func(w http.ResponseWriter, r *http.Request) bool {
				if r.URL.Path != sysURI || !f.knows(r) {
					return false
				}
				answer(w)
				return true
			})
			got := must.Get(newPool(t, Options{}).Discover(context.Background(), f.target()))(t)
			want := []model.SystemFact{{URI: sysURI, Power: model.PowerUnknown, Unread: true}}
			if diff := cmp.Diff(want, got.Systems); diff != "" || len(got.Problems) != 1 {
				t.Errorf("systems (-want +got):\n%s\nproblems %q", diff, got.Problems)
			}
		})
	}
}

// A power state is read from a machine's resource, and from nothing else.
func TestPowerBelievesNoError(t *testing.T) {
	for name, body := range map[string]string{"an error that is served with 200": okError, "null": "null", "a list": "[]"} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t, plain)
			f.says(sysURI, body)
			got, err := newPool(t, Options{}).Power(context.Background(), f.system1())
			if e := asError(err); err == nil || e == nil {
				t.Errorf("got %q, %v; want an error", got, err)
			}
		})
	}
	t.Run("that asks to come back later is a BMC that is busy", func(t *testing.T) {
		f := newFake(t, plain)
		f.says(sysURI, strings.Replace(okError, "InternalError", "ServiceTemporarilyUnavailable", 1))
		if _, err := newPool(t, Options{}).Power(context.Background(), f.system1()); !errors.Is(err, ErrBusy) {
			t.Errorf("got %v", err)
		}
	})
}

// A part that is served as an error is no part without a name.
func TestInventoryBelievesNoError(t *testing.T) {
	const drive = sysURI + "/Storage/RAID/Drives/0"
	f := newFake(t, plain)
	f.expand = false
	f.says(drive, okError)
	got := must.Get(newPool(t, Options{}).Inventory(context.Background(), f.system1()))(t)
	if n := len(got.Inventory.Storages[0].Drives); n != 1 || !strings.Contains(strings.Join(got.Inventory.Problems, "\n"), drive) {
		t.Errorf("%d drives, problems %q; want one drive, and the other named", n, got.Inventory.Problems)
	}
}

// A power state is what it says in any case of letters; what is none is unknown, and not
// taken for one.
func TestPowerStatesAreReadInAnyCase(t *testing.T) {
	for state, want := range map[any]model.Power{
		"ON": model.PowerOn, "off": model.PowerOff, " Off ": model.PowerOff, "poweringOn": model.PowerPoweringOn,
		"": model.PowerUnknown, "Standby": model.PowerUnknown, nil: model.PowerUnknown, 1: model.PowerUnknown, true: model.PowerUnknown,
	} {
		f := newFake(t, plain)
		f.resources[sysURI]["PowerState"] = state
		got, err := newPool(t, Options{}).Power(context.Background(), f.system1())
		if got != want || err != nil {
			t.Errorf("%#v is %s, %v; want %s", state, got, err, want)
		}
	}
}
