package ignition

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coreos/ignition/v2/config/v3_0"
	"github.com/coreos/ignition/v2/config/v3_6"
	"github.com/google/go-cmp/cmp"

	"ingot/bootsvc/internal/lru"
	"ingot/model"
	"ingot/model/must"
)

func newIgnition(t testing.TB, o Options) *Compiler {
	t.Helper()
	return must.Get(New(o))(t)
}

const testToken = "abcdefghijklmnopqrstuvwxyz"

func probeBoot() ProbeBoot {
	return ProbeBoot{
		UUID: uuid1, RegistryURL: "http://10.0.0.1:10000", Token: model.NewSensitive(testToken), Purpose: model.PurposeDiscovery,
	}
}

func valid(t *testing.T, ignition model.Sensitive) string {
	t.Helper()
	if _, r, err := v3_6.ParseCompatibleVersion([]byte(ignition.Reveal())); err != nil || len(r.Entries) > 0 {
		t.Errorf("Ignition does not accept it: %v\n%s", err, r.String())
	}
	return ignition.Reveal()
}

func versionOf(ignition string) string {
	var head struct {
		Ignition struct {
			Version string `json:"version"`
		} `json:"ignition"`
	}
	_ = json.Unmarshal([]byte(ignition), &head)
	return head.Ignition.Version
}

func indent(t *testing.T, raw string) string {
	t.Helper()
	var v any
	must.Do(t, json.Unmarshal([]byte(raw), &v))
	out := must.Get(json.MarshalIndent(v, "", "  "))(t)
	return string(out) + "\n"
}

func TestProbe(t *testing.T) {
	g := newIgnition(t, Options{})
	discovery := must.Get(g.ForProbe(probeBoot()))(t)
	golden(t, "discovery.ign", indent(t, valid(t, discovery)))
	b := probeBoot()
	b.Purpose, b.CleanupMode, b.RegistryURL = model.PurposeCleanup, model.CleanupSecure, "http://[fd00::1]:10000/"
	cleanup := must.Get(g.ForProbe(b))(t)
	golden(t, "cleanup.ign", indent(t, valid(t, cleanup)))
	again, _ := newIgnition(t, Options{}).ForProbe(b)
	if again != cleanup {
		t.Error("T14: the same boot gives other bytes from another process")
	}
}

func TestProbeTemplateOfAUser(t *testing.T) {
	template := `variant: fcos
version: "1.3.0"
passwd:
  users:
    - name: metal
      password_hash: {{.PasswordHash}}
      groups: [wheel]
      ssh_authorized_keys: [ {{.SSHPublicKey}} ]
systemd:
  units:
    - name: metalprobe.service
      enabled: true
      contents: |
        [Service]
        ExecStart=/usr/bin/ctr run --rm {{.Image}} metalprobe ./launch.sh {{.Flags}}
        [Install]
        WantedBy=multi-user.target
storage:
  files:
    - path: /etc/probe/plain
      contents:
        inline: "FLAGS={{.Flags}}"
    - path: /etc/probe/packed
      contents:
        inline: "` + strings.Repeat("a long line that packs well ", 40) + `{{.Flags}} \"quoted\""
`
	g := newIgnition(t, Options{
		ProbeTemplate: []byte(template),
		ProbeImage:    "ghcr.io/ironcore-dev/metalprobe:latest",
	})
	got := must.Get(g.ForProbe(probeBoot()))(t)
	raw := valid(t, got)
	flags := "--registry-url=http://10.0.0.1:10000/r/" + testToken + " --server-uuid=" + uuid1
	cfg, _, _ := v3_6.ParseCompatibleVersion([]byte(raw))
	if contents := *cfg.Systemd.Units[0].Contents; !strings.Contains(
		contents, "ghcr.io/ironcore-dev/metalprobe:latest metalprobe ./launch.sh "+flags+"\n",
	) {
		t.Errorf("the unit lacks image or flags:\n%s", contents)
	}
	for _, f := range cfg.Storage.Files {
		text, err := decodeDataURL(*f.Contents.Source, *f.Contents.Compression)
		if err != nil || !strings.Contains(text, flags) {
			t.Errorf("%s lacks the flags: %q, %v", f.Path, text, err)
		}
	}
	if users := cfg.Passwd.Users; len(users) != 1 || len(users[0].SSHAuthorizedKeys) != 0 {
		t.Errorf("the users are %+v", users)
	}
}

