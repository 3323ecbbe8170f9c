package ignition

import (
	"encoding/base64"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/mail"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"ingot/model/must"
)

func TestNoCloudFiles(t *testing.T) {
	const user = "#cloud-config\nruncmd: [[echo, \"${uuid} 'quoted'\"]]\n"
	p := opened(t, cloudBoot("user-data", user))
	if p.Ignition != "" || p.NoCloud[UserData] != user {
		t.Errorf("user-data is %q, Ignition %q", p.NoCloud[UserData], p.Ignition)
	}
	if _, ok := p.NoCloud[keyNetworkConfig]; ok {
		t.Error("a network-config that nobody wrote")
	}
	golden(t, "vendor-data.sh", p.NoCloud[keyVendorData])
	for title, tc := range map[string]struct {
		meta, host string
		want       map[string]any
	}{
		"none": {
			host: "web",
			want: map[string]any{"instance-id": "s1-1-20261121T120000Z", "local-hostname": "web"},
		},
		"a host name that is number": {
			host: "123",
			want: map[string]any{"instance-id": "s1-1-20261121T120000Z", "local-hostname": "123"},
		},
		"a host name with a line": {
			host: "a\nb: \"c",
			want: map[string]any{"instance-id": "s1-1-20261121T120000Z", "local-hostname": "a\nb: \"c"},
		},
		"a host name that is long": {
			host: strings.Repeat("a", 62) + ".b",
			want: map[string]any{"instance-id": "s1-1-20261121T120000Z", "local-hostname": strings.Repeat("a", 62)},
		},
		"no host name": {want: map[string]any{"instance-id": "s1-1-20261121T120000Z"}},
		"one of the claim's own": {
			meta: "# mine\nlocal-hostname: db\ntags: [a, b]\n", host: "web",
			want: map[string]any{"instance-id": "s1-1-20261121T120000Z", "local-hostname": "db", "tags": []any{"a", "b"}},
		},
		"one that names it all": {
			meta: "{instance-id: i-1, local-hostname: null}", host: "web",
			want: map[string]any{"instance-id": "i-1", "local-hostname": nil},
		},
		"a comment": {
			meta: "# nothing\n", host: "web",
			want: map[string]any{"instance-id": "s1-1-20261121T120000Z", "local-hostname": "web"},
		},
	} {
		b := cloudBoot("user-data", user, "meta-data", tc.meta)
		b.Hostname = tc.host
		var got map[string]any
		if err := yaml.Unmarshal([]byte(opened(t, b).NoCloud[keyMetaData]), &got); err != nil {
			t.Fatal(title, err)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("meta-data: %s (-want +got):\n%s", title, diff)
		}
	}
	if got := opened(t, cloudBoot("user-data", user, "network-config", "version: 2\n")).NoCloud[keyNetworkConfig]; got != "version: 2\n" {
		t.Errorf("network-config is %q", got)
	}
}

func TestUserDataOfEveryKind(t *testing.T) {
	for _, text := range []string{
		"#cloud-config\n", "\n  #cloud-config \r\na: 1\n", "#!/bin/bash\n", "#include\nhttp://a/b\n", "#include-once\n",
		"#cloud-boothook\n", "#part-handler\n", "## template: jinja\n#cloud-config\n{% if x %}\n",
		"#cloud-config-archive\n- a\n", "#Cloud-Config\na: 1\n",
		"Content-Type: multipart/mixed; boundary=b\nMIME-Version: 1.0\n\n--b--\n", "#cloud-config-jsonp\n[]\n",
	} {
		if got := opened(t, cloudBoot("user-data", text)).NoCloud[UserData]; got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}

func TestVendorDataOfAClaimGoesAlong(t *testing.T) {
	const config = "#cloud-config\npackages: [gr\u00fc\u00dfe]\n"
	const message = "Content-Type: text/cloud-config\nMIME-Version: 1.0\n\n#cloud-config\na: 1\n"
	report := opened(t, cloudBoot("user-data", "#!/bin/sh\n")).NoCloud[keyVendorData]
	for own, want := range map[string]string{config: config, "\n" + message: "#cloud-config\na: 1\n"} {
		text := opened(t, cloudBoot("user-data", "#!/bin/sh\n", "vendor-data", own)).NoCloud[keyVendorData]
		m := must.Get(mail.ReadMessage(strings.NewReader(text)))(t)
		_, params, err := mime.ParseMediaType(m.Header.Get("Content-Type"))
		if err != nil {
			t.Fatal(err)
		}
		var parts []string
		for r := multipart.NewReader(m.Body, params["boundary"]); ; {
			part, err := r.NextPart()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%v\n%s", err, text)
			}
			raw, err := io.ReadAll(part)
			if part.Header.Get("Content-Transfer-Encoding") == "base64" {
				raw, err = base64.StdEncoding.DecodeString(strings.ReplaceAll(string(raw), "\n", ""))
			}
			if err != nil {
				t.Fatal(err)
			}
			parts = append(parts, string(raw))
		}
		if diff := cmp.Diff([]string{want, report}, parts); diff != "" {
			t.Errorf("parts (-want +got):\n%s", diff)
		}
	}
}

func TestTheReportScriptReports(t *testing.T) {
	for _, tool := range []string{"sh", "curl", "python3"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip("NOT TESTED: that vendor-data reports the server up, for which this test needs " + tool)
		}
	}
	reports := make(chan string)
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		select {
		case reports <- r.Method + " " + r.URL.Path + " " + r.Header.Get("Content-Type") + " " + string(body):
		case <-t.Context().Done():
		}
	}))
	defer srv.Close()
	script := reportScript(srv.URL+"/r/"+testToken+"/bootstate", uuid1)
	up := "POST /r/" + testToken + `/bootstate application/json {"systemUUID":"` + uuid1 + `","booted":true`
	for tool, absent := range map[string]string{"curl": "no-such-tool", "python3": "curl"} {
		t.Run(tool, func(t *testing.T) {
			ends := t.TempDir()
			text := strings.NewReplacer("/run/cloud-init", ends, "command -v "+absent, "command -v no-such-tool").Replace(script)
			command := exec.CommandContext(t.Context(), "sh")
			command.Stdin = strings.NewReader(text)
			if out, err := command.CombinedOutput(); err != nil || len(out) > 0 {
				t.Fatalf("%v\n%s", err, out)
			}
			reported := func(what, want string) {
				t.Helper()
				select {
				case got := <-reports:
					if got != want {
						t.Errorf("%s it reports %s, want %s", what, got, want)
					}
				case <-time.After(30 * time.Second):
					t.Fatalf("%s it reports nothing", what)
				}
			}
			reported("at once", up+"}")
			const status = "{\n \"v1\": {\n  \"init\": {\"errors\": [\"it's \\\\ $(false)\"]}\n }\n}\n"
			for _, f := range []struct{ name, text string }{{"status.json", status}, {"result.json", "{}"}} { // in cloud-init's order
				must.Do(t, os.WriteFile(filepath.Join(ends, f.name), []byte(f.text), 0o600))
			}
			reported("once cloud-init has ended", up+`,"cloudInit":`+strings.TrimSuffix(status, "\n")+"}")
		})
	}
}
