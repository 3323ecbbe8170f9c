package inventory

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ingot/model"
	"ingot/model/must"
)

func TestReadAWholeMachine(t *testing.T) {
	h := with(sata("sda", "8"), tree{
		"proc/cpuinfo": "processor\t: 0\nvendor_id\t: GenuineIntel\nmodel name\t: Xeon\nflags\t\t: fpu vmx\n\n",

		"sys/devices/pci0000:3a/0000:3b:00.0/vendor": "0x15b3\n",
		"sys/class/net/eth0/device":                  "-> ../../../devices/pci0000:3a/0000:3b:00.0",
		"sys/class/net/eth0/address":                 "0c:42:a1:00:00:01\n",
		"sys/class/net/eth0/carrier":                 "1\n",
		"sys/class/net/bond0/address":                "0c:42:a1:00:00:01\n",
	}).host(t)
	h.Interfaces = func() ([]Interface, error) {
		return []Interface{
			{Name: "lo", IPs: []string{"127.0.0.1"}, Loopback: true},
			{Name: "tun0", IPs: []string{"10.9.9.9"}},
			{Name: "docker0", IPs: []string{"172.17.0.1"}},
			{Name: "eth0", MAC: "0c:42:a1:00:00:01", IPs: []string{"10.0.0.7", "fe80::7"}},
			{Name: "bond0", MAC: "0c:42:a1:00:00:01"},
		}, nil
	}
	now := time.Date(2026, 11, 21, 7, 0, 0, 999, time.FixedZone("CET", 3600))
	want := model.ProbeData{
		Timestamp: time.Date(2026, 11, 21, 6, 0, 0, 0, time.UTC),
		CPU:       []model.ProbeCPU{{Capabilities: []string{"fpu", "vmx"}}},
		NetworkInterfaces: []model.ProbeNetworkInterface{
			{
				Name: "eth0", IPAddresses: []string{"10.0.0.7", "fe80::7"},
				MACAddress: "0c:42:a1:00:00:01", CarrierStatus: "up",
			},
			{Name: "bond0", IPAddresses: []string{}, MACAddress: "0c:42:a1:00:00:01", CarrierStatus: "down"},
		},
		LLDP:    []model.ProbeLLDP{},
		Storage: []model.ProbeDisk{sataDisk("sda", "8").ProbeDisk},
		NICs:    []model.ProbeNIC{{Name: "eth0", MAC: "0c:42:a1:00:00:01"}},
	}
	if diff := cmp.Diff(want, h.Read(now)); diff != "" {
		t.Errorf("inventory (-want +got):\n%s", diff)
	}
}

func TestAMachineThatTellsNothingHasEmptyLists(t *testing.T) {
	h := tree{}.host(t)
	h.Interfaces = func() ([]Interface, error) { return nil, errors.New("not permitted") }
	content := must.Get(json.Marshal(h.Read(time.Unix(0, 0))))(t)
	for _, list := range []string{"cpu", "networkInterfaces", "lldp", "storage", "nics"} {
		if !strings.Contains(string(content), `"`+list+`":[]`) {
			t.Errorf("%s is not an empty list in %s", list, content)
		}
	}
}

func TestThisMachineCanBeRead(t *testing.T) {
	data := Local(tree{}.host(t).Log).Read(time.Now())
	if data.Architecture() == "" {
		t.Errorf("processors %+v, want their architecture", data.CPU)
	}
}

func TestClean(t *testing.T) {
	tests := map[string]struct{ in, want string }{
		"padding goes":                       {"  ABC \n", "ABC"},
		"control characters become spaces":   {"A\x00B\x1b[31m", "A B [31m"},
		"bytes that are no UTF-8 do, too":    {"A\xffB", "A B"},
		"other scripts stay":                 {"Дelta", "Дelta"},
		"what is too long is cut":            {strings.Repeat("x", 5000), strings.Repeat("x", 1024)},
		"no character is cut into two":       {strings.Repeat("x", 1023) + "é", strings.Repeat("x", 1023)},
		"what is cut has no padding, either": {strings.Repeat("x", 1000) + strings.Repeat(" ", 100) + "y", strings.Repeat("x", 1000)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := clean(test.in); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
