package monitoring

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/bcrypt"

	"ingot/examples/monitoring/internal/grafana"
)

// patience is how long anything may take: the machine may have other things to do.
const patience = 3 * time.Minute

// world is a demo, a second Ingot with all that the demo does not have, and a Prometheus
// that scrapes both.
type world struct {
	*testing.T
	dir        string
	ingot      string // the program
	claim      string // a claim of the demo's image
	demo       string // host:port of its admin listener
	all        string // the same of the second Ingot
	prometheus string // host:port
}

// start runs a program until the test ends. It returns what its output says at each of these
// places, in their order, once all were seen.
func (w *world) start(places []string, name string, args ...string) []string {
	w.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(w.Context()))
	command := exec.CommandContext(ctx, name, args...)
	command.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "INGOT_") }) // of the tests' own
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	command.WaitDelay = 20 * time.Second
	out, in := io.Pipe()
	command.Stdout, command.Stderr = in, in
	if err := command.Start(); err != nil {
		w.Fatal(err)
	}
	var tail sync.Mutex
	var said []string
	found := make(chan []string, 1)
	go func() {
		wanted, got := places, []string(nil)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			tail.Lock()
			said = append(said, lines.Text())
			tail.Unlock()
			for len(wanted) > 0 {
				m := regexp.MustCompile(wanted[0]).FindStringSubmatch(lines.Text())
				if m == nil {
					break
				}
				if got, wanted = append(got, m[1]), wanted[1:]; len(wanted) == 0 {
					found <- got
				}
			}
		}
		_, _ = io.Copy(io.Discard, out)
	}()
	ended := make(chan error, 1)
	go func() {
		ended <- command.Wait()
		in.Close()
	}()
	w.Cleanup(func() {
		cancel()
		<-ended
		if w.Failed() {
			tail.Lock()
			defer tail.Unlock()
			w.Logf("%s said at its end:\n%s", filepath.Base(name), strings.Join(said[max(0, len(said)-20):], "\n"))
		}
	})
	select {
	case got := <-found:
		return got
	case err := <-ended:
		ended <- err
		w.Fatalf("%s ended: %v", name, err)
	case <-time.After(patience):
		w.Fatalf("%s does not start", name)
	}
	return nil
}

func (w *world) file(name, content string) string {
	w.Helper()
	path := filepath.Join(w.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		w.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		w.Fatal(err)
	}
	return path
}

