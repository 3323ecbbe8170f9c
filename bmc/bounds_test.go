package bmc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"ingot/model/must"
)

func listOf(entry string, n int) string {
	return "[" + strings.TrimSuffix(strings.Repeat(entry+",", n), ",") + "]"
}

func allocated(do func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// What a BMC sends compressed in a few KiB does not keep a core busy for minutes.
func TestRepairIsBounded(t *testing.T) {
	for name, list := range map[string]string{
		"of values that are left out":          listOf("1", 30_000),
		"of values that can be repaired":       listOf(`"/redfish/v1/Managers/1"`, 30_000),
		"of values that fit, but for one":      listOf(`{"@odata.id":"/x"}`, 30_000)[:1] + "1," + listOf(`{"@odata.id":"/x"}`, 30_000)[1:],
		"of values that are large, one by one": listOf(`{"@odata.id":[`+strings.Repeat(" ", 1<<17)+`1]}`, 100),
	} {
		t.Run(name, func(t *testing.T) {
			raw := []byte(`{"Name":"x","Links":{"ManagedBy":` + list + `}}`)
			tries, decoded := 0, 0
			fits := func(v json.RawMessage) bool {
				tries, decoded = tries+1, decoded+len(v)
				return json.Unmarshal(v, new(system)) == nil
			}
			if _, ok := (&repairer{}).repair(raw, "", fits, 0); ok {
				t.Error("it is repaired")
			}
			if tries > maxRepair/perRepair || decoded > maxRepair {
				t.Errorf("%d values of %d bytes are decoded", tries, decoded)
			}
			if _, _, err := decode[system](raw); !errors.Is(err, errTooOdd) {
				t.Errorf("error %v", err)
			}
		})
	}
}

// As much as any BMC gets wrong is repaired.
func TestLargeResourcesAreRepaired(t *testing.T) {
	members := listOf(`{"@odata.id":"/redfish/v1/Systems/1","Name":"`+strings.Repeat("x", 5<<10)+`"}`, maxMembers)
	c, odd, err := decode[collection]([]byte(`{"Members@odata.count":"1024","Members":` + members + `}`))
	if err != nil || len(odd) > 0 || len(c.Members) != maxMembers || *c.Count != maxMembers {
		t.Errorf("of a collection are read %d members, left out %v, error %v", len(c.Members), odd, err)
	}
	s, odd, err := decode[system]([]byte(`{"Name":"x","Links":{"ManagedBy":` + listOf(`"/redfish/v1/Managers/1"`, 500) + `,"Chassis":` + listOf("1", 500) + `}}`))
	if err != nil || len(odd) != 500 || len(s.Links.ManagedBy) != 500 {
		t.Errorf("of a system are read %d links, left out %d, error %v", len(s.Links.ManagedBy), len(odd), err)
	}
}

// An answer with more values than any resource has is not decoded.
func TestAnswersWithTooManyValuesAreNone(t *testing.T) {
	f, p := newFake(t, plain), newPool(t, Options{Timeout: 5 * time.Second})
	f.answers(func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != sysURI {
			return false
		}
		w.Write(compressed([]byte(`{"Name":"x","PowerState":"On","Boot":{"BootOrder":` + listOf("1", maxValues) + `}}`)))
		return true
	})
	want := "more than " + strconv.Itoa(maxValues) + " values"
	if _, err := p.Inventory(t.Context(), f.system1()); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want %q", err, want)
	}
	if power, err := p.Power(t.Context(), f.system1()); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("the machine is %s, error %v, want %q", power, err, want)
	}
}

// Of an error with any number of messages no more is looked at than is shown.
func TestMessagesAreBounded(t *testing.T) {
	one := `{"MessageId":"` + strings.Repeat("I", 1000) + `","Message":"` + strings.Repeat("m", 100) + `"}`
	body := []byte(`{"error":{"code":"c","message":"x","@Message.ExtendedInfo":` + listOf(one, 10_000) + `}}`)
	ids, text := messages(http.StatusBadRequest, body)
	if len(ids) > maxMessages+1 || len(ids[1]) > maxText+len("…") || len(text) > 2*maxDetail {
		t.Errorf("%d identifiers of %d bytes, %d bytes of text", len(ids), len(ids[1]), len(text))
	}
	// A text of 10,000 messages that grew with each of them took 5 GB.
	took := allocated(func() { messages(http.StatusBadRequest, body) })
	if most := uint64(10 * len(body)); took > most {
		t.Errorf("%d bytes of answer took %d, want at most %d", len(body), took, most)
	}
}

