package sim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestIgnitionSaysWhatAMachineRuns(t *testing.T) {
	head := func(rest string) string { return `{"ignition":{"version":"3.4.0"}` + rest + `}` }
	unitOf := func(text string) string {
		raw, _ := json.Marshal(text)
		return head(`,"systemd":{"units":[{"name":"a.service","contents":"[Unit]"},{"name":"b.service","contents":` + string(raw) + `}]}`)
	}
	fileOf := func(path, source string) string {
		return head(fmt.Sprintf(`,"storage":{"files":[{"path":%q,"contents":{"source":%q}}]}`, path, source))
	}
	remote := map[string]string{
		"http://x/probe": unitOf("ExecStart=/metalprobe --registry-url=http://r --server-uuid=u"),
		"http://x/loop":  head(``),
	}
	remote["http://x/loop"] = `{"ignition":{"version":"3.4.0","config":{"replace":{"source":"http://x/loop"}}}}`
	fetch := func(_ context.Context, address string) ([]byte, error) {
		if text, ok := remote[address]; ok {
			return []byte(text), nil
		}
		return nil, errors.New("404")
	}
	probe := program{probe: &probeRun{registryURL: "http://r", serverUUID: "u"}}
	tests := map[string]struct {
		config string
		want   program
		err    string
	}{
		"nothing is an operating system": {config: head(``)},
		"a unit with metalprobe": {
			config: unitOf("ExecStart=/usr/bin/metalprobe --registry-url=http://r/ --server-uuid=u\n"), want: probe,
		},
		"flags with one dash and blanks": {
			config: unitOf("ExecStart=ctr run IMAGE metalprobe ./launch.sh -registry-url http://r -server-uuid \"u\"\n"),
			want:   probe,
		},
		"a wipe": {
			config: unitOf("ExecStart=metalprobe --registry-url=http://r --server-uuid=u --wipe=quick --report-url=http://r/wipe"),
			want:   program{probe: &probeRun{registryURL: "http://r", serverUUID: "u", wipe: "quick", reportURL: "http://r/wipe"}},
		},
		"a script in a file": {
			config: fileOf("/opt/probe.sh", "data:,metalprobe%20--registry-url%3Dhttp%3A%2F%2Fr%20--server-uuid%3Du"),
			want:   probe,
		},
		"a drop-in": {
			config: head(`,"systemd":{"units":[{"name":"a","dropins":[` +
				`{"name":"x","contents":"metalprobe --registry-url=http://r --server-uuid=u"}]}]}`),
			want: probe,
		},
		"flags of another program": {config: unitOf("ExecStart=/usr/bin/other --registry-url=http://r --server-uuid=u")},
		"the boot state": {
			config: fileOf("/etc/ingot/bootstate", "data:;base64,aHR0cDovL3IvYm9vdHN0YXRlIHUK"),
			want:   program{bootState: &bootStateRun{url: "http://r/bootstate", uuid: "u"}},
		},
		"files elsewhere are left alone": {config: fileOf("/etc/motd", "http://nowhere/motd")},
		"configurations are merged": {
			config: `{"ignition":{"version":"3.4.0","config":{"merge":[{"source":"http://x/probe"}]}}}`, want: probe,
		},
		"a configuration is replaced": {
			config: `{"ignition":{"version":"3.0.0","config":{"replace":{"source":"http://x/probe"}}}}`, want: probe,
		},
		"one that includes itself": {config: remote["http://x/loop"], err: "more than 3 deep"},
		"one that cannot be fetched": {
			config: `{"ignition":{"version":"3.4.0","config":{"merge":[{"source":"http://x/none"}]}}}`, err: "404",
		},
		"specification 2":       {config: `{"ignition":{"version":"2.3.0"}}`, err: `version "2.3.0": want 3.x`},
		"no JSON":               {config: `<html>`, err: "invalid character"},
		"no data in a data URL": {config: fileOf("/x", "data:text/plain"), err: "has no comma"},
		"no base64":             {config: fileOf("/x", "data:;base64,%%"), err: "not escaped correctly"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var got program
			config, err := parseIgnition(t.Context(), []byte(tt.config), fetch)
			if err == nil {
				got, err = config.program(t.Context(), fetch)
			}
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("error %v, want %q", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got, cmp.AllowUnexported(program{}, probeRun{}, bootStateRun{})); diff != "" {
				t.Errorf("program (-want +got):\n%s", diff)
			}
		})
	}
}