func TestProbeTemplateRefuses(t *testing.T) {
	head := "variant: fcos\nversion: 1.3.0\n"
	for title, tc := range map[string]struct {
		o    Options
		want string
	}{
		"a template that is not one":  {o: Options{ProbeTemplate: []byte("{{")}, want: "unclosed action"},
		"a field that is not offered": {o: Options{ProbeTemplate: []byte(head + "# {{.Token}}")}, want: "Token"},
		"a template without flags":    {o: Options{ProbeTemplate: []byte(head)}, want: "no {{.Flags}}"},
		"flags in a comment only":     {o: Options{ProbeTemplate: []byte(head + "# {{.Flags}}")}, want: "no {{.Flags}}"},
		"a key that is not known":     {o: Options{ProbeTemplate: []byte(head + "sytemd: {}\n# {{.Flags}}")}, want: "line 3"},
		"a file of this machine": {
			o: Options{ProbeTemplate: []byte(head + "storage: {files: [{path: /a, contents: {local: /etc/shadow}}]}")}, want: "local",
		},
		"an image that is a line": {o: Options{ProbeImage: "a\nb"}, want: "probe image"},
		"a hash over what is not the same": {
			o: Options{
				ProbeTemplate: []byte(
					head + "storage: {files: [{path: /a, contents: {inline: '{{.Flags}}', " +
						"verification: {hash: sha256-" + strings.Repeat("0", 64) + "}}}]}",
				),
			},
			want: "verification hash",
		},
		"an experimental version of Butane": {
			o:    Options{ProbeTemplate: []byte("variant: fcos\nversion: 1.8.0-experimental\n")},
			want: "experimental",
		},
	} {
		t.Run(title, func(t *testing.T) {
			_, err := New(tc.o)
			if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.HasPrefix(err.Error(), "probe template: ") {
				t.Errorf("got %v, want %s", err, tc.want)
			}
		})
	}
}

func TestNothingBreaksOutOfIgnition(t *testing.T) {
	g := newIgnition(t, Options{})
	for _, evil := range []string{
		"", "x", "http://a b", "http://a\nExecStart=/bin/sh", `http://a"`, "http://a'", "http://a/$(id)", "http://a/`id`", "http://a/%n",
		"http://a/\\", "http://a;b", "http://a/?q=1", "http://u:p@a", "ftp://a", "http://", "http:///x",
		"http://a/" + strings.Repeat("b", 3000),
	} {
		b := probeBoot()
		b.RegistryURL = evil
		if got, err := g.ForProbe(b); err == nil {
			t.Errorf("Y07: URL %q is taken: %s", evil, got.Reveal())
		}
		if got, err := g.ForClaim(ClaimBoot{UUID: uuid1, BootStateURL: evil}); err == nil {
			t.Errorf("Y07: URL %q is taken: %s", evil, got.Reveal())
		}
	}
	for _, evil := range []string{"", "x", strings.ToUpper(uuid1), uuid1 + "\n", "38373000-3534-584d-5130-333030434a5\""} {
		b := probeBoot()
		b.UUID = evil
		if _, err := g.ForProbe(b); err == nil {
			t.Errorf("Y07: UUID %q is taken", evil)
		}
	}
	for _, evil := range []string{"", "short", testToken + "/..", testToken + " --x", strings.ToUpper(testToken), strings.Repeat("a", 65)} {
		b := probeBoot()
		b.Token = model.NewSensitive(evil)
		if _, err := g.ForProbe(b); err == nil || evil != "" && strings.Contains(err.Error(), evil) {
			t.Errorf("Y07: token %q: %v", evil, err)
		}
	}
	b := probeBoot()
	b.Purpose, b.CleanupMode = model.PurposeCleanup, "all; reboot"
	if _, err := g.ForProbe(b); err == nil {
		t.Error("Y07: a cleanup mode of its own is taken")
	}
	b.Purpose = model.PurposeClaim
	if _, err := g.ForProbe(b); err == nil {
		t.Error("a claim boots no probe")
	}
}

