package bmc

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ingot/model"
)

func TestSetIndicator(t *testing.T) {
	system := func(f *fake) object { return f.resources[sysURI] }
	newer := func(f *fake) {
		delete(system(f), "IndicatorLED")
		system(f)["LocationIndicatorActive"] = false
	}
	lit, off := model.Indicator{LED: "Lit"}, model.Indicator{LED: "Off"}
	onOff := func(led string) model.Indicator { return model.Indicator{LED: led, OnOff: true} }
	tests := map[string]struct {
		prepare func(f *fake)
		led     string
		want    model.Indicator
		patches int
		err     error
		says    string // the error
	}{
		"of the older property":       {led: "Lit", want: lit, patches: 1},
		"that is as it is wanted":     {led: "Off", want: off},
		"of the newer property":       {prepare: newer, led: "Lit", want: onOff("Lit"), patches: 1},
		"that does not know Blinking": {prepare: newer, led: "Blinking", want: onOff("Lit"), patches: 1},
		"that is On and is to be Off": {
			prepare: func(f *fake) { newer(f); system(f)["LocationIndicatorActive"] = true }, led: "Off", want: onOff("Off"), patches: 1,
		},
		"that is On in place of Blinking": {
			prepare: func(f *fake) { newer(f); system(f)["LocationIndicatorActive"] = true }, led: "Blinking", want: onOff("Lit"),
		},
		"whose older property says nothing": {
			prepare: func(f *fake) { newer(f); system(f)["IndicatorLED"] = "Unknown" }, led: "Off", want: onOff("Off"),
		},
		"whose older property is read-only": {
			prepare: func(f *fake) {
				system(f)["LocationIndicatorActive"] = false
				set := f.set
				f.set = func(path, name string, value any) int {
					if name == "IndicatorLED" {
						return http.StatusBadRequest
					}
					return set(path, name, value)
				}
			},
			led: "Lit", want: onOff("Lit"), patches: 2,
		},
		"that is not kept": {
			prepare: func(f *fake) { f.set = func(string, string, any) int { return http.StatusNoContent } },
			led:     "Lit", patches: 1, err: ErrSettingNotKept, says: "asked IndicatorLED Lit, read Off",
		},
		"that is refused": {
			prepare: func(f *fake) { f.set = func(string, string, any) int { return http.StatusBadRequest } },
			led:     "Lit", patches: 1, err: ErrSettingNotKept, says: "asked IndicatorLED Lit, refused with 400",
		},
		"for which the BMC has no time": {
			prepare: func(f *fake) { f.set = func(string, string, any) int { return http.StatusServiceUnavailable } },
			led:     "Lit", patches: 1, err: ErrBusy,
		},
		"that is not there": {
			prepare: func(f *fake) { delete(system(f), "IndicatorLED") }, led: "Lit", err: ErrUnsupported, says: "neither",
		},
		"of a BMC whose ETags are strong": {
			prepare: func(f *fake) { f.etag = func(o object) string { return `"` + o["IndicatorLED"].(string) + `"` } },
			led:     "Lit", want: lit, patches: 1,
		},
		"of a BMC that does not know its own ETag (B17)": {
			prepare: func(f *fake) {
				n := 0
				f.etag = func(object) string { n++; return `"` + strings.Repeat("x", n) + `"` }
			},
			led: "Lit", want: lit, patches: 2,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFake(t, plain)
			if tt.prepare != nil {
				tt.prepare(f)
			}
			got, err := newPool(t, Options{}).SetIndicator(t.Context(), f.system1(), tt.led)
			if !errors.Is(err, tt.err) || tt.err != nil && !strings.Contains(err.Error(), tt.says) {
				t.Errorf("error %v, want %v that says %q", err, tt.err, tt.says)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("shown (-want +got):\n%s", diff)
			}
			if n := counted(f.requests(), "PATCH"); n != tt.patches {
				t.Errorf("%d writes, want %d", n, tt.patches)
			}
		})
	}
}

// What is read back of another machine says nothing of the one that is meant.
func TestAnIndicatorOfAMachineThatIsSwappedMeanwhile(t *testing.T) {
	f := newFake(t, plain)
	set := f.set
	f.set = func(path, name string, value any) int {
		f.resources[sysURI]["UUID"] = "4c4c4544-0059-3110-8035-b4c04f4d4232"
		return set(path, name, value)
	}
	target := f.system1()
	target.UUID = "38947555-7742-3448-3784-823347823834"
	if shown, err := newPool(t, Options{}).SetIndicator(t.Context(), target, "Lit"); !errors.Is(err, ErrOtherMachine) {
		t.Errorf("got %+v, %v; want %v", shown, err, ErrOtherMachine)
	}
}
