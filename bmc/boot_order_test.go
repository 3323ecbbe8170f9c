package bmc

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ingot/model"
)

const (
	settingsURI = sysURI + "/Settings"
	uuidOf1     = "38947555-7742-3448-3784-823347823834"
)

func orderFake(t *testing.T) *fake {
	f := newFake(t, plain)
	var uris []string
	for i, name := range []string{"Hard Drive", "Network IPv4", "Network IPv6"} {
		ref := fmt.Sprintf("Boot%04d", i+1)
		uris = append(uris, sysURI+"/BootOptions/"+ref)
		f.resources[uris[i]] = object{"Id": ref, "BootOptionReference": ref, "DisplayName": name}
	}
	f.resources[sysURI+"/BootOptions"] = listed(uris...)
	bootOf(f, sysURI)["BootOrder"] = []any{"Boot0001", "Boot0002", "Boot0003"}
	bootOf(f, sysURI)["BootOptions"] = linked(sysURI + "/BootOptions")
	return f
}

func bootOf(f *fake, uri string) object { return f.resources[uri]["Boot"].(object) }

func names(order ...any) func(f *fake) {
	return func(f *fake) {
		f.resources[sysURI]["@Redfish.Settings"] = object{"SettingsObject": linked(settingsURI)}
		f.resources[settingsURI] = object{"Id": "Settings", "Boot": object{"BootOrder": append([]any{}, order...)}}
	}
}

func refusesOrders(uri string, status int, id string) func(f *fake) {
	return func(f *fake) {
		f.answer = func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method != http.MethodPatch || r.URL.Path != uri {
				return false
			}
			fail(w, status, id)
			return true
		}
	}
}

