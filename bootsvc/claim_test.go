package bootsvc

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ingot/bootsvc/ignition"
	"ingot/model"
	"ingot/model/must"
)

func cloudBoot(pairs ...string) ignition.ClaimBoot {
	b := ignition.ClaimBoot{
		UUID: uuid1, Secret: make(map[string]model.Sensitive), BootStateURL: "http://10.0.0.1:10000/r/" + testToken + "/bootstate",
		InstanceID: "s1-1-20261121T120000Z", Hostname: "web",
	}
	for n := 0; n < len(pairs); n += 2 {
		b.Secret[pairs[n]] = model.NewSensitive(pairs[n+1])
	}
	return b
}

func compile(t *testing.T, b ignition.ClaimBoot) model.Sensitive {
	t.Helper()
	compiler := must.Get(ignition.New(ignition.Options{}))(t)
	return must.Get(compiler.ForClaim(b))(t)
}

func FuzzKernelArguments(f *testing.F) {
	for _, seed := range []string{"quiet", "a\nb", "${uuid}", "a && b", "a ; b", ";", "#", "\\", `"`, "\u2028", "a\x00b", "a;b"} {
		f.Add(seed)
	}
	plain := must.Get(ticketScript("http://b", newBoot(scriptTicket(), model.NewSensitive(testToken)), scriptOptions{}))(f)
	f.Fuzz(func(t *testing.T, text string) {
		script, err := ticketScript("http://b", newBoot(scriptTicket(), model.NewSensitive(testToken)), scriptOptions{arguments: text})
		if err != nil {
			return
		}
		lines, want := strings.Split(script, "\n"), strings.Split(plain, "\n")
		if len(lines) != len(want) {
			t.Fatalf("Y07: %q makes a line of its own:\n%s", text, script)
		}
		for n, line := range lines {
			added, same := strings.CutPrefix(line, want[n])
			switch {
			case !same, added != "" && !strings.HasPrefix(line, "kernel "):
				t.Fatalf("Y07: %q changes line %q", text, line)
			case strings.ContainsAny(added, "${}#\\\"'|&\r\t\x00"), strings.Contains(added+" ", " ; "):
				t.Fatalf("Y07: %q means something to iPXE: %q", text, added)
			}
		}
	})
}

func claimDesk(t *testing.T, b ignition.ClaimBoot) *desk {
	t.Helper()
	d := newDesk()
	d.arm(scriptTicket(), compile(t, b).Reveal())
	return d
}

func TestAClaimsOwnScriptIsServed(t *testing.T) {
	const script = "#!ipxe\nchain http://10.0.0.9/installer.ipxe\n"
	d := claimDesk(t, cloudBoot("ipxe-script", script))
	s := newServer(t, d, nil)
	if w := ask(s.Handler(), http.MethodHead, "/ipxe/"+uuid1); w.Code != http.StatusOK || len(d.notes()) != 0 {
		t.Errorf("HEAD: %d, and noted %v", w.Code, d.notes())
	}
	w := ask(s.Handler(), http.MethodGet, "/ipxe/"+uuid1)
	if w.Code != http.StatusOK || w.Body.String() != script || w.Header().Get("Content-Type") != "text/plain; charset=utf-8" {
		t.Errorf("got %d, %q", w.Code, w.Body)
	}
	if diff := cmp.Diff([]string{"s1 iPXE script 10.1.2.3", "s1 Ignition 10.1.2.3"}, d.notes()); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}
	if w := ask(s.Handler(), http.MethodGet, "/ipxe/"+uuid1); w.Body.String() != diskScript(uuid1, DiskExit) {
		t.Errorf("law 1: asked again it gets\n%s", w.Body)
	}
	token := tokenOf(scriptTicket()).Reveal()
	if w := ask(s.Handler(), http.MethodGet, "/ignition/"+uuid1+"/"+token); w.Code != http.StatusNotFound {
		t.Errorf("Ignition that there is not: %d", w.Code)
	}

	for _, next := range [][2]string{{"user-data", "#cloud-config\n"}, {"ignition", `{"ignition":{"version":"3.3.0"}}`}} {
		d = claimDesk(t, cloudBoot("ipxe-script", script, next[0], next[1]))
		s = newServer(t, d, nil)
		for range 2 {
			if w := ask(s.Handler(), http.MethodGet, "/ipxe/"+uuid1); w.Body.String() != script {
				t.Errorf("with %s: got %q", next[0], w.Body)
			}
		}
	}
	w = ask(s.Handler(), http.MethodGet, "/ignition/"+uuid1+"/"+token)
	if w.Code != http.StatusOK || ignitionVersion(w.Body.String()) != "3.3.0" {
		t.Errorf("its Ignition: %d", w.Code)
	}
}

