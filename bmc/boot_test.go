package bmc

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ingot/model"
	"ingot/model/must"
)

func TestLadder(t *testing.T) {
	const uri = "/s/1"
	pxe := override{Enabled: once, Target: "Pxe"}
	moded := override{Enabled: once, Target: "Pxe", Mode: uefi}
	legacy := override{Enabled: once, Target: "Pxe", Mode: "Legacy"}
	http := override{Enabled: once, Target: "UefiHttp"}
	stays := func(o override) override { o.Enabled = continuous; return o }
	settings := func(o override) []variant {
		return []variant{{variantSettings, uri + "/SD", o}, {variantSettings, uri + "/Settings", o}, {variantSettings, uri + "/Pending", o}}
	}
	chain := func(parts ...any) []variant {
		var variants []variant
		for _, p := range parts {
			switch p := p.(type) {
			case variant:
				variants = append(variants, p)
			case []variant:
				variants = append(variants, p...)
			}
		}
		return variants
	}
	disk := func(o override) override { o.Target = "Hdd"; return o }
	tests := map[string]struct {
		state  systemState
		target string // "" = Pxe
		want   []variant
	}{
		"a mode that is UEFI is not sent at first": {
			state: systemState{boot: boot{Mode: new("UEFI")}},
			want: chain(variant{variantDefault, uri, pxe}, variant{variantWithMode, uri, moded}, settings(pxe),
				variant{VariantContinuous, uri, stays(pxe)}),
		},
		"a mode that is not UEFI stays what it is": {
			state: systemState{boot: boot{Mode: new("Legacy")}},
			want: chain(variant{variantDefault, uri, pxe}, variant{variantWithMode, uri, legacy}, settings(pxe),
				variant{VariantContinuous, uri, stays(pxe)}),
		},
		"a Supermicro that boots by BIOS gets that mode (B03)": {
			state: systemState{boot: boot{Mode: new("Legacy")}, quirk: quirkOf("Supermicro", "X10SDV", "")},
			want: chain(variant{variantDefault, uri, legacy}, variant{variantWithoutMode, uri, pxe}, settings(legacy),
				variant{VariantContinuous, uri, stays(legacy)}),
		},
		"UEFI HTTP boot is asked for without another mode than UEFI": {
			state: systemState{boot: boot{Mode: new("Legacy")}}, target: "UefiHttp",
			want: chain(variant{variantDefault, uri, http}, settings(http), variant{VariantContinuous, uri, stays(http)}),
		},
		"a Supermicro gets the mode whenever it shows one (B03)": {
			state: systemState{boot: boot{Mode: new("UEFI")}, quirk: quirkOf("Supermicro", "SYS-821GE", "")},
			want: chain(variant{variantDefault, uri, moded}, variant{variantWithoutMode, uri, pxe}, settings(moded),
				variant{VariantContinuous, uri, stays(moded)}),
		},
		"a mode that is missing is not sent (B02)": {
			state: systemState{quirk: quirkOf("Supermicro", "X10SDV", "")},
			want:  chain(variant{variantDefault, uri, pxe}, settings(pxe), variant{VariantContinuous, uri, stays(pxe)}),
		},
		"a mode that is only among the allowed values is not sent (B02)": {
			state: systemState{boot: boot{Modes: []string{"Legacy", "UEFI"}}},
			want:  chain(variant{variantDefault, uri, pxe}, settings(pxe), variant{VariantContinuous, uri, stays(pxe)}),
		},
		"a machine without UEFI is not asked for it": {
			state: systemState{boot: boot{Mode: new("Legacy"), Modes: []string{"Legacy"}}},
			want: chain(variant{variantDefault, uri, pxe}, variant{variantWithMode, uri, legacy}, settings(pxe),
				variant{VariantContinuous, uri, stays(pxe)}),
		},
		"the settings object that the system names is the one (B04)": {
			state: systemState{settings: "/s/1/Elsewhere", quirk: quirkOf("Lenovo", "SR670", "")},
			want: chain(variant{variantDefault, uri, pxe}, variant{variantSettings, "/s/1/Elsewhere", pxe},
				variant{VariantContinuous, uri, stays(pxe)}),
		},
		"a DGX H100 begins with its settings object (B04)": {
			state: systemState{quirk: quirk{first: variantSettings, settings: []string{"SD"}}},
			want: chain(variant{variantSettings, uri + "/SD", pxe}, variant{variantDefault, uri, pxe},
				variant{VariantContinuous, uri, stays(pxe)}),
		},
		"the variant that worked last is the first": {
			state: systemState{settings: "/s/1/SD", variant: variant{name: VariantContinuous, uri: uri}},
			want: chain(variant{VariantContinuous, uri, stays(pxe)}, variant{variantDefault, uri, pxe},
				variant{variantSettings, "/s/1/SD", pxe}),
		},
		"to disk there is none that stays": {
			state:  systemState{boot: boot{Mode: new("UEFI")}, settings: "/s/1/SD", variant: variant{name: VariantContinuous, uri: uri}},
			target: "Hdd",
			want: chain(variant{variantDefault, uri, disk(pxe)}, variant{variantWithMode, uri, disk(moded)},
				variant{variantSettings, "/s/1/SD", disk(pxe)}),
		},
		"to disk it begins with the variant that worked for the network": {
			state: systemState{settings: "/s/1/SD", variant: variant{name: variantSettings, uri: "/s/1/SD"}}, target: "Hdd",
			want: chain(variant{variantSettings, "/s/1/SD", disk(pxe)}, variant{variantDefault, uri, disk(pxe)}),
		},
		"but rather with the one that worked for the disk": {
			state: systemState{
				settings: "/s/1/SD", variant: variant{name: variantSettings, uri: "/s/1/SD"},
				diskVariant: variant{name: variantDefault, uri: uri},
			},
			target: "Hdd",
			want:   chain(variant{variantDefault, uri, disk(pxe)}, variant{variantSettings, "/s/1/SD", disk(pxe)}),
		},
		"what worked for the disk does not matter to the network": {
			state: systemState{settings: "/s/1/SD", diskVariant: variant{name: variantSettings, uri: "/s/1/SD"}},
			want: chain(variant{variantDefault, uri, pxe}, variant{variantSettings, "/s/1/SD", pxe},
				variant{VariantContinuous, uri, stays(pxe)}),
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			target := tt.target
			if target == "" {
				target = "Pxe"
			}
			if diff := cmp.Diff(tt.want, tt.state.variants(uri, target), cmp.AllowUnexported(variant{})); diff != "" {
				t.Errorf("variants (-want +got):\n%s", diff)
			}
		})
	}
}

