package main

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
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"ingot/model/must"
)

// simMemory is how much memory 1,000 simulated BMCs may take, in MB.
const simMemory = 500

// BenchmarkSimMemory measures the resident memory of `ingot sim` with 1,000 BMCs, while each
// is polled over a TLS connection and a Redfish session of its own that are kept.
func BenchmarkSimMemory(b *testing.B) {
	const bmcs = 1000
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	pid, racks := startSim(ctx, b, bmcs)
	idle := residentMB(b, pid)
	clients := make([]*simClient, len(racks))
	for i, r := range racks {
		clients[i] = &simClient{url: r.URL, http: &http.Client{Transport: &http.Transport{
			TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, MaxIdleConnsPerHost: 1,
		}}}
		defer clients[i].http.CloseIdleConnections()
	}
	each(ctx, b, clients, (*simClient).login)
	for b.Loop() {
		each(ctx, b, clients, (*simClient).poll)
	}
	busy := residentMB(b, pid)
	b.ReportMetric(idle, "MB-idle")
	b.ReportMetric(busy, "MB")
	if busy > simMemory {
		b.Errorf("%d BMCs take %.0f MB, want at most %d", bmcs, busy, simMemory)
	}
}

func startSim(ctx context.Context, b *testing.B, bmcs int) (pid int, racks []simulated) {
	b.Helper()
	cmd := exec.CommandContext(ctx, "ingot", "sim", "--fast", "--systems=1", "--output=json", "--bmcs="+strconv.Itoa(bmcs))
	out := must.Get(cmd.StdoutPipe())(b)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	must.Do(b, cmd.Start())
	b.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
	})
	if err := json.NewDecoder(out).Decode(&racks); err != nil || len(racks) != bmcs {
		b.Fatalf("%d BMCs, %v: %s", len(racks), err, stderr.String())
	}
	return cmd.Process.Pid, racks
}

func each(ctx context.Context, b *testing.B, clients []*simClient, do func(*simClient, context.Context) error) {
	b.Helper()
	var group errgroup.Group
	group.SetLimit(16)
	for _, c := range clients {
		group.Go(func() error { return do(c, ctx) })
	}
	must.Do(b, group.Wait())
}

// simClient is a client of one BMC.
type simClient struct {
	url, token string
	http       *http.Client
}

func (c *simClient) login(ctx context.Context) error {
	header, err := c.do(ctx, http.MethodPost, "/redfish/v1/SessionService/Sessions", `{"UserName":"admin","Password":"ingot-sim"}`)
	c.token = header.Get("X-Auth-Token")
	return err
}

func (c *simClient) poll(ctx context.Context) error {
	for _, below := range []string{"", "/Memory?$expand=.($levels=1)", "/Storage?$expand=.($levels=2)"} {
		if _, err := c.do(ctx, http.MethodGet, "/redfish/v1/Systems/1"+below, ""); err != nil {
			return err
		}
	}
	return nil
}

func (c *simClient) do(ctx context.Context, method, path, body string) (http.Header, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.url+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("X-Auth-Token", c.token)
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return nil, err
	}
	if resp.StatusCode/100 != 2 {
		return nil, fmt.Errorf("%s %s: %s", method, path, resp.Status)
	}
	return resp.Header, nil
}

func residentMB(b *testing.B, pid int) float64 {
	b.Helper()
	status, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		b.Skipf("no memory to be read here: %v", err)
	}
	for line := range strings.Lines(string(status)) {
		if rest, found := strings.CutPrefix(line, "VmRSS:"); found {
			kb, err := strconv.Atoi(strings.Fields(rest)[0])
			if err != nil {
				b.Fatal(err)
			}
			return float64(kb) / 1024
		}
	}
	b.Fatal("/proc says no VmRSS")
	return 0
}
