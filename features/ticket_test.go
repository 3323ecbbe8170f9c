package features

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"regexp"
	"strings"
	"syscall"
	"time"

	"ingot/features/internal/rig"
	"ingot/features/ledger"
	"ingot/model"
)

var things = map[string]model.TicketThing{
	"iPXE script": model.ThingScript, "Ignition": model.ThingIgnition, "image": model.ThingImage,
	"boot state": model.ThingBootState, "wipe result": model.ThingWipe,
}

// answer is what a request of a scenario's was answered with.
type answer struct {
	code int
	body string
}

// strangerAddress is that of somebody of whom nobody knows anything.
var strangerAddress = netip.MustParseAddr("127.0.0.99")

// askFrom makes a request from the address that a device holds, to Ingot itself and
// not through a gate.
func (w *site) askFrom(ctx context.Context, name, method, url, body string, header http.Header) (answer, error) {
	d, err := w.device(name)
	if err != nil {
		return answer{}, err
	}
	return ask(ctx, d.address, method, url, body, header)
}

func ask(ctx context.Context, from netip.Addr, method, url, body string, header http.Header) (answer, error) {
	web := webFrom(from)
	defer web.CloseIdleConnections()
	client := &http.Client{Transport: web, Timeout: patience}
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	req.Header = header
	resp, err := client.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 16<<20))
	return answer{resp.StatusCode, string(text)}, err
}

// handout is what a server's boot script tells it.
type handout struct{ script, ignition, token, image, report string }

var (
	ignitionInScript = regexp.MustCompile(`ignition\.config\.url=\S*(/ignition/\S+/([a-z2-7]{26}))`)
	kernelInScript   = regexp.MustCompile(`set kernel-url \S*(/image\?\S+)`)
)

func (w *site) handoutOf(ctx context.Context, server string) (handout, error) {
	d, err := w.device(server)
	if err != nil {
		return handout{}, err
	}
	return w.handoutAt(ctx, server, d.address)
}

func (w *site) handoutAt(ctx context.Context, server string, from netip.Addr) (handout, error) {
	m, err := w.machine(server)
	if err != nil {
		return handout{}, err
	}
	h := handout{script: "/ipxe/" + m.UUID()}
	a, err := ask(ctx, from, http.MethodGet, "http://"+w.ingot.where.Boot+h.script, "", nil)
	if err != nil {
		return h, err
	}
	ignition, kernel := ignitionInScript.FindStringSubmatch(a.body), kernelInScript.FindStringSubmatch(a.body)
	if ignition == nil || kernel == nil {
		return h, fmt.Errorf("%s is not given the script of a boot (%d):\n%s", server, a.code, a.body)
	}
	h.ignition, h.token, h.image = ignition[1], ignition[2], kernel[1]
	return h, nil
}

// asksFor requests a boot file with all that its server knows. The requester is a device, a server
// at its own address, or a stranger.
func asksFor(ctx context.Context, asks, thing, of, how string) error {
	w := siteOf(ctx)
	switch {
	case asks == "":
		return w.askKnowing(ctx, strangerAddress, thing, of)
	case how != "":
		m, err := w.machine(asks)
		if err != nil {
			return err
		}
		return w.askKnowing(ctx, m.HostAddress(), thing, of)
	}
	if w.handout.report == "" { // who has fetched that is given no script any more
		h, err := w.handoutOf(ctx, of)
		if err != nil {
			return err
		}
		w.handout = h
	}
	if things[thing] == model.ThingBootState && w.handout.report == "" {
		if err := w.fetchReportToken(ctx, of); err != nil {
			return err
		}
	}
	return w.askWith(ctx, asks, thing, of, w.handout)
}

// fetchReportToken reads the token that a server reports with out of its Ignition, from
// its own address.
func (w *site) fetchReportToken(ctx context.Context, server string) error {
	a, err := w.askFrom(ctx, server, http.MethodGet, "http://"+w.ingot.where.Boot+w.handout.ignition, "", nil)
	if err != nil {
		return err
	}
	if w.handout.report = reportToken([]byte(a.body)); w.handout.report == "" {
		return fmt.Errorf("the Ignition of %s has no token to report with (%d):\n%s", server, a.code, a.body)
	}
	return nil
}