func TestKernelArgumentsAreServed(t *testing.T) {
	b := cloudBoot("ipxe-script", "", "ignition", `{"ignition":{"version":"3.3.0"}}`) // the empty value is ignored
	b.KernelArguments = "quiet  systemd.unit=rescue.target"
	d := claimDesk(t, b)
	s := newServer(t, d, nil)
	for range 2 { // the second time from memory
		got := ask(s.Handler(), http.MethodGet, "/ipxe/"+uuid1).Body.String()
		if !strings.Contains(got, consoleArguments+" quiet systemd.unit=rescue.target\necho Loading initrd") {
			t.Errorf("the script is\n%s", got)
		}
	}
	token := tokenOf(scriptTicket()).Reveal()
	w := ask(s.Handler(), http.MethodGet, "/ignition/"+uuid1+"/"+token)
	if w.Code != http.StatusOK || ignitionVersion(w.Body.String()) != "3.3.0" {
		t.Errorf("Ignition: %d, %q", w.Code, w.Body)
	}
}

func TestAScriptIsNotServedWithoutWhatComesAfterIt(t *testing.T) {
	for title, payload := range map[string]string{"lost": "", "half": "ingot boot payload 1\n" + "{"} {
		d := newDesk()
		d.arm(scriptTicket(), payload)
		if payload == "" {
			delete(d.payloads, scriptTicket().ID)
		}
		w := ask(newServer(t, d, nil).Handler(), http.MethodGet, "/ipxe/"+uuid1)
		if w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" || len(d.notes()) != 0 {
			t.Errorf("a payload that is %s: %d, noted %v", title, w.Code, d.notes())
		}
	}
	d := newDesk()
	probe := scriptTicket()
	probe.Purpose = model.PurposeDiscovery
	d.arm(probe, "")
	delete(d.payloads, probe.ID)
	if w := ask(newServer(t, d, nil).Handler(), http.MethodGet, "/ipxe/"+uuid1); w.Code != http.StatusOK {
		t.Errorf("a probe's script needs no payload, got %d", w.Code)
	}
}

func TestBootFromDisk(t *testing.T) {
	spent := scriptTicket()
	spent.Ended = model.TicketBooted
	for method, want := range map[DiskBoot]string{
		"":           "200 disk.ipxe",
		DiskExit:     "200 disk.ipxe",
		"by pigeon":  "200 disk.ipxe",
		DiskSANBoot:  "200 sanboot.ipxe",
		DiskNotFound: "404",
	} {
		d := newDesk()
		d.arm(spent, "{}")
		s := newServer(t, d, func(o *Options) {
			o.DiskBoot = func(name model.ServerName) DiskBoot {
				if name != "s1" {
					t.Errorf("asked for server %q", name)
				}
				return method
			}
		})
		w := ask(s.Handler(), http.MethodGet, "/ipxe/"+uuid1)
		code, file, _ := strings.Cut(want, " ")
		if fmt.Sprint(w.Code) != code {
			t.Errorf("T17: %s: %d", method, w.Code)
		}
		if file != "" {
			golden(t, file, w.Body.String())
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
	d = claimDesk(t, cloudBoot())
	if w := ask(newServer(t, d, nil).Handler(), http.MethodGet, seed+"user-data"); w.Code != http.StatusNotFound {
		t.Errorf("a server with Ignition has user-data: %d", w.Code)
	}
}
