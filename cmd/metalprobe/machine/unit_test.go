package machine

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	bootignition "ingot/bootsvc/ignition"
	"ingot/model"
	"ingot/model/must"
)

func TestWhatIngotServesIsUnderstood(t *testing.T) {
	templates := map[string]string{
		"Ingot's own template": "",
		"one that runs a container": `variant: fcos
version: "1.3.0"
systemd:
  units:
    - name: metalprobe.service
      enabled: true
      contents: |
        [Service]
        ExecStartPre=-/usr/bin/ctr images pull --skip-metadata {{.Image}}
        ExecStart=/usr/bin/ctr run --rm --net-host --privileged {{.Image}} metalprobe ./launch.sh {{.Flags}}
        [Install]
        WantedBy=multi-user.target
`,
	}
	for title, template := range templates {
		g := must.Get(bootignition.New(bootignition.Options{ProbeTemplate: []byte(template), ProbeImage: "127.0.0.1:5000/probe:1"}))(t)
		served := must.Get(g.ForProbe(bootignition.ProbeBoot{
			UUID: productUUID, RegistryURL: "http://192.0.2.1:10000", Token: model.NewSensitive(secret),
			Purpose: model.PurposeCleanup, CleanupMode: model.CleanupQuick,
		}))(t)
		got, err := probeFlags([]byte(served.Reveal()))
		if err != nil {
			t.Errorf("%s: %v", title, err)
		}
		want := []string{
			"--registry-url=http://192.0.2.1:10000/r/" + secret, "--server-uuid=" + productUUID,
			"--wipe=quick", "--report-url=http://192.0.2.1:10000/r/" + secret + "/wipe",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: flags (-want +got):\n%s", title, diff)
		}
	}
}

// TestWhatAClaimIsServedIsUnderstood joins the probe and what makes the Ignition of a claim
// that names the probe's image.
func TestWhatAClaimIsServedIsUnderstood(t *testing.T) {
	g := must.Get(bootignition.New(bootignition.Options{}))(t)
	url := "http://192.0.2.1:10000/r/" + secret + "/bootstate"
	for title, source := range map[string]string{"no Ignition": "", "an Ignition of its own": `{"ignition":{"version":"3.3.0"}}`} {
		payload := must.Get(g.ForClaim(bootignition.ClaimBoot{
			UUID: productUUID, BootStateURL: url, Secret: map[string]model.Sensitive{"ignition": model.NewSensitive(source)},
		}))(t)
		opened := must.Get(bootignition.Open(payload))(t)
		got, err := probeFlags([]byte(opened.Ignition))
		if err != nil {
			t.Errorf("%s: %v", title, err)
		}
		if diff := cmp.Diff([]string{"--boot-state-url=" + url, "--server-uuid=" + productUUID}, got); diff != "" {
			t.Errorf("%s: flags (-want +got):\n%s", title, diff)
		}
	}
}

func config(unit string) string {
	contents, _ := json.Marshal(unit)
	return `{"ignition":{"version":"3.0.0"},"systemd":{"units":[` +
		`{"name":"other.service","enabled":true,"contents":"[Service]\nExecStart=/bin/true --wipe=secure\n"},` +
		`{"name":"metalprobe.service","enabled":true,"contents":` + string(contents) + `}]}}`
}