func TestQuirks(t *testing.T) {
	tests := map[string]struct {
		manufacturer, model, firmware string
		want                          quirk
	}{
		"of nobody": {},
		"of a Supermicro": {
			manufacturer: "Super Micro Computer, Inc.", model: "", firmware: "", want: quirk{alwaysMode: true},
		},
		"of an HPE": {
			manufacturer: "hpe", model: "ProLiant", firmware: "iLO 5 v2.55", want: quirk{clearTarget: "Pxe"},
		},
		"of an iDRAC 9 with settings object": {
			manufacturer: "Dell Inc.", model: "PowerEdge R750", firmware: "7.10.30.00",
			want: quirk{settings: []string{"Settings"}},
		},
		"of an iDRAC 9 without settings object": {
			manufacturer: "Dell Inc.", model: "PowerEdge R750", firmware: "6.00.30.00", want: quirk{},
		},
		"of a DGX H100": {
			manufacturer: "NVIDIA", model: "DGXH100", firmware: "",
			want: quirk{first: variantSettings, settings: []string{"SD", "Settings"}},
		},
		"of a DGX H100 with a blank": {
			manufacturer: "NVIDIA", model: "DGX H100", want: quirk{first: variantSettings, settings: []string{"SD", "Settings"}},
		},
		"of a Hewlett Packard Enterprise":   {manufacturer: "Hewlett Packard Enterprise", want: quirk{clearTarget: "Pxe"}},
		"of a Supermicro by its short name": {manufacturer: "Supermicro", want: quirk{alwaysMode: true}},
		"of a Lenovo":                       {manufacturer: "Lenovo", want: quirk{settings: []string{"Pending"}}},
		"of an AMI":                         {manufacturer: "AMI", want: quirk{settings: []string{"SD"}}},
		"of an American Megatrends":         {manufacturer: "American Megatrends Inc.", want: quirk{settings: []string{"SD"}}},
		"of a Gigabyte":                     {manufacturer: "GIGABYTE", want: quirk{settings: []string{"SD"}}},
		"of a GH200":                        {manufacturer: "NVIDIA", model: "P3809", want: quirk{settings: []string{"Settings"}}},
		"of a BlueField":                    {manufacturer: "https://www.mellanox.com", model: "BlueField-3 SmartNIC Main Card", want: quirk{part: "a DPU"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := quirkOf(tt.manufacturer, tt.model, tt.firmware)
			if diff := cmp.Diff(tt.want, got, cmp.AllowUnexported(quirk{})); diff != "" {
				t.Errorf("quirk (-want +got):\n%s", diff)
			}
		})
	}
}