func (w *world) run(name string, args ...string) {
	w.Helper()
	if out, err := exec.CommandContext(w.Context(), name, args...).CombinedOutput(); err != nil {
		w.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
}

// commit changes the demo's repository: an empty content removes a file.
func (w *world) commit(files map[string]string) {
	w.Helper()
	clone := filepath.Join(w.dir, "demo", "fleet")
	for name, content := range files {
		if content == "" {
			w.run("git", "-C", clone, "rm", "-q", name)
			continue
		}
		w.file("demo/fleet/"+name, content)
	}
	w.run("git", "-C", clone, "add", "-A")
	w.run("git", "-C", clone, "commit", "-qm", "change")
	w.run("git", "-C", clone, "push", "-q")
}

func (w *world) startDemo() {
	dir := filepath.Join(w.dir, "demo")
	w.demo = w.start([]string{`INGOT_ADDRESS=http://(\S+)`}, w.ingot, "demo", "--fast", "--dir", dir)[0]
	claim, err := os.ReadFile(filepath.Join(dir, "web-1.yaml"))
	if err != nil {
		w.Fatal(err)
	}
	w.claim = string(claim)
}

// startAll starts an Ingot with each part that the demo does not have, and uses each.
func (w *world) startAll() {
	w.Helper()
	w.run("git", "init", "-q", "--bare", "-b", "main", filepath.Join(w.dir, "other.git"))
	relay := freeUDPAddress(w.T)
	config := w.file("ingot.yaml", fmt.Sprintf(`git:
  url: %[1]s/other.git
  interval: 1s
  auth: {caFile: %[2]s}
  webURL: https://github.com/a/b
  commitStatus: {provider: github, url: "http://127.0.0.1:1", tokenFile: %[3]s}
state: {dir: %[1]s/state}
secretFiles: %[1]s/secrets
admin: {listen: "127.0.0.1:0", users: %[5]s, openMetrics: true, serverMetrics: true}
boot: {listen: "127.0.0.1:0"}
registry: {listen: "127.0.0.1:0"}
metadata: {listen: "127.0.0.1:0"}
webhook: {listen: "127.0.0.1:0", secretFile: %[3]s}
tftp: {listen: "127.0.0.1:0"}
dhcp:
  - {name: site, listen: %[4]q, role: host, subnets: [{cidr: 127.11.0.0/24, ranges: [127.11.0.100-127.11.0.150]}]}
  - {name: none, interface: none0, role: host, subnets: [{cidr: "fd00:20::/64"}]}
`, w.dir, w.file("ca.pem", certificate(w.T)), w.file("token", "12345678901234567890123456789012"), relay, w.file("users", user(w.T))))
	got := w.start([]string{`"metadata":"([^"]+)"`, `"admin":"([^"]+)"`}, w.ingot, "--log-format", "json", "run", "--fast", "--config", config)
	w.all = got[1]
	if _, err := http.Get("http://" + got[0] + "/v1/"); err != nil {
		w.Fatal(err)
	}
	w.askDHCP(relay)
}

// user is a line of a file of users.
func user(t *testing.T) string {
	hash, err := bcrypt.GenerateFromPassword([]byte("anything"), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	return "anna:" + string(hash) + "\n"
}

// askDHCP sends what is a request of firmware for a boot file, through a relay, and what is
// no request at all.
func (w *world) askDHCP(server string) {
	w.Helper()
	conn, err := net.Dial("udp4", server)
	if err != nil {
		w.Fatal(err)
	}
	defer conn.Close()
	for _, packet := range [][]byte{discover(), []byte("no request")} {
		if _, err := conn.Write(packet); err != nil {
			w.Fatal(err)
		}
	}
}

// discover is a DHCPDISCOVER (RFC 2131 §2) of UEFI firmware that a relay passes on.
func discover() []byte {
	p := make([]byte, 240)
	copy(p, []byte{1, 1, 6, 1, 'x', 'i', 'd', '.'}) // BOOTREQUEST on Ethernet, after one hop
	copy(p[24:], []byte{127, 11, 0, 1})             // giaddr
	copy(p[28:], []byte{2, 0, 0, 0, 0, 1})          // chaddr
	copy(p[236:], []byte{99, 130, 83, 99})          // the magic cookie of options
	class := "PXEClient:Arch:00007:UNDI:003001"
	p = append(p, 53, 1, 1, 93, 2, 0, 7, 60, byte(len(class))) // message type, architecture (RFC 4578 §2.1), vendor class
	return append(append(p, class...), 55, 2, 66, 67, 255)     // it asks for server and boot file
}

func (w *world) startPrometheus() {
	w.Helper()
	rules, err := filepath.Abs("rules/*.yaml")
	if err != nil {
		w.Fatal(err)
	}
	config := w.file("prometheus.yaml", fmt.Sprintf(`global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: [%q]
scrape_configs:
  - {job_name: ingot, static_configs: [{targets: [%q, %q]}]}
`, rules, w.demo, w.all))
	got := w.start([]string{`msg="Listening on" address=(\S+)`}, program(w.T, "prometheus"),
		"--config.file="+config, "--storage.tsdb.path="+filepath.Join(w.dir, "tsdb"), "--web.listen-address=127.0.0.1:0")
	w.prometheus = got[0]
}

// api asks Prometheus, and says what it says is wrong.
func (w *world) api(path string, query url.Values, into any) error {
	resp, err := http.Get("http://" + w.prometheus + "/api/v1/" + path + "?" + query.Encode())
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	var answer struct {
		Status, Error string
		Data          json.RawMessage
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		return err
	}
	if answer.Status != "success" {
		return fmt.Errorf("%s", answer.Error)
	}
	return json.Unmarshal(answer.Data, into)
}

// series is the number of series that an expression has now.
func (w *world) series(expr string) (int, error) {
	var data struct{ Result []json.RawMessage }
	err := w.api("query", url.Values{"query": {expr}}, &data)
	return len(data.Result), err
}

// await waits until an expression has a series.
func (w *world) await(expr string) {
	w.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(200 * time.Millisecond) {
		n, err := w.series(expr)
		if err == nil && n > 0 {
			return
		}
		if time.Now().After(end) {
			w.Fatalf("%s has no series: %v", expr, err)
		}
	}
}

// names are the names of all series that there ever were.
func (w *world) names() map[string]bool {
	w.Helper()
	var all []string
	if err := w.api("label/__name__/values", nil, &all); err != nil {
		w.Fatal(err)
	}
	names := make(map[string]bool)
	for _, n := range all {
		names[n] = true
	}
	return names
}

// newWorld starts all of it, and has happen what metrics are about.
func newWorld(t *testing.T) *world {
	program(t, "prometheus")
	w := &world{T: t, dir: t.TempDir()}
	w.ingot = filepath.Join(w.dir, "ingot")
	w.run("go", "build", "-ldflags=-w", "-o", w.ingot, "ingot/cmd/ingot")
	w.startDemo()
	w.startAll()
	w.startPrometheus()
	w.await(`count(up == 1) == 2`)
	claims := map[string]string{"claims/nowhere.yaml": strings.ReplaceAll(w.claim, "web-1", "nowhere") + "  serverRef: {name: nowhere}\n"}
	var four []string
	for i := range 4 { // one more than the guard lets go
		name := fmt.Sprintf("claims/held-%d.yaml", i)
		claims[name] = strings.ReplaceAll(w.claim, "web-1", fmt.Sprintf("held-%d", i))
		four = append(four, name)
	}
	claims["bmcs/lost.yaml"] = lostBMC
	w.commit(claims)
	w.await(`ingot_claim_stage_seconds_count{stage="booted"} >= 4`)
	w.await(`ingot_claim_waiting_since_timestamp_seconds{reason="ServerUnknown"}`)
	w.await(`ingot_bmc_failing_since_timestamp_seconds`)
	gone := make(map[string]string)
	for _, name := range four {
		gone[name] = ""
	}
	w.commit(gone)
	w.await(`ingot_guard_hold_since_timestamp_seconds`)
	w.await(`ingot_dhcp_packets_total`)
	return w
}

// lostBMC is at an address where nobody answers.
const lostBMC = `apiVersion: metal.ironcore.dev/v1alpha1
kind: BMC
metadata: {name: lost}
spec:
  protocol: {name: Redfish, port: 1, scheme: https}
  access: {ip: 127.0.0.1}
  bmcSecretRef: {name: lost}
---
apiVersion: metal.ironcore.dev/v1alpha1
kind: BMCSecret
metadata: {name: lost}
stringData: {username: admin, password: admin}
`

// expression is one that a rule or a panel has.
type expression struct{ of, expr string }

// expressions are all of them. Those of panels have their variables filled in.
func expressions(t *testing.T) (all []expression) {
	for _, r := range rules(t) {
		all = append(all, expression{"rule " + r.Alert + r.Record, r.Expr})
	}
	variables := strings.NewReplacer("$job", ".+", "$instance", ".+", "$server", "s1", "$__rate_interval", "1m")
	for name, d := range grafana.Boards() {
		for _, p := range d.Panels {
			for _, target := range p.Targets {
				all = append(all, expression{fmt.Sprintf("dashboard %s, panel %q", name, p.Title), variables.Replace(target.Expr)})
			}
		}
	}
	return all
}

var (
	braces   = regexp.MustCompile(`\{[^}]*\}|"[^"]*"`)
	grouping = regexp.MustCompile(`\b(?:by|without|on|ignoring|group_left|group_right)\s*\([^)]*\)`)
	metric   = regexp.MustCompile(`\b[a-z_:]*(?:_|:)[a-zA-Z0-9_:]+\b(\s*\()?`)
)

// metricsIn are the names of metrics in an expression: what has an underscore or a colon and
// is no function. "up" is always there.
func metricsIn(expr string) (names []string) {
	expr = grouping.ReplaceAllString(braces.ReplaceAllString(expr, ""), "")
	for _, m := range metric.FindAllStringSubmatch(expr, -1) {
		if m[1] == "" {
			names = append(names, m[0])
		}
	}
	return names
}

func TestEveryExpressionIsOfMetricsThatThereAre(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: run it without -short")
	}
	t.Parallel()
	w := newWorld(t)
	there := w.names()
	for _, e := range expressions(t) {
		if _, err := w.series(e.expr); err != nil {
			t.Errorf("%s: Prometheus does not take %s: %v", e.of, e.expr, err)
		}
		names := metricsIn(e.expr)
		if len(names) == 0 {
			t.Errorf("%s: no metric is in %s", e.of, e.expr)
		}
		for _, name := range names {
			if !there[name] {
				t.Errorf("%s: no Ingot exports %s", e.of, name)
			}
		}
	}
	t.Run("every metric that there is stands in the reference", func(t *testing.T) {
		known := make(map[string]bool)
		for _, m := range exportedMetrics(t) {
			known[m.Name] = true
			if m.Type == "histogram" {
				known[m.Name+"_bucket"], known[m.Name+"_sum"], known[m.Name+"_count"] = true, true, true
				there[m.Name] = there[m.Name+"_bucket"]
			}
			if !there[m.Name] {
				t.Errorf("%s is in the reference, and no Ingot exports it", m.Name)
			}
		}
		for name := range there {
			if ours := strings.HasPrefix(name, "ingot_") || strings.HasPrefix(name, "metal_"); ours && !known[name] {
				t.Errorf("%s is exported, and not in the reference", name)
			}
		}
	})
	t.Run("promtool finds nothing wrong with the metrics", func(t *testing.T) {
		for _, address := range []string{w.demo, w.all} {
			resp, err := http.Get("http://" + address + "/metrics")
			if err != nil {
				t.Fatal(err)
			}
			command := exec.CommandContext(t.Context(), program(t, "promtool"), "check", "metrics")
			command.Stdin = resp.Body
			out, err := command.CombinedOutput()
			resp.Body.Close()
			if err != nil || len(bytes.TrimSpace(out)) > 0 {
				t.Errorf("of %s: %v\n%s", address, err, out)
			}
		}
	})
}

func TestMetricsAreFoundInExpressions(t *testing.T) {
	for expr, want := range map[string][]string{
		`max by (server) (metal_server_state{state="go_on"}) == 1`:                  {"metal_server_state"},
		`time() - max by (a_b) (x_seconds > 0) > 600 and on (a_b) (level:y:rate5m)`: {"x_seconds", "level:y:rate5m"},
		`histogram_quantile(0.9, sum by (le) (rate(z_bucket[5m])))`:                 {"z_bucket"},
	} {
		if got := metricsIn(expr); !slices.Equal(got, want) {
			t.Errorf("in %s: %q, want %q", expr, got, want)
		}
	}
}

// freeUDPAddress is an address on which nobody hears packets, for now.
func freeUDPAddress(t *testing.T) string {
	t.Helper()
	c, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	return c.LocalAddr().String()
}

// certificate is one that is valid for an hour, as PEM.
func certificate(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now(), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, &template, &template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}