const bootState = "http://10.0.0.1:10000/r/" + testToken + "/bootstate"

func secretOf(pairs ...string) map[string]model.Sensitive {
	secret := make(map[string]model.Sensitive)
	for n := 0; n < len(pairs); n += 2 {
		secret[pairs[n]] = model.NewSensitive(pairs[n+1])
	}
	return secret
}

func claimBoot(source, format string) ClaimBoot {
	return ClaimBoot{UUID: uuid1, Secret: secretOf("ignition", source, "format", format), BootStateURL: bootState}
}

func TestClaim(t *testing.T) {
	g := newIgnition(t, Options{})
	for name, b := range map[string]ClaimBoot{
		"claim-none.ign": claimBoot("", ""),
		"claim-butane.ign": claimBoot(
			"variant: fcos\nversion: 1.4.0\nstorage:\n  files:\n    - path: /etc/hostname\n      contents: {inline: web-1}\n", "fcos",
		),
		"claim-flatcar.ign": claimBoot("variant: flatcar\nversion: 1.0.0\nsystemd: {units: [{name: a.service, mask: true}]}\n", ""),
		"claim-json.ign": claimBoot(
			`{"ignition":{"version":"3.4.0"},"kernelArguments":{"shouldExist":["quiet"]},`+
				`"passwd":{"users":[{"name":"core","sshAuthorizedKeys":["ssh-ed25519 AAAA"]}]}}`,
			"",
		),
		"claim-replace.ign": claimBoot(
			`{"ignition":{"version":"3.3.0","timeouts":{"httpTotal":30},`+
				`"config":{"replace":{"source":"https://example.com/a.ign"}}},`+
				`"systemd":{"units":[{"name":"gone.service","mask":true}]}}`,
			"ignition",
		),
	} {
		t.Run(name, func(t *testing.T) {
			got := must.Get(g.ForClaim(b))(t)
			golden(t, name, indent(t, valid(t, got)))
		})
	}
}

func TestClaimKeepsTheVersionOfItsSource(t *testing.T) {
	g := newIgnition(t, Options{})
	for version := range specs {
		got, err := g.ForClaim(claimBoot(`{"ignition":{"version":"`+version+`"}}`, ""))
		if err != nil {
			t.Fatal(version, err)
		}
		if have := versionOf(valid(t, got)); have != version {
			t.Errorf("%s became %s", version, have)
		}
	}
	for butane, want := range map[string]string{
		"fcos 1.0.0": "3.0.0", "fcos 1.3.0": "3.2.0", "fcos 1.7.0": "3.6.0",
		"flatcar 1.1.0": "3.4.0", "r4e 1.1.0": "3.4.0", "fiot 1.0.0": "3.4.0",
	} {
		variant, version, _ := strings.Cut(butane, " ")
		got, err := g.ForClaim(claimBoot("variant: "+variant+"\nversion: "+version+"\n", ""))
		if err != nil {
			t.Errorf("%s: %v", butane, err)
		} else if have := versionOf(valid(t, got)); have != want {
			t.Errorf("%s became %s, want %s", butane, have, want)
		}
	}
	none, _ := g.ForClaim(claimBoot("", ""))
	if _, r, err := v3_0.Parse([]byte(none.Reveal())); err != nil || len(r.Entries) > 0 {
		t.Errorf("the oldest Ignition does not accept what has no source: %v %s", err, r.String())
	}
}

func TestClaimHoldsItsTicket(t *testing.T) {
	g := newIgnition(t, Options{})
	source := `{"ignition":{"version":"3.3.0"},"storage":{"files":[` +
		`{"path":"/etc/ingot/bootstate","mode":420,"contents":{"source":"data:,forged","compression":"gzip"}}]}}`
	for n, b := range []ClaimBoot{
		claimBoot(source, ""), claimBoot(source, ""),
		{UUID: uuid2, Secret: secretOf("ignition", source), BootStateURL: "http://x/r/other/bootstate"},
	} {
		got := must.Get(g.ForClaim(b))(t)
		cfg, _, _ := v3_6.ParseCompatibleVersion([]byte(valid(t, got)))
		f := cfg.Storage.Files[0]
		text, err := decodeDataURL(*f.Contents.Source, *f.Contents.Compression)
		want := b.BootStateURL + " " + b.UUID + "\n"
		if err != nil || text != want || *f.Mode != 0o600 || len(cfg.Storage.Files) != 1 {
			t.Errorf("boot %d: %s holds %q, mode %o, %v; want %q", n, f.Path, text, *f.Mode, err, want)
		}
	}
}