// Each row says what a machine does, where that was seen, and which test holds us to it.
func TestEachQuirkIsAccountedFor(t *testing.T) {
	var tests strings.Builder
	files := must.Get(filepath.Glob("*_test.go"))(t)
	for _, file := range files {
		raw := must.Get(os.ReadFile(file))(t)
		tests.Write(raw)
	}
	for _, row := range quirkTable {
		if row.behaviour == "" || row.evidence == "" || row.test == "" || !strings.Contains(tests.String(), "func "+row.test+"(") {
			t.Errorf("the row of %q %q %q says %q, seen in %q, and names test %q", row.manufacturer, row.model, row.firmware, row.behaviour, row.evidence, row.test)
		}
	}
}

func TestBootOnce(t *testing.T) {
	const settings = sysURI + "/SD"
	only := func(f *fake, accept func(path string, b object) bool) {
		f.store = func(path string, b object) int {
			if accept(path, b) {
				return f.keep(path, b)
			}
			return http.StatusNoContent // and forgets it
		}
	}
	tests := map[string]struct {
		prepare  func(*fake)
		method   model.BootMethod // "" = UefiHttp
		want     string
		requests int // without root, login and first reading
		boot     object
		err      error
	}{
		"that is kept takes two requests": {want: "default", requests: 2, boot: object{"Enabled": "Once", "Target": "UefiHttp"}},
		"that is taken and forgotten is written another way (B01)": {
			prepare:  func(f *fake) { only(f, func(_ string, b object) bool { return b["BootSourceOverrideMode"] != nil }) },
			want:     "with-mode",
			requests: 4, boot: object{"Enabled": "Once", "Target": "UefiHttp", "Mode": "UEFI"},
		},
		"that is refused with the mode is written without": {
			prepare: func(f *fake) {
				f.resources[sysURI]["Manufacturer"] = "Supermicro"
				f.store = func(path string, b object) int {
					if b["BootSourceOverrideMode"] != nil {
						return http.StatusBadRequest
					}
					return f.keep(path, b)
				}
			},
			want: "without-mode", requests: 3, boot: object{"Enabled": "Once", "Target": "UefiHttp"},
		},
		"that belongs into the settings object is written there (B04, B18)": {
			prepare: func(f *fake) {
				f.resources[sysURI]["@Redfish.Settings"] = object{"SettingsObject": object{"@odata.id": settings}}
				f.resources[settings] = object{"Boot": object{}}
				f.store = func(path string, b object) int {
					if path == sysURI {
						return http.StatusBadRequest
					}
					return f.keep(path, b)
				}
			},
			want: "settings-object", requests: 4, boot: object{"Enabled": "Disabled", "Target": "None"},
		},
		"that the BMC refers to the settings object goes there at once (B04)": {
			prepare: func(f *fake) {
				f.resources[settings] = object{"Boot": object{}}
				f.answer = func(w http.ResponseWriter, r *http.Request) bool {
					if r.Method != http.MethodPatch || r.URL.Path != sysURI {
						return false
					}
					fail(w, http.StatusBadRequest, "Ami.1.0.OperationSupportedInFutureStateURI")
					return true
				}
			},
			want: "settings-object", requests: 3, boot: object{"Enabled": "Disabled", "Target": "None"},
		},
		"that is only kept for good says so": {
			prepare: func(f *fake) {
				f.store = func(path string, b object) int {
					b["BootSourceOverrideEnabled"] = "Continuous"
					return f.keep(path, b)
				}
			},
			want: VariantContinuous, requests: 9, boot: object{"Enabled": "Continuous", "Target": "UefiHttp"},
		},
		"by HTTP where there is only PXE is by PXE": {
			prepare: func(f *fake) {
				f.resources[sysURI]["Boot"].(object)["BootSourceOverrideTarget@Redfish.AllowableValues"] = []any{"None", "Pxe"}
			},
			want: "default", requests: 2, boot: object{"Enabled": "Once", "Target": "Pxe"},
		},
		"to disk is kept as well": {method: model.BootDisk, want: "default", requests: 2, boot: object{"Enabled": "Once", "Target": "Hdd"}},
		"to disk is written another way as well": {
			prepare: func(f *fake) { only(f, func(_ string, b object) bool { return b["BootSourceOverrideMode"] != nil }) },
			method:  model.BootDisk, want: "with-mode", requests: 4, boot: object{"Enabled": "Once", "Target": "Hdd", "Mode": "UEFI"},
		},
		"to disk where only network boots are allowed": {
			prepare: func(f *fake) {
				f.resources[sysURI]["Boot"].(object)["BootSourceOverrideTarget@Redfish.AllowableValues"] = []any{"None", "Pxe", "UefiHttp"}
			},
			method: model.BootDisk, err: ErrUnsupported,
		},
		"to disk that is only kept for good is none": {
			prepare: func(f *fake) {
				f.store = func(path string, b object) int {
					b["BootSourceOverrideEnabled"] = "Continuous"
					return f.keep(path, b)
				}
			},
			method: model.BootDisk, err: ErrOverrideNotKept,
		},
		"where no network boot is allowed": {
			prepare: func(f *fake) {
				f.resources[sysURI]["Boot"].(object)["BootSourceOverrideTarget@Redfish.AllowableValues"] = []any{"None", "Hdd"}
			},
			err: ErrUnsupported,
		},
		"of a machine that has none": {
			prepare: func(f *fake) { f.resources[sysURI]["Boot"] = object{"BootOrder": []any{"a"}} },
			err:     ErrUnsupported,
		},
		"that is never kept": {
			prepare: func(f *fake) { only(f, func(string, object) bool { return false }) },
			err:     ErrOverrideNotKept,
		},
		"while a configuration job is pending (B06)": {
			prepare: func(f *fake) {
				f.answer = func(w http.ResponseWriter, r *http.Request) bool {
					if r.Method == http.MethodPatch {
						fail(w, http.StatusBadRequest, "SYS428 a job is already pending")
					}
					return r.Method == http.MethodPatch
				}
			},
			err: ErrBusy,
		},
		"with a stale ETag is written without (B17)": {
			prepare: func(f *fake) {
				n := 0
				f.etag = func(object) string { n++; return `"` + strings.Repeat("x", n) + `"` }
			},
			want: "default", requests: 4, boot: object{"Enabled": "Once", "Target": "UefiHttp"},
		},
		"with a weak ETag is written without condition (B17)": {
			prepare: func(f *fake) {
				n := 0
				f.etag = func(object) string { n++; return `W/"` + strings.Repeat("x", n) + `"` }
			},
			want: "default", requests: 2, boot: object{"Enabled": "Once", "Target": "UefiHttp"},
		},
		"of a BMC that insists on a condition gets one": {
			prepare: func(f *fake) {
				f.etag = func(object) string { return `W/"1"` }
				f.answer = func(w http.ResponseWriter, r *http.Request) bool {
					if r.Method == http.MethodPatch && r.Header.Get("If-Match") != `W/"1"` {
						fail(w, http.StatusPreconditionRequired, "Base.1.0.PreconditionRequired")
						return true
					}
					return false
				}
			},
			want: "default", requests: 4, boot: object{"Enabled": "Once", "Target": "UefiHttp"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFake(t, plain)
			if tt.prepare != nil {
				tt.prepare(f)
			}
			p := newPool(t, Options{})
			method := tt.method
			if method == "" {
				method = model.BootUEFIHTTP
			}
			got, err := p.BootOnce(context.Background(), f.system1(), method)
			if !errors.Is(err, tt.err) || (err == nil) != (tt.err == nil) || got != tt.want {
				t.Fatalf("got %q, %v; want %q, %v", got, err, tt.want, tt.err)
			}
			if err != nil {
				return
			}
			if n := len(after(f.requests())) - 1; n != tt.requests {
				t.Errorf("%d requests, want %d", n, tt.requests)
			}
			boot := object{}
			for k, v := range f.resources[sysURI]["Boot"].(object) {
				if k = strings.TrimPrefix(k, "BootSourceOverride"); !strings.Contains(k, "@") {
					boot[k] = v
				}
			}
			if _, asked := tt.boot["Mode"]; !asked {
				delete(boot, "Mode")
			}
			if diff := cmp.Diff(tt.boot, boot); diff != "" {
				t.Errorf("boot (-want +got):\n%s", diff)
			}
			if name := "again"; tt.want != "" {
				f.requests()
				if again, err := p.BootOnce(context.Background(), f.system1(), method); again != tt.want || err != nil {
					t.Errorf("%s: got %q, %v", name, again, err)
				}
				if n := counted(f.requests(), "PATCH"); n > 2 || n > 1 && !strings.Contains(t.Name(), "condition") {
					t.Errorf("%s: %d PATCHes, want to begin with the variant that worked", name, n)
				}
			}
		})
	}
}

