package bmc

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"

	"ingot/model"
	"ingot/model/must"
)

// field is one property of a resource, or of an object within one.
type field struct {
	uri    string
	within object
	key    string
}

func fieldsOf(uri string, o object) (all []field) {
	for _, key := range slices.Sorted(maps.Keys(o)) {
		all = append(all, field{uri, o, key})
		switch v := o[key].(type) {
		case object:
			all = append(all, fieldsOf(uri, v)...)
		case []any:
			for _, entry := range v {
				if within, ok := entry.(object); ok {
					all = append(all, fieldsOf(uri, within)...)
				}
			}
		}
	}
	return all
}

// otherTypes are values of types that a property may have in place of its own.
var otherTypes = []any{
	"a text", -1, 1e300, true, nil, []any{}, []any{[]any{nil}}, object{}, object{"@odata.id": 7}, []any{object{"@odata.id": "//elsewhere"}, "x"},
}

// Whatever type a property has, nothing but what it is about is lost, and no machine is
// taken for another one.
func TestEachPropertyOfAnotherType(t *testing.T) {
	f := newFake(t, plain)
	const uuid = "38947555-7742-3448-3784-823347823834"
	var fields []field
	for _, uri := range slices.Sorted(maps.Keys(f.resources)) {
		fields = append(fields, fieldsOf(uri, f.resources[uri])...)
	}
	for i, at := range fields {
		was, odd := at.within[at.key], otherTypes[i%len(otherTypes)]
		f.change(func() { at.within[at.key] = odd })
		readAll := func() {
			ctx := context.Background()
			p := NewPool(Options{Networks: loopback})
			defer p.Close(ctx)
			facts, err := p.Discover(ctx, f.target())
			if err != nil {
				return
			}
			for _, s := range facts.Systems {
				if s.UUID != "" && s.UUID != uuid {
					t.Errorf("%s %s = %v: the system has UUID %s", at.uri, at.key, odd, s.UUID)
				}
			}
			s := f.system1()
			s.UUID = uuid
			_, _ = p.Power(ctx, s)
			read, err := p.Inventory(ctx, s)
			if err != nil {
				return
			}
			inv := read.Inventory
			if at.uri == sysURI+"/Processors/CPU1" && (len(inv.Storages) != 1 || len(inv.Memory) != 1 || len(inv.MACs()) != 1) ||
				strings.HasPrefix(at.uri, sysURI+"/Memory/") && (len(inv.Storages) != 1 || len(inv.Processors) != 1 || len(inv.MACs()) != 1) {
				t.Errorf("%s %s = %v: other parts are lost: %+v", at.uri, at.key, odd, inv)
			}
		}
		readAll()
		f.change(func() { at.within[at.key] = was })
	}
	if len(fields) < 100 {
		t.Errorf("%d properties, want more", len(fields))
	}
}

// What is cut off is no answer, whatever could be read of it.
func TestAnswersThatAreCutOff(t *testing.T) {
	system := `{"@odata.id":"` + sysURI + `","Name":"System","PowerState":"On","UUID":"38947555-7742-3448-3784-823347823834"`
	for name, answer := range map[string]http.HandlerFunc{
		"cut off, says its length": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", strconv.Itoa(2*len(system)))
			_, _ = io.WriteString(w, system)
		},
		"cut off, says no length": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, system)
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		},
		"cut off, and taken for whole": func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, system) },
		"nested without end": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, system+`,"Oem":`+strings.Repeat("[", 1<<20))
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t, plain)
			p := newPool(t, Options{})
			f.answers(func(w http.ResponseWriter, r *http.Request) bool {
				if r.URL.Path != sysURI {
					return false
				}
				answer(w, r)
				return true
			})
			if power, err := p.Power(t.Context(), f.system1()); err == nil {
				t.Errorf("the machine is %s", power)
			}
			if inv, err := p.Inventory(t.Context(), f.system1()); err == nil {
				t.Errorf("the inventory is %+v", inv)
			}
			if name, err := p.BootOnce(t.Context(), f.system1(), model.BootPXE); err == nil {
				t.Errorf("the override is set as %s", name)
			}
		})
	}
}

// A certificate that has expired is refused where a CA is asked, and none of its business
// where it is pinned.
func TestAnExpiredCertificate(t *testing.T) {
	f := newFake(t, func(s *httptest.Server) { s.TLS = expired(t); s.StartTLS() })
	leaf := must.Get(x509.ParseCertificate(f.TLS.Certificates[0].Certificate[0]))(t)
	ca := x509.NewCertPool()
	ca.AddCert(leaf)
	if _, err := newPool(t, Options{CA: ca}).Power(t.Context(), f.system1()); !errors.Is(err, ErrUnreachable) || !strings.Contains(err.Error(), "expired") {
		t.Errorf("by the CA: %v", err)
	}
	if asked := f.requests(); len(asked) > 0 {
		t.Errorf("it was asked %v", asked)
	}
	if _, err := newPool(t, Options{}).Power(t.Context(), f.system1()); err != nil {
		t.Errorf("pinned: %v", err)
	}
}

// FuzzAnswers has one resource answered by whatever comes to mind: nothing panics or hangs, and no
// machine is taken for another one.
func FuzzAnswers(f *testing.F) {
	const uuid = "38947555-7742-3448-3784-823347823834"
	resources := tree()
	uris := slices.Sorted(maps.Keys(resources))
	for i, uri := range uris {
		body := must.Get(json.Marshal(resources[uri]))(f)
		f.Add(uint8(i), body)
	}
	f.Fuzz(func(t *testing.T, at uint8, body []byte) {
		uri, fake := uris[int(at)%len(uris)], newFake(t, plain)
		fake.answers(func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path != uri {
				return false
			}
			_, _ = w.Write(body)
			return true
		})
		p := newPool(t, Options{})
		if facts, err := p.Discover(t.Context(), fake.target()); err == nil && uri != sysURI {
			for _, s := range facts.Systems {
				if s.UUID != "" && s.UUID != uuid {
					t.Errorf("%s: the system has UUID %s", uri, s.UUID)
				}
			}
		}
		s := fake.system1()
		s.UUID = uuid
		_, _ = p.Power(t.Context(), s)
		_, _ = p.Inventory(t.Context(), s)
	})
}