// strangerWipes has somebody say of a server that all its disks are wiped, with the token
// that the server has.
func strangerWipes(ctx context.Context, of string) error {
	return siteOf(ctx).askKnowing(ctx, strangerAddress, "wipe result", of)
}

// askKnowing asks for what a server boots, knowing all that the server knows.
func (w *site) askKnowing(ctx context.Context, from netip.Addr, thing, of string) error {
	m, err := w.machine(of)
	if err != nil {
		return err
	}
	h, err := w.handoutAt(ctx, of, m.HostAddress())
	if err != nil {
		return err
	}
	if what := things[thing]; what == model.ThingBootState || what == model.ThingWipe {
		a, err := ask(ctx, m.HostAddress(), http.MethodGet, "http://"+w.ingot.where.Boot+h.ignition, "", nil)
		if err != nil {
			return err
		}
		if h.report = reportToken([]byte(a.body)); h.report == "" {
			return fmt.Errorf("the Ignition of %s has no token to report with (%d):\n%s", of, a.code, a.body)
		}
	}
	return w.askAt(ctx, from, thing, of, h)
}

// askWhileStarting has a server ask for what another one boots from before Ingot listens
// until some time after it answers. What it is refused with is that of all answers, or
// else that of the one that was not refused.
func askWhileStarting(ctx context.Context, asks, of string) error {
	w := siteOf(ctx)
	h, err := w.handoutOf(ctx, of)
	if err != nil {
		return err
	}
	if err := w.kill(); err != nil {
		return err
	}
	if err := w.start(); err != nil {
		return err
	}
	w.refused = 0 // it has not answered
	for end := time.Now().Add(2 * time.Second); time.Now().Before(end); {
		a, err := w.askFrom(ctx, asks, http.MethodGet, "http://"+w.ingot.where.Boot+h.script, "", nil)
		if errors.Is(err, syscall.ECONNREFUSED) && w.refused == 0 { // with a shared store it listens once it leads
			continue
		}
		if err != nil {
			return err
		}
		w.refused = http.StatusForbidden
		if a.code != http.StatusForbidden {
			w.refused = a.code
			return nil
		}
	}
	return nil
}

func askWithToken(ctx context.Context, asks, thing, of, which string) error {
	w := siteOf(ctx)
	h := w.handout
	if which != "that it had" {
		var err error
		if h, err = w.handoutOf(ctx, of); err != nil {
			return err
		}
	}
	switch which {
	case "that was made up":
		h.ignition = strings.Replace(h.ignition, h.token, strings.Repeat("a", len(h.token)), 1)
	case "of its command line":
		h.report = h.token
	}
	return w.askWith(ctx, asks, thing, of, h)
}

func (w *site) askWith(ctx context.Context, asks, thing, of string, h handout) error {
	d, err := w.device(asks)
	if err != nil {
		return err
	}
	return w.askAt(ctx, d.address, thing, of, h)
}

func (w *site) askAt(ctx context.Context, from netip.Addr, thing, of string, h handout) error {
	m, err := w.machine(of)
	if err != nil {
		return err
	}
	method, url, body := http.MethodGet, "http://"+w.ingot.where.Boot, ""
	switch things[thing] {
	case model.ThingScript:
		url += h.script
	case model.ThingIgnition:
		url += h.ignition
	case model.ThingImage:
		url += h.image
	case model.ThingBootState:
		method, url = http.MethodPost, "http://"+w.ingot.where.Registry+"/r/"+h.report+"/bootstate"
		body = fmt.Sprintf(`{"systemUUID": %q, "booted": false}`, m.UUID())
	case model.ThingWipe:
		method, url = http.MethodPost, "http://"+w.ingot.where.Registry+"/r/"+h.report+"/wipe"
		body = fmt.Sprintf(`{"systemUUID": %q, "mode": "quick", "disks": []}`, m.UUID())
	default:
		return fmt.Errorf("nobody asks for %q", thing)
	}
	a, err := ask(ctx, from, method, url, body, nil)
	w.refused = a.code
	if things[thing] == model.ThingIgnition && a.code == http.StatusOK {
		w.given = append(w.given, ledger.Event{
			At: time.Now(), Machine: w.machineAt(from), Kind: ledger.Ignition, Claim: ignitionOwner([]byte(a.body)),
		})
	}
	return err
}