func TestSetBootOrder(t *testing.T) {
	was := []string{"Boot0001", "Boot0002", "Boot0003"}
	asked := []string{"Boot0002", "Boot0001", "Boot0003"}
	both := model.ShownBootOrder{Now: asked, Next: asked}
	pending := model.ShownBootOrder{Now: was, Next: asked}
	many := func(orders, options int) func(f *fake) {
		return func(f *fake) {
			var uris []string
			for i := range options {
				ref := fmt.Sprintf("Many%04d", i)
				uris = append(uris, sysURI+"/BootOptions/"+ref)
				f.resources[uris[i]] = object{"Id": ref, "BootOptionReference": ref, "DisplayName": "NIC " + ref}
			}
			f.resources[sysURI+"/BootOptions"] = listed(uris...)
			order := make([]any, orders)
			for i := range order {
				order[i] = fmt.Sprintf("Many%04d", i)
			}
			bootOf(f, sysURI)["BootOrder"] = order
		}
	}
	inForce := func(f *fake) { bootOf(f, sysURI)["BootOrder"] = []any{"Boot0002", "Boot0001", "Boot0003"} }
	holdsNone := func(f *fake) { delete(bootOf(f, settingsURI), "BootOrder") }
	tests := map[string]struct {
		prepare []func(f *fake)
		device  string // "" = Network IPv4
		want    model.ShownBootOrder
		patches []string
		err     error
		says    string // the error
	}{
		"of the system": {want: both, patches: []string{sysURI}},
		"that is as it is wanted": {
			prepare: []func(*fake){inForce}, want: both,
		},
		"that is refused": {
			prepare: []func(*fake){refusesOrders(sysURI, http.StatusBadRequest, "Base.1.0.PropertyValueNotInList")},
			patches: []string{sysURI}, err: ErrSettingNotKept, says: "with 400 A general error. This is Base.1.0.PropertyValueNotInList.",
		},
		"that the account may not set": {
			prepare: []func(*fake){refusesOrders(sysURI, http.StatusForbidden, "Base.1.0.InsufficientPrivilege")},
			patches: []string{sysURI}, err: ErrReadOnly, says: "InsufficientPrivilege",
		},
		"that is not kept": {
			prepare: []func(*fake){func(f *fake) { f.store = func(string, object) int { return http.StatusNoContent } }},
			patches: []string{sysURI}, err: ErrSettingNotKept, says: "read Boot0001, Boot0002, Boot0003 after it was written to " + sysURI,
		},
		"of a firmware whose options are not where the system says": {
			prepare: []func(*fake){func(f *fake) { delete(f.resources, sysURI+"/BootOptions") }}, device: "boot0002",
			want: both, patches: []string{sysURI},
		},
		"under a strong ETag": {
			prepare: []func(*fake){func(f *fake) {
				f.etag = func(o object) string { return fmt.Sprintf("%q", fmt.Sprint(o["Boot"].(object)["BootOrder"])) }
			}},
			want: both, patches: []string{sysURI},
		},
		"of a BMC that asks for an ETag and has a weak one": {
			prepare: []func(*fake){func(f *fake) {
				f.etag = func(object) string { return `W/"1"` }
				f.answer = func(w http.ResponseWriter, r *http.Request) bool {
					if r.Method != http.MethodPatch || r.Header.Get("If-Match") != "" {
						return false
					}
					fail(w, http.StatusPreconditionRequired, "Base.1.0.PreconditionRequired")
					return true
				}
			}},
			want: both, patches: []string{sysURI, sysURI},
		},
		"of a firmware with 80 of 100 options in it": {
			prepare: []func(*fake){many(80, 100)}, device: "NIC Many0095", patches: []string{sysURI},
			want: func() model.ShownBootOrder {
				order := []string{"Many0095"}
				for i := range 63 {
					order = append(order, fmt.Sprintf("Many%04d", i))
				}
				return model.ShownBootOrder{Now: order, Next: order}
			}(),
		},
		"of a firmware with more options than are read": {
			prepare: []func(*fake){many(maxBootOptions+1, 1)}, err: ErrUnsupported, says: "a boot order of 257 options, and 1 to 256 are understood",
		},
		"of a settings object that holds one": {
			prepare: []func(*fake){names("Boot0001", "Boot0002", "Boot0003")}, want: pending, patches: []string{settingsURI},
		},
		"of a settings object in which nothing is pending": {prepare: []func(*fake){names()}, want: pending, patches: []string{settingsURI}},
		"that is pending already":                          {prepare: []func(*fake){names("Boot0002", "Boot0001", "Boot0003")}, want: pending},
		"in force, and another is pending": {
			prepare: []func(*fake){names("Boot0003", "Boot0001", "Boot0002"), inForce},
			want:    both, patches: []string{settingsURI},
		},
		"of a system whose settings object holds no boot order": {
			prepare: []func(*fake){names(), holdsNone}, want: both, patches: []string{sysURI},
		},
		"read-only in the system, by a settings object that shows none": {
			prepare: []func(*fake){
				names(), holdsNone, refusesOrders(sysURI, http.StatusBadRequest, "Base.1.0.PropertyNotWritable"),
			},
			want: pending, patches: []string{sysURI, settingsURI},
		},
		"of a settings object that the system does not name": {
			prepare: []func(*fake){
				names(), func(f *fake) { delete(f.resources[sysURI], "@Redfish.Settings") },
				refusesOrders(sysURI, http.StatusBadRequest, "Base.1.8.OperationSupportedInFutureStateURI"),
			},
			want: pending, patches: []string{sysURI, sysURI + "/SD", settingsURI},
		},
		"of a settings object that refuses it": {
			prepare: []func(*fake){names(), refusesOrders(settingsURI, http.StatusBadRequest, "Base.1.0.PropertyNotWritable")},
			want:    both, patches: []string{settingsURI, sysURI},
		},
		"refused by both": {
			prepare: []func(*fake){names(), func(f *fake) { f.store = func(string, object) int { return http.StatusBadRequest } }},
			patches: []string{settingsURI, sysURI}, err: ErrSettingNotKept,
			says: "refused at " + settingsURI + " with 400 A general error. This is Base.1.0.PropertyValueError.",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			f := orderFake(t)
			for _, prepare := range tt.prepare {
				prepare(f)
			}
			if tt.device == "" {
				tt.device = "Network IPv4"
			}
			got, err := newPool(t, Options{}).SetBootOrder(t.Context(), f.system1(), []model.BootOrder{{Name: "first", Device: tt.device}})
			if !errors.Is(err, tt.err) || tt.err != nil && !strings.Contains(err.Error(), tt.says) {
				t.Errorf("error %v, want %v that says %q", err, tt.err, tt.says)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("shown (-want +got):\n%s", diff)
			}
			var patches []string
			for _, r := range f.requests() {
				if uri, is := strings.CutPrefix(r, "PATCH "); is {
					patches = append(patches, uri)
				}
			}
			if !slices.Equal(patches, tt.patches) {
				t.Errorf("written to %q, want %q", patches, tt.patches)
			}
		})
	}
}

// A blade that is swapped, or a machine that comes on, while the boot options are read is not
// written to.
func TestABootOrderOfAMachineThatChangesMeanwhile(t *testing.T) {
	tests := map[string]struct {
		property, value string
		want            error
	}{
		"swapped for another": {property: "UUID", value: "4c4c4544-0059-3110-8035-b4c04f4d4232", want: ErrOtherMachine},
		"that is another one": {property: "UUID", want: ErrOtherMachine}, // from the beginning
		"switched on by hand": {property: "PowerState", value: "On", want: ErrBusy},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			f := orderFake(t)
			target := f.system1()
			target.UUID = uuidOf1
			if tt.value == "" {
				target.UUID = "4c4c4544-0059-3110-8035-b4c04f4d4232"
			}
			f.answers(func(_ http.ResponseWriter, r *http.Request) bool {
				if tt.value != "" && strings.HasPrefix(r.URL.Path, sysURI+"/BootOptions") {
					f.change(func() { f.resources[sysURI][tt.property] = tt.value })
				}
				return false
			})
			got, err := newPool(t, Options{}).SetBootOrder(t.Context(), target, []model.BootOrder{{Name: "first", Device: "Network IPv4"}})
			if n := counted(f.requests(), "PATCH"); !errors.Is(err, tt.want) || n != 0 || !NotCarriedOut(err) {
				t.Errorf("%d writes, got %+v, %v; want %v", n, got, err, tt.want)
			}
		})
	}
}