func TestClaimSaysWhatIsWrong(t *testing.T) {
	const secret = "hunter2-is-the-secret"
	g := newIgnition(t, Options{})
	butane := "variant: fcos\nversion: 1.4.0\n"
	for title, tc := range map[string]struct {
		source, format string
		want           string
	}{
		"an unknown key of Butane has a line and a column": {
			source: butane + "passwd:\n  users:\n    - name: core\n      pasword_hash: " + secret + "\n",
			want:   `line 6, column 7: unknown key, did you mean "password_hash"?`,
		},
		"a wrong type in Butane has a line": {
			source: butane + "storage:\n  files:\n    - path: /a\n      mode: " + secret + "\n",
			want:   "line 6: want a whole number",
		},
		"a path that is not absolute has a line": {
			source: butane + "storage:\n  files:\n    - path: " + secret + "\n", want: "line 5, column 13: path not absolute",
		},
		"a URL that cannot be parsed": {
			source: butane + "storage:\n  files:\n    - path: /a\n      contents: {source: 'http://" + secret + " :x'}\n", want: "line 6",
		},
		"YAML that is none":                {source: butane + "a: [" + secret, want: "line 2"},
		"YAML with an anchor that is none": {source: butane + "a: *" + secret, want: "unknown anchor"},
		"a local file": {
			source: butane + "storage: {files: [{path: /a, contents: {local: " + secret + "}}]}", want: "local",
		},
		"Butane without a variant":    {source: "version: 1.4.0\na: " + secret, format: "fcos", want: "variant"},
		"a variant that is not known": {source: "variant: " + secret + "\nversion: 1.4.0\n", want: "variant or version of Butane is not known"},
		"an experimental version of Butane": {
			source: "variant: fcos\nversion: 1.8.0-experimental\na: " + secret,
			want:   "experimental",
		},
		"JSON that is none":    {source: "{\n  \"ignition\": " + secret + "}", want: "line 2, column 15: this is not JSON"},
		"JSON that ends early": {source: `{"ignition":{"version":"3.3.0"}, "a": "` + secret, want: "line 1"},
		"a wrong type in JSON has a line": {
			source: "{\"ignition\":{\"version\":\"3.3.0\"},\n\"storage\":{\"files\":[{\"path\":\"/a\",\"mode\":\"" + secret + "\"}]}}",
			want:   "line 2",
		},
		"an unknown key of JSON has a line": {
			source: "{\"ignition\":{\"version\":\"3.3.0\"},\n\"sytemd\":{\"a\":\"" + secret + "\"}}",
			want:   `line 2, column 1: unknown key, did you mean "systemd"?`,
		},
		"a version that is no string": {
			source: `{"ignition":{"version":3}}`,
			want:   "ignition.version must be of type string",
		},
		"JSON without a version": {source: `{"a":"` + secret + `"}`, want: "no ignition.version"},
		"specification 2":        {source: `{"ignition":{"version":"2.3.0"}}`, want: "specification 1 and 2 are not supported"},
		"the experimental version of Ignition": {
			source: `{"ignition":{"version":"3.7.0-experimental"}}`,
			want:   "3.0.0 to 3.6.0",
		},
		"a version that is to come": {source: `{"ignition":{"version":"` + secret + `"}}`, want: "3.0.0 to 3.6.0"},
		"a link where Ingot's folder is": {
			source: `{"ignition":{"version":"3.3.0"},"storage":{"links":[{"path":"/etc/ingot","target":"/tmp"}]}}`,
			want:   "cannot be joined",
		},
		"a script":             {source: "#!/bin/sh\necho " + secret, want: "not JSON"},
		"a source without end": {source: strings.Repeat("x", maxSource+1), want: "at most 2097152"},
		"YAML that would unfold to a billion": {
			source: butane + "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\n" +
				"d: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e]\n" +
				"g: [*f,*f,*f,*f,*f,*f,*f,*f,*f]\n",
		},
		"a JSON document so deep that no parser follows it": {
			source: `{"ignition":` + strings.Repeat("[", 100_000),
			want:   "not JSON",
		},
	} {
		t.Run(title, func(t *testing.T) {
			got, err := g.ForClaim(claimBoot(tc.source, tc.format))
			if _, ok := errors.AsType[*SourceError](err); !ok {
				t.Fatalf("got %q, %v", got.Reveal(), err)
			}
			if !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %q does not say %q", err, tc.want)
			}
			for cut := range len(secret) - 6 {
				if strings.Contains(err.Error(), secret[cut:cut+6]) {
					t.Fatalf("Y06: the error quotes the source: %v", err)
				}
			}
			if len(err.Error()) > 4000 {
				t.Errorf("the error has %d bytes", len(err.Error()))
			}
			if _, again := g.ForClaim(claimBoot(tc.source, tc.format)); again == nil || again.Error() != err.Error() {
				t.Errorf("asked again it says %v", again)
			}
		})
	}
}