// However much there is to repair in one answer, the caller's deadline holds.
func TestRepairEndsWithItsCaller(t *testing.T) {
	f := newFake(t, plain)
	ctx, cancel := context.WithCancel(t.Context())
	members := make([]string, maxMembers)
	for i := range members {
		members[i] = fmt.Sprintf(`{"@odata.id":"/redfish/v1/Systems/%d","Name":"x","Links":{"ManagedBy":[1]}}`, i)
	}
	f.answers(func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != "/redfish/v1/Systems" {
			return false
		}
		fmt.Fprintf(w, `{"Name":"c","Members":[%s]}`, strings.Join(members, ","))
		return true
	})
	c, err := newPool(t, Options{}).client(ctx, f.target())
	if err != nil {
		t.Fatal(err)
	}
	used := 0
	err = c.eachMember(ctx, "/redfish/v1/Systems", 1, func(member, error) bool {
		used++
		cancel()
		return true
	})
	if !errors.Is(err, context.Canceled) || used != 1 {
		t.Errorf("%d members are used after their caller has gone, error %v", used, err)
	}
	r := &reading{reader: c.reader, ctx: ctx}
	if v := read[system](r, sysURI, []byte(members[0])); v != nil {
		t.Errorf("after that is read %+v", v)
	}
}

// What a collection has is bounded as a whole, and not only each of its pages and members.
func TestCollectionsAreBounded(t *testing.T) {
	pad := strings.Repeat(" ", maxBody/2)
	links := make([]string, 40)
	for i := range links {
		links[i] = fmt.Sprintf(`{"@odata.id":"/redfish/v1/Chassis/%d"}`, i)
	}
	f := newFake(t, plain)
	f.answers(func(w http.ResponseWriter, r *http.Request) bool {
		switch path := r.URL.Path; {
		case path == "/redfish/v1/Pages":
			page, _ := strconv.Atoi(r.URL.Query().Get("page"))
			w.Write(compressed(fmt.Appendf(nil, `{"Name":"c","Members":[{"@odata.id":"/redfish/v1/Chassis/%d"%s}],"Members@odata.nextLink":"/redfish/v1/Pages?page=%d"}`, page, pad, page+1)))
		case path == "/redfish/v1/Members":
			fmt.Fprintf(w, `{"Name":"c","Members":[%s]}`, strings.Join(links, ","))
		case strings.HasPrefix(path, "/redfish/v1/Chassis/"):
			w.Write(compressed(fmt.Appendf(nil, `{"@odata.id":%q,"Name":"m"%s}`, path, pad)))
		default:
			return false
		}
		return true
	})
	delete(f.resources["/redfish/v1/"], "ProtocolFeaturesSupported")
	c := must.Get(newPool(t, Options{}).client(t.Context(), f.target()))(t)
	r := &reading{reader: c.reader, ctx: t.Context()}
	drives := make([]json.RawMessage, len(links))
	for i := range links {
		drives[i] = json.RawMessage(links[i])
	}
	for uri, read := range map[string]func(uri string) ([]member, error){
		"/redfish/v1/Pages":   func(uri string) ([]member, error) { all, _, err := c.members(t.Context(), uri, 1); return all, err },
		"/redfish/v1/Members": func(uri string) ([]member, error) { all, _, err := c.members(t.Context(), uri, 1); return all, err },
		"/redfish/v1/Drives": func(uri string) ([]member, error) {
			return r.linked(uri, drives), errors.New(strings.Join(append(r.inv.Problems, ""), "\n"))
		},
	} {
		all, err := read(uri)
		want := fmt.Sprintf("GET %s: the BMC's answer is incomplete, or not the requested resource: what is listed has more than %d bytes", uri, maxListed)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", uri, err, want)
		}
		kept := 0
		for _, m := range all {
			kept += len(m.raw)
		}
		if kept > maxListed {
			t.Errorf("%s: %d members of %d bytes are kept", uri, len(all), kept)
		}
		if asked := counted(f.requests(), "GET /redfish/v1/"); asked > 10 {
			t.Errorf("%s: %d requests", uri, asked)
		}
	}
}