// machineAt is the UUID of the machine that asks from an address, or else the address.
func (w *site) machineAt(from netip.Addr) string {
	for name, d := range w.devices {
		if m := w.machines[name]; m != nil && d.address == from {
			return m.UUID()
		}
	}
	return from.String()
}

// bindTickets has Ingot bind tickets to the client that uses them first, or to nothing, once it is
// started.
func bindTickets(ctx context.Context, to string) error {
	siteOf(ctx).bindTickets = map[string]string{"their first client": "first-client", "nothing": "nothing"}[to]
	return nil
}

// takeBoot has a device ask for script and Ignition of a server's next boot, as soon as
// there are any.
func takeBoot(ctx context.Context, d *device, of string) error {
	w := siteOf(ctx)
	return rig.Within(patience, func() error {
		h, err := w.handoutAt(ctx, of, d.address)
		if err != nil {
			return err
		}
		a, err := ask(ctx, d.address, http.MethodGet, "http://"+w.ingot.where.Boot+h.ignition, "", nil)
		if err == nil && a.code != http.StatusOK {
			err = fmt.Errorf("%s is answered %d", d.name, a.code)
		}
		return err
	})
}

func firmwareAsks(ctx context.Context, m *machine) error {
	w := siteOf(ctx)
	_, err := w.askFrom(ctx, m.name, http.MethodGet, "http://"+w.ingot.where.Boot+"/ipxe/"+m.UUID(), "", nil)
	return err
}

func isAnswered(ctx context.Context) error { return refusedWith(ctx, http.StatusOK) }

// keepHandout reads what a server is told, for later.
func keepHandout(ctx context.Context, server string) (err error) {
	w := siteOf(ctx)
	w.handout, err = w.handoutOf(ctx, server)
	return err
}

func metricsCount(ctx context.Context, thing, reason string) error {
	name := "ingot_boot_ticket_refusals_total"
	if things[thing] == model.ThingBootState || things[thing] == model.ThingWipe {
		name = "ingot_report_refusals_total"
	}
	return siteOf(ctx).metricIsSet(ctx, name, fmt.Sprintf("what=%q", things[thing]), fmt.Sprintf("reason=%q", reason))
}

// metricIsSet waits for a metric with some labels that is not 0.
func (w *site) metricIsSet(ctx context.Context, name string, labels ...string) error {
	return rig.Within(patience, func() error {
		metrics, err := w.ingot.get(ctx, "/metrics")
		if err != nil {
			return err
		}
		for line := range strings.Lines(string(metrics)) {
			if strings.HasPrefix(line, name+"{") && !strings.HasSuffix(line, " 0\n") && containsAll(line, labels) {
				return nil
			}
		}
		return fmt.Errorf("no metric %s with %s is more than 0", name, strings.Join(labels, " and "))
	})
}

func containsAll(text string, parts []string) bool {
	for _, p := range parts {
		if !strings.Contains(text, p) {
			return false
		}
	}
	return true
}

func askName(ctx context.Context, asks, way string) (err error) {
	w := siteOf(ctx)
	path, header := "/v1/server-name", http.Header{"Metadata-Flavor": {"IronCore Metal"}}
	switch way {
	case "as metaldata has it":
	case "as EC2 has it":
		path, header = "/latest/meta-data/hostname", nil
	case "without the header":
		header = nil
	case `in the name of "s1"`:
		d, err := w.device("s1")
		if err != nil {
			return err
		}
		header.Set("X-Forwarded-For", d.address.String())
	default:
		return errors.New("nobody asks so")
	}
	w.heard, err = w.askFrom(ctx, asks, http.MethodGet, "http://"+w.ingot.where.Metadata+path, "", header)
	w.refused = w.heard.code
	return err
}

func toldName(ctx context.Context, name string) error {
	if a := siteOf(ctx).heard; a.code != http.StatusOK || a.body != name {
		return fmt.Errorf("it is told %q (%d), not %q", a.body, a.code, name)
	}
	return nil
}