// An override that is shown late is waited for, and no other variant is written on top of it.
func TestAnOverrideThatIsShownLate(t *testing.T) {
	for name, tt := range map[string]struct {
		late    int // readings that still show what was there before
		patches int
		want    string
		boot    object
	}{
		"by the first reading after a wait": {late: 1, patches: 1, want: "default", boot: object{"Enabled": "Once", "Target": "Pxe", "Mode": "Legacy"}},
		"by the last":                       {late: 3, patches: 1, want: "default", boot: object{"Enabled": "Once", "Target": "Pxe", "Mode": "Legacy"}},
		"by none is written another way":    {late: 4, patches: 2, want: "with-mode", boot: object{"Enabled": "Once", "Target": "Pxe", "Mode": "Legacy"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t, plain)
			boot := f.resources[sysURI]["Boot"].(object)
			boot["BootSourceOverrideMode"] = "Legacy"
			var late []func()
			f.store = func(path string, b object) int {
				if len(late) == 0 {
					late = make([]func(), tt.late+1)
				}
				late[len(late)-1] = func() { f.keep(path, b) }
				return http.StatusNoContent
			}
			f.answer = func(_ http.ResponseWriter, r *http.Request) bool {
				f.change(func() {
					if r.Method == http.MethodGet && r.URL.Path == sysURI && len(late) > 0 {
						if late[0] != nil {
							late[0]()
						}
						late = late[1:]
					}
				})
				return false
			}
			p := newPool(t, Options{ReadBack: []time.Duration{time.Millisecond, time.Millisecond, time.Millisecond}})
			got, err := p.BootOnce(context.Background(), f.system1(), model.BootPXE)
			if got != tt.want || err != nil {
				t.Errorf("got %q, %v; want %q", got, err, tt.want)
			}
			if n := counted(f.requests(), "PATCH"); n != tt.patches {
				t.Errorf("%d PATCHes, want %d", n, tt.patches)
			}
			for key, want := range tt.boot {
				if got := boot["BootSourceOverride"+key]; got != want {
					t.Errorf("%s is %v, want %v", key, got, want)
				}
			}
		})
	}
}

