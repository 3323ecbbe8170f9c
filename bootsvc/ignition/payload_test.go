package ignition

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"ingot/model"
)

// Payloads are kept for as long as their tickets, over restarts.
func TestPayloadsAsTheyAreKept(t *testing.T) {
	for name, c := range map[string]struct {
		sealed string
		want   Payload
	}{
		"mere Ignition": {
			sealed: `{"ignition":{"version":"3.3.0"}}`,
			want:   Payload{Ignition: `{"ignition":{"version":"3.3.0"}}`},
		},
		"all there is": {
			sealed: "ingot boot payload 1\n" +
				`{"ignition":"{}","noCloud":{"user-data":"#cloud-config"},"script":"#!ipxe","kernelArguments":"quiet"}` + "\n",
			want: Payload{
				Ignition: "{}", NoCloud: map[string]string{"user-data": "#cloud-config"}, Script: "#!ipxe", KernelArguments: "quiet",
			},
		},
	} {
		p, err := Open(model.NewSensitive(c.sealed))
		if err != nil {
			t.Fatal(name, err)
		}
		if diff := cmp.Diff(c.want, p); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if got := c.want.Seal().Reveal(); got != c.sealed {
			t.Errorf("%s is sealed as %q, want %q", name, got, c.sealed)
		}
	}
}
