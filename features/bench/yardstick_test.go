package bench

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stmcginnis/gofish"

	"ingot/model/must"
)

const yardstickVariable = "FLEET_BENCH_YARDSTICK"

// yardstickOrder is what the yardstick is to speak with.
type yardstickOrder struct {
	Systems            []string // URLs of the servers, one behind each BMC
	Username, Password string
}

// effort is what some work took.
type effort struct {
	Wall, CPU time.Duration
	Requests  int
}

// yardsticks is what the same work costs at the least, and the usual way.
type yardsticks struct {
	// Onboard reads of every server what Ingot reads, sets its boot override and
	// powers it on; Claim does the latter two again. Poll reads power states.
	Onboard, Claim, Poll effort
	// FreshClient reads one server's power state with a new gofish client each time.
	FreshClient effort
}

const freshClients = 40

func measureYardsticks(tb testing.TB, servers int) yardsticks {
	tb.Helper()
	f := &fleet{TB: tb}
	f.startRack(servers)
	var order yardstickOrder
	for _, s := range f.rack.Servers() {
		t := s.Target()
		order.Systems = append(order.Systems, t.BMC.Scheme+"://"+t.BMC.Address+t.URI)
		order.Username, order.Password = t.BMC.Username, t.BMC.Password.Reveal()
	}
	in := must.Get(json.Marshal(order))(tb)
	cmd := exec.Command(os.Args[0]) //nolint:gosec // this program
	cmd.Env = append(os.Environ(), yardstickVariable+"=1")
	cmd.Stdin, cmd.Stderr = bytes.NewReader(in), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		tb.Fatalf("yardstick: %v", err)
	}
	var y yardsticks
	if err := json.Unmarshal(out, &y); err != nil {
		tb.Fatalf("yardstick: %v", err)
	}
	return y
}

func runYardstick(in io.Reader, out, problems io.Writer) int {
	var order yardstickOrder
	err := json.NewDecoder(in).Decode(&order)
	if err == nil {
		var y yardsticks
		if y, err = order.measure(); err == nil {
			err = json.NewEncoder(out).Encode(y)
		}
	}
	if err != nil {
		fmt.Fprintln(problems, "yardstick:", err)
		return 1
	}
	return 0
}

func (o yardstickOrder) measure() (y yardsticks, err error) {
	floors := make([]*floor, len(o.Systems))
	for i, url := range o.Systems {
		floors[i] = newFloor(url)
	}
	for _, step := range []struct {
		into *effort
		do   func(*floor) error
	}{
		{&y.Onboard, func(f *floor) error { return f.onboard(o) }},
		{&y.Claim, (*floor).claim},
		{&y.Poll, (*floor).poll},
	} {
		if *step.into, err = measured(func() (int, error) { return together(floors, step.do) }); err != nil {
			return y, err
		}
	}
	y.FreshClient, err = measured(func() (int, error) { return freshClients, o.freshClient() })
	return y, err
}

func measured(work func() (requests int, err error)) (effort, error) {
	began, before := time.Now(), cpuTime()
	requests, err := work()
	return effort{Wall: time.Since(began), CPU: cpuTime() - before, Requests: requests}, err
}

func cpuTime() time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		return 0
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

func together(floors []*floor, do func(*floor) error) (requests int, err error) {
	errs := make(chan error, len(floors))
	places := make(chan struct{}, 24)
	var wg sync.WaitGroup
	for _, f := range floors {
		f.requests = 0
		places <- struct{}{}
		wg.Go(func() {
			defer func() { <-places }()
			if err := do(f); err != nil {
				errs <- err
			}
		})
	}
	wg.Wait()
	for _, f := range floors {
		requests += f.requests
	}
	select {
	case err = <-errs:
	default:
	}
	return requests, err
}

// floor does to one server, by the fewest and plainest requests, what Ingot does.
type floor struct {
	base, system string
	http         http.Client
	token        string
	requests     int
}

func newFloor(url string) *floor {
	at := strings.Index(url, "/redfish/")
	return &floor{base: url[:at], system: url[at:], http: http.Client{
		Timeout: 30 * time.Second,
		Transport: &http.Transport{
			TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // a simulated BMC
		},
	}}
}

// request sends one request and reads the answer into it, unless it is nil.
func (f *floor) request(method, path string, body, into any) (http.Header, error) {
	var sent io.Reader
	if body != nil {
		raw, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		sent = bytes.NewReader(raw)
	}
	req, err := http.NewRequestWithContext(context.Background(), method, f.base+path, sent)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	if f.token != "" {
		req.Header.Set("X-Auth-Token", f.token)
	}
	f.requests++
	resp, err := f.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode/100 != 2 {
		return nil, fmt.Errorf("%s %s: %s: %s", method, path, resp.Status, raw)
	}
	if into == nil || len(raw) == 0 {
		return resp.Header, nil
	}
	return resp.Header, json.Unmarshal(raw, into)
}

func (f *floor) onboard(o yardstickOrder) error {
	if _, err := f.request(http.MethodGet, "/redfish/v1/", nil, &map[string]any{}); err != nil {
		return err
	}
	h, err := f.request(http.MethodPost, "/redfish/v1/SessionService/Sessions",
		map[string]string{"UserName": o.Username, "Password": o.Password}, nil)
	if err != nil {
		return err
	}
	f.token = h.Get("X-Auth-Token")
	for _, path := range []string{
		"/redfish/v1/Systems", f.system, f.system + "/Processors?$expand=.($levels=1)", f.system + "/Memory?$expand=.($levels=1)",
		f.system + "/EthernetInterfaces?$expand=.($levels=1)", f.system + "/Storage?$expand=.($levels=2)",
		"/redfish/v1/Managers?$expand=.($levels=1)",
	} {
		if _, err := f.request(http.MethodGet, path, nil, &map[string]any{}); err != nil {
			return err
		}
	}
	if err := f.powerOn(); err != nil {
		return err
	}
	return f.poll()
}

func (f *floor) powerOn() error {
	boot := map[string]any{"Boot": map[string]string{"BootSourceOverrideEnabled": "Once", "BootSourceOverrideTarget": "UefiHttp"}}
	if _, err := f.request(http.MethodPatch, f.system, boot, nil); err != nil {
		return err
	}
	return f.reset("On")
}

func (f *floor) reset(kind string) error {
	_, err := f.request(http.MethodPost, f.system+"/Actions/ComputerSystem.Reset", map[string]string{"ResetType": kind}, nil)
	return err
}

func (f *floor) claim() error {
	if err := f.reset("ForceOff"); err != nil {
		return err
	}
	return f.powerOn()
}

func (f *floor) poll() error {
	var system struct{ PowerState string }
	_, err := f.request(http.MethodGet, f.system, nil, &system)
	return err
}

func (o yardstickOrder) freshClient() error {
	url := o.Systems[0]
	for range freshClients {
		client, err := gofish.Connect(gofish.ClientConfig{
			Endpoint: url[:strings.Index(url, "/redfish/")], Username: o.Username, Password: o.Password, Insecure: true, BasicAuth: true,
		})
		if err != nil {
			return err
		}
		systems, err := client.Service.Systems()
		if err != nil {
			return err
		}
		if len(systems) == 0 || systems[0].PowerState == "" {
			return fmt.Errorf("%s shows no power state", url)
		}
		client.Logout()
	}
	return nil
}
