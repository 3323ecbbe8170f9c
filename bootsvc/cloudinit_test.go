package bootsvc

import (
	"encoding/base64"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/mail"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"ingot/model"
)

func TestNoCloudFiles(t *testing.T) {
	const user = "#cloud-config\nruncmd: [[echo, \"${uuid} 'quoted'\"]]\n"
	p := opened(t, cloudBoot("user-data", user))
	if p.Ignition != "" || p.NoCloud[keyUserData] != user {
		t.Errorf("user-data is %q, Ignition %q", p.NoCloud[keyUserData], p.Ignition)
	}
	if _, ok := p.NoCloud[keyNetworkConfig]; ok {
		t.Error("a network-config that nobody wrote")
	}
	golden(t, "vendor-data.sh", p.NoCloud[keyVendorData])
	for title, tc := range map[string]struct {
		meta, host string
		want       map[string]any
	}{
		"none":                       {"", "web", map[string]any{"instance-id": "s1-1-20261121T120000Z", "local-hostname": "web"}},
		"a host name that is number": {"", "123", map[string]any{"instance-id": "s1-1-20261121T120000Z", "local-hostname": "123"}},
		"a host name with a line":    {"", "a\nb: \"c", map[string]any{"instance-id": "s1-1-20261121T120000Z", "local-hostname": "a\nb: \"c"}},
		"a host name that is long":   {"", strings.Repeat("a", 62) + ".b", map[string]any{"instance-id": "s1-1-20261121T120000Z", "local-hostname": strings.Repeat("a", 62)}},
		"no host name":               {"", "", map[string]any{"instance-id": "s1-1-20261121T120000Z"}},
		"one of the claim's own":     {"# mine\nlocal-hostname: db\ntags: [a, b]\n", "web", map[string]any{"instance-id": "s1-1-20261121T120000Z", "local-hostname": "db", "tags": []any{"a", "b"}}},
		"one that names it all":      {"{instance-id: i-1, local-hostname: null}", "web", map[string]any{"instance-id": "i-1", "local-hostname": nil}},
		"a comment":                  {"# nothing\n", "web", map[string]any{"instance-id": "s1-1-20261121T120000Z", "local-hostname": "web"}},
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
		"#cloud-config\n", "\n  #cloud-config \r\na: 1\n", "#!/bin/bash\n", "#include\nhttp://a/b\n", "#include-once\n", "#cloud-boothook\n",
		"#part-handler\n", "## template: jinja\n#cloud-config\n{% if x %}\n", "#cloud-config-archive\n- a\n", "#Cloud-Config\na: 1\n",
		"Content-Type: multipart/mixed; boundary=b\nMIME-Version: 1.0\n\n--b--\n", "#cloud-config-jsonp\n[]\n",
	} {
		if got := opened(t, cloudBoot("user-data", text)).NoCloud[keyUserData]; got != text {
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
		m, err := mail.ReadMessage(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
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
	reports := make(chan string, 1)
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		reports <- r.Method + " " + r.URL.Path + " " + r.Header.Get("Content-Type") + " " + string(body)
	}))
	defer srv.Close()
	script := reportScript(srv.URL+"/r/"+testToken+"/bootstate", uuid1)
	want := "POST /r/" + testToken + `/bootstate application/json {"systemUUID":"` + uuid1 + `","booted":true}`
	for tool, text := range map[string]string{"curl": script, "python3": strings.ReplaceAll(script, "command -v curl", "command -v no-such-tool")} {
		command := exec.CommandContext(t.Context(), "sh")
		command.Stdin = strings.NewReader(text)
		if out, err := command.CombinedOutput(); err != nil || len(out) > 0 {
			t.Fatalf("%s: %v\n%s", tool, err, out)
		}
		select {
		case got := <-reports:
			if got != want {
				t.Errorf("with %s it reports %s, want %s", tool, got, want)
			}
		case <-time.After(30 * time.Second):
			t.Errorf("with %s it reports nothing", tool)
		}
	}
}

func TestNoCloudIsServedToItsMachine(t *testing.T) {
	d := claimDesk(t, cloudBoot("user-data", "#cloud-config\n"))
	s := newServer(t, d, nil)
	token := tokenOf(scriptTicket()).Reveal()
	script := ask(s.Handler(), http.MethodGet, "/ipxe/"+uuid1).Body.String()
	golden(t, "nocloud.ipxe", strings.ReplaceAll(script, token, "TOKEN"))
	_, seed, _ := strings.Cut(script, "ds=nocloud;s=http://boot.example:8082")
	seed, _, _ = strings.Cut(seed, " ")
	if seed != "/nocloud/"+uuid1+"/"+token+"/" {
		t.Fatalf("the seed is %q", seed)
	}
	d.unnote()
	for _, tc := range []struct {
		name, path string
		code       int
		notes      []string
	}{
		{"meta-data", seed + "meta-data", 200, nil},
		{"user-data", seed + "user-data", 200, []string{"s1 Ignition 10.1.2.3"}},
		{"vendor-data", seed + "vendor-data", 200, nil},
		{"vendor-data, with the slash that people write twice", seed + "/vendor-data", 200, nil},
		{"a network-config that nobody wrote", seed + "network-config", 404, nil},
		{"what cloud-init does not ask for", seed + "passwords", 404, nil},
		{"the folder", seed, 404, nil},
		{"in capitals", "/nocloud/" + strings.ToUpper(uuid1) + "/" + token + "/meta-data", 200, nil},
		{"with the token of nobody", "/nocloud/" + uuid1 + "/" + testToken + "/user-data", 403, nil},
		{"for a server that is not known", "/nocloud/" + uuid2 + "/" + token + "/user-data", 404, nil},
		{"for what is no server", "/nocloud/x/" + token + "/user-data", 404, nil},
		{"Ignition", "/ignition/" + uuid1 + "/" + token, 404, nil},
	} {
		d.unnote()
		w := ask(s.Handler(), http.MethodGet, tc.path)
		if w.Code != tc.code {
			t.Errorf("%s: %d %s", tc.name, w.Code, w.Body)
		}
		if diff := cmp.Diff(tc.notes, d.notes()); diff != "" {
			t.Errorf("%s: notes (-want +got):\n%s", tc.name, diff)
		}
		if w.Code == http.StatusOK && w.Header().Get("Cache-Control") != "no-store" {
			t.Errorf("%s may be kept by a proxy", tc.name)
		}
	}
	if w := ask(s.Handler(), http.MethodGet, "/ipxe/"+uuid1); w.Body.String() != diskScript(uuid1, DiskExit) {
		t.Errorf("law 1: after its user-data it gets\n%s", w.Body)
	}
	with(d, model.TicketSpent, false, nil)
	if w := ask(s.Handler(), http.MethodGet, seed+"user-data"); w.Code != http.StatusForbidden {
		t.Errorf("Y01: a spent ticket gives user-data: %d", w.Code)
	}
	d = claimDesk(t, claimBoot("", ""))
	if w := ask(newServer(t, d, nil).Handler(), http.MethodGet, seed+"user-data"); w.Code != http.StatusNotFound {
		t.Errorf("a server with Ignition has user-data: %d", w.Code)
	}
}
