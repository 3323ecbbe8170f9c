package machine

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	bootignition "ingot/bootsvc/ignition"
	"ingot/model"
)

// TestWhatIngotServesIsUnderstood joins the probe and what its Ignition is made by.
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
		g, err := bootignition.New(bootignition.Options{ProbeTemplate: []byte(template), ProbeImage: "127.0.0.1:5000/probe:1"})
		if err != nil {
			t.Fatal(err)
		}
		served, err := g.ForProbe(bootignition.ProbeBoot{
			UUID: productUUID, RegistryURL: "http://192.0.2.1:10000", Token: model.NewSensitive(secret),
			Purpose: model.PurposeCleanup, CleanupMode: model.CleanupQuick,
		})
		if err != nil {
			t.Fatal(err)
		}
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

// config is an Ignition with one unit.
func config(unit string) string {
	contents, _ := json.Marshal(unit)
	return `{"ignition":{"version":"3.0.0"},"systemd":{"units":[{"name":"other.service","enabled":true,"contents":"[Service]\nExecStart=/bin/true --wipe=secure\n"},{"name":"metalprobe.service","enabled":true,"contents":` + string(contents) + `}]}}`
}

func TestProbeFlags(t *testing.T) {
	for title, tc := range map[string]struct {
		config string
		want   []string
		err    string
	}{
		"Ingot's own unit": {
			config("[Unit]\nAfter=network.target\n[Service]\nExecStart=/usr/bin/metalprobe --registry-url=http://h/r/t --server-uuid=u\nRestart=on-failure\n"),
			[]string{"--registry-url=http://h/r/t", "--server-uuid=u"}, "",
		},
		"metal-operator's container": {
			config("[Service]\nExecStartPre=/usr/bin/ctr images pull x/metalprobe --not\nExecStart=/usr/bin/ctr run --rm --net-host --privileged x/metalprobe:latest metalprobe ./launch.sh --registry-url=http://h --server-uuid=u\n"),
			[]string{"--registry-url=http://h", "--server-uuid=u"}, "",
		},
		"a container without a script": {config("[Service]\nExecStart=podman run --rm probe:1 metalprobe --a=b\n"), []string{"--a=b"}, ""},
		"lines that go on":             {config("[Service]\nExecStart=-/usr/bin/metalprobe \\\n  --a \\\n  --b\n"), []string{"--a", "--b"}, ""},
		"quotes, percent signs and dollars": {
			config(`[Service]` + "\n" + `ExecStart=/usr/bin/metalprobe "--a=b c" '--d=%%$$'`), []string{"--a=b c", "--d=%$"}, "",
		},
		"no flags":                         {config("[Service]\nExecStart=/usr/bin/metalprobe"), []string{}, ""},
		"another section":                  {config("[Unit]\nExecStart=/usr/bin/metalprobe --a\n"), nil, "no enabled unit"},
		"a command that was taken back":    {config("[Service]\nExecStart=/usr/bin/metalprobe --a\nExecStart=\n"), nil, "no enabled unit"},
		"a name that only ends like it":    {config("[Service]\nExecStart=/usr/bin/notmetalprobe --a\n"), nil, "no enabled unit"},
		"a unit that is off":               {`{"ignition":{"version":"3.4.0"},"systemd":{"units":[{"name":"m","enabled":false,"contents":"[Service]\nExecStart=metalprobe -x"}]}}`, nil, "no enabled unit"},
		"a unit that is masked":            {`{"ignition":{"version":"3.4.0"},"systemd":{"units":[{"name":"m","mask":true,"contents":"[Service]\nExecStart=metalprobe -x"}]}}`, nil, "no enabled unit"},
		"a configuration that lies beyond": {`{"ignition":{"version":"3.4.0","config":{"merge":[{"source":"http://h/secret"}]}}}`, nil, "merges are not fetched"},
		"an old version":                   {`{"ignition":{"version":"2.2.0"}}`, nil, `version "2.2.0": want version 3`},
		"no JSON":                          {"#!ipxe secret", nil, "not valid JSON"},
		"JSON of another kind":             {`{"ignition":{"version":3},"systemd":"secret"}`, nil, "not valid JSON"},
		"nothing":                          {"", nil, "not valid JSON"},
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