func TestClaimBoundsItsMemory(t *testing.T) {
	g := newIgnition(t, Options{})
	g.sources = lru.New[[sha256.Size]byte, *preparedSource](256 << 10)
	filler := strings.Repeat("x", 20<<10)
	for n := range 20 {
		source := fmt.Sprintf(
			`{"ignition":{"version":"3.3.0"},"storage":{"files":[{"path":"/a","contents":{"source":"data:,%d%s"}}]}}`, n, filler,
		)
		must.Get(g.ForClaim(claimBoot(source, "")))(t)
	}
	if kept, bytes := g.sources.Size(); bytes > 256<<10 || kept < 10 {
		t.Errorf("%d sources of %d bytes are kept", kept, bytes)
	}
}

// unitCommand returns the command of an ExecStart line as systemd would run it
// (systemd.service(5), "Command lines").
func unitCommand(t *testing.T, unit string) []string {
	t.Helper()
	_, line, _ := strings.Cut(unit, "ExecStart=")
	line, _, _ = strings.Cut(line, "\n")
	head, script, ok := strings.Cut(line, " '")
	if !ok || !strings.HasSuffix(script, "'") {
		t.Fatalf("%s is not a command with one quoted script", line)
	}
	script = strings.NewReplacer(`\\`, `\`, `\"`, `"`, "$$", "$", "%%", "%").Replace(strings.TrimSuffix(script, "'"))
	return append(strings.Fields(head), script)
}

func TestBootStateUnitReports(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("NOT TESTED: that the unit reports the server up, for which this test needs curl")
	}
	reports := make(chan string, 1)
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		reports <- r.Method + " " + r.URL.Path + " " + r.Header.Get("Content-Type") + " " + string(body)
	}))
	defer srv.Close()
	g := newIgnition(t, Options{})
	got := must.Get(g.ForClaim(ClaimBoot{UUID: uuid1, BootStateURL: srv.URL + "/r/" + testToken + "/bootstate"}))(t)
	cfg, _, _ := v3_6.ParseCompatibleVersion([]byte(got.Reveal()))
	text, _ := decodeDataURL(*cfg.Storage.Files[0].Contents.Source, "")
	file := filepath.Join(t.TempDir(), "bootstate")
	must.Do(t, os.WriteFile(file, []byte(text), 0o600))
	command := unitCommand(t, strings.ReplaceAll(*cfg.Systemd.Units[0].Contents, bootStateFile, file))
	if out, err := exec.CommandContext(t.Context(), command[0], command[1:]...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s\n%s", command, err, out)
	}
	want := "POST /r/" + testToken + `/bootstate application/json {"systemUUID":"` + uuid1 + `","booted":true}`
	if diff := cmp.Diff(want, <-reports); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Error("the token stays on the machine once it reported")
	}
}