func TestProbeFlags(t *testing.T) {
	for title, tc := range map[string]struct {
		config string
		want   []string
		err    string
	}{
		"Ingot's own unit": {
			config: config("[Unit]\nAfter=network.target\n[Service]\n" +
				"ExecStart=/usr/bin/metalprobe --registry-url=http://h/r/t --server-uuid=u\nRestart=on-failure\n"),
			want: []string{"--registry-url=http://h/r/t", "--server-uuid=u"}, err: "",
		},
		"metal-operator's container": {
			config: config("[Service]\nExecStartPre=/usr/bin/ctr images pull x/metalprobe --not\n" +
				"ExecStart=/usr/bin/ctr run --rm --net-host --privileged x/metalprobe:latest metalprobe ./launch.sh " +
				"--registry-url=http://h --server-uuid=u\n"),
			want: []string{"--registry-url=http://h", "--server-uuid=u"}, err: "",
		},
		"a container without a script": {
			config: config("[Service]\nExecStart=podman run --rm probe:1 metalprobe --a=b\n"),
			want:   []string{"--a=b"}, err: "",
		},
		"lines that go on": {
			config: config("[Service]\nExecStart=-/usr/bin/metalprobe \\\n  --a \\\n  --b\n"),
			want:   []string{"--a", "--b"}, err: "",
		},
		"quotes, percent signs and dollars": {
			config: config(`[Service]` + "\n" + `ExecStart=/usr/bin/metalprobe "--a=b c" '--d=%%$$'`),
			want:   []string{"--a=b c", "--d=%$"}, err: "",
		},
		"no flags": {config: config("[Service]\nExecStart=/usr/bin/metalprobe"), want: []string{}, err: ""},
		"another section": {
			config: config("[Unit]\nExecStart=/usr/bin/metalprobe --a\n"), want: nil, err: "no enabled unit",
		},
		"a command that was taken back": {
			config: config("[Service]\nExecStart=/usr/bin/metalprobe --a\nExecStart=\n"), want: nil,
			err: "no enabled unit",
		},
		"a name that only ends like it": {
			config: config("[Service]\nExecStart=/usr/bin/notmetalprobe --a\n"), want: nil, err: "no enabled unit",
		},
		"a unit that is off": {
			config: `{"ignition":{"version":"3.4.0"},"systemd":{"units":[{"name":"m","enabled":false,` +
				`"contents":"[Service]\nExecStart=metalprobe -x"}]}}`,
			want: nil, err: "no enabled unit",
		},
		"a unit that is masked": {
			config: `{"ignition":{"version":"3.4.0"},"systemd":{"units":[{"name":"m","mask":true,` +
				`"contents":"[Service]\nExecStart=metalprobe -x"}]}}`,
			want: nil, err: "no enabled unit",
		},
		"a configuration that lies beyond": {
			config: `{"ignition":{"version":"3.4.0","config":{"merge":[{"source":"http://h/secret"}]}}}`, want: nil,
			err: "merges are not fetched",
		},
		"a boot state file that is compressed": {
			config: `{"ignition":{"version":"3.0.0"},"storage":{"files":[{"path":"/etc/ingot/bootstate","contents":{"source":"data:;base64,eA=="}}]}}`,
			want:   nil, err: "no enabled unit",
		},
		"a boot state file without a UUID": {
			config: `{"ignition":{"version":"3.0.0"},"storage":{"files":[{"path":"/etc/ingot/bootstate","contents":{"source":"data:,http%3A//h/secret"}}]}}`,
			want:   nil, err: "no enabled unit",
		},
		"an old version":       {config: `{"ignition":{"version":"2.2.0"}}`, want: nil, err: `version "2.2.0": want version 3`},
		"no JSON":              {config: "#!ipxe secret", want: nil, err: "not valid JSON"},
		"JSON of another kind": {config: `{"ignition":{"version":3},"systemd":"secret"}`, want: nil, err: "not valid JSON"},
		"nothing":              {config: "", want: nil, err: "not valid JSON"},
	} {
		t.Run(title, func(t *testing.T) {
			got, err := probeFlags([]byte(tc.config))
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) || strings.Contains(err.Error(), "secret") {
					t.Fatalf("got error %v, want %q", err, tc.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("flags (-want +got):\n%s", diff)
			}
		})
	}
}

func FuzzProbeFlags(f *testing.F) {
	f.Add([]byte(config("[Service]\nExecStart=/usr/bin/metalprobe --a \"b c\" \\\n--d")))
	f.Add([]byte(`{"ignition":{"version":"3.0.0","config":{"replace":{"source":"x"}}}}`))
	f.Fuzz(func(t *testing.T, config []byte) {
		flags, err := probeFlags(config)
		if err != nil && flags != nil {
			t.Errorf("flags %q and error %v", flags, err)
		}
	})
}