// What is read back at once that is neither what was asked for nor what was there before is
// the BMC's last word.
func TestAnOverrideThatIsAnotherIsNotWaitedFor(t *testing.T) {
	f := newFake(t, plain)
	f.store = func(path string, b object) int {
		b["BootSourceOverrideEnabled"] = "Continuous"
		return f.keep(path, b)
	}
	p := newPool(t, Options{ReadBack: []time.Duration{time.Hour}})
	if got, err := p.BootOnce(t.Context(), f.system1(), model.BootPXE); got != VariantContinuous || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestAnOverrideThatIsLateDoesNotOutlastItsCaller(t *testing.T) {
	f := newFake(t, plain)
	ctx, cancel := context.WithCancel(t.Context())
	f.store = func(string, object) int { cancel(); return http.StatusNoContent }
	p := newPool(t, Options{ReadBack: []time.Duration{time.Hour}})
	if _, err := p.BootOnce(ctx, f.system1(), model.BootPXE); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestOverrideNotKeptSaysWhatWasAskedAndRead(t *testing.T) {
	f := newFake(t, plain)
	f.resources[sysURI]["@Redfish.Settings"] = object{"SettingsObject": object{"@odata.id": sysURI + "/SD"}}
	f.store = func(_ string, b object) int {
		if b["BootSourceOverrideEnabled"] == "Continuous" {
			return http.StatusBadRequest
		}
		return http.StatusOK
	}
	_, err := newPool(t, Options{}).BootOnce(context.Background(), f.system1(), model.BootPXE)
	want := "default: asked Once Pxe, read Disabled None; with-mode: asked Once Pxe UEFI, read Disabled None; " +
		"settings-object: asked Once Pxe, refused with 404 A general error. This is Base.1.0.ResourceMissingAtURI.; " +
		"continuous: asked Continuous Pxe, refused with 400 A general error. This is Base.1.0.PropertyValueError."
	if err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("got  %v\nwant …%s", err, want)
	}
}

func TestClearBootOverride(t *testing.T) {
	set := func(f *fake, enabled, target string) {
		f.resources[sysURI]["Boot"] = object{"BootSourceOverrideEnabled": enabled, "BootSourceOverrideTarget": target}
	}
	tests := map[string]struct {
		prepare func(*fake)
		patches int
		want    object
	}{
		"that is not set costs one GET": {
			prepare: func(f *fake) {
				set(f, "Disabled", "Pxe")
			}, want: object{"BootSourceOverrideEnabled": "Disabled",
				"BootSourceOverrideTarget": "Pxe",
			},
		},
		"that is pending": {
			prepare: func(f *fake) {
				set(f, "Once", "Pxe")
			}, patches: 1, want: object{"BootSourceOverrideEnabled": "Disabled",
				"BootSourceOverrideTarget": "None",
			},
		},
		"of an HPE keeps the target (B05)": {
			prepare: func(f *fake) { set(f, "Continuous", "Pxe"); f.resources[sysURI]["Manufacturer"] = "HPE" }, patches: 1,
			want: object{"BootSourceOverrideEnabled": "Disabled", "BootSourceOverrideTarget": "Pxe"},
		},
		"of one that refuses target None keeps the target (B05)": {
			prepare: func(f *fake) {
				set(f, "Continuous", "Pxe")
				f.store = func(path string, b object) int {
					if b["BootSourceOverrideTarget"] == "None" {
						return http.StatusBadRequest
					}
					return f.keep(path, b)
				}
			}, patches: 2,
			want: object{"BootSourceOverrideEnabled": "Disabled", "BootSourceOverrideTarget": "Pxe"},
		},
		"of one that refuses it without the mode sends that": {
			prepare: func(f *fake) {
				set(f, "Once", "Pxe")
				f.resources[sysURI]["Boot"].(object)["BootSourceOverrideMode"] = "Legacy"
				f.store = func(path string, b object) int {
					if b["BootSourceOverrideMode"] == nil {
						return http.StatusBadRequest
					}
					return f.keep(path, b)
				}
			}, patches: 4,
			want: object{"BootSourceOverrideEnabled": "Disabled", "BootSourceOverrideTarget": "None", "BootSourceOverrideMode": "Legacy"},
		},
		"of a Supermicro sends the mode, which it forgets otherwise (B03)": {
			prepare: func(f *fake) {
				set(f, "Once", "Pxe")
				f.resources[sysURI]["Manufacturer"] = "Supermicro"
				f.resources[sysURI]["Boot"].(object)["BootSourceOverrideMode"] = "UEFI"
				f.store = func(path string, b object) int {
					if b["BootSourceOverrideMode"] == nil {
						b["BootSourceOverrideMode"] = "Legacy"
					}
					return f.keep(path, b)
				}
			}, patches: 1,
			want: object{"BootSourceOverrideEnabled": "Disabled", "BootSourceOverrideTarget": "None", "BootSourceOverrideMode": "UEFI"},
		},
		"of one that takes it in the settings object alone is cleared there (B04)": {
			prepare: func(f *fake) {
				set(f, "Once", "Pxe")
				const settings = sysURI + "/SD"
				f.resources[settings] = object{"Boot": object{"BootSourceOverrideEnabled": "Disabled"}}
				f.answer = func(w http.ResponseWriter, r *http.Request) bool {
					if r.Method == http.MethodPatch && r.URL.Path == sysURI {
						fail(w, http.StatusBadRequest, "Ami.1.0.OperationSupportedInFutureStateURI")
						return true
					}
					return false
				}
				f.store = func(path string, b object) int { f.keep(sysURI, b); return f.keep(path, b) }
			}, patches: 2,
			want: object{"BootSourceOverrideEnabled": "Disabled", "BootSourceOverrideTarget": "None"},
		},
		"of a machine that has none": {
			prepare: func(f *fake) { f.resources[sysURI]["Boot"] = object{"BootOrder": "x"} }, want: object{"BootOrder": "x"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFake(t, plain)
			tt.prepare(f)
			p := newPool(t, Options{})
			must.Do(t, p.ClearBootOverride(context.Background(), f.system1()))
			if n := counted(f.requests(), "PATCH"); n != tt.patches {
				t.Errorf("%d PATCHes, want %d", n, tt.patches)
			}
			if diff := cmp.Diff(tt.want, f.resources[sysURI]["Boot"]); diff != "" {
				t.Errorf("boot (-want +got):\n%s", diff)
			}
		})
	}
}
