// Package simtest is what the tests of the rack and those of its virtual machines share.
package simtest

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"net/http"
	"testing"
	"time"

	"ingot/bmc/sim"
	"ingot/model"
)

// Timeout is how long a test waits for what must happen.
const Timeout = 10 * time.Second

// Start runs a rack until the test ends.
func Start(t *testing.T, o sim.Options) *sim.Rack {
	t.Helper()
	rack, err := sim.New(o)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	ctx, cancel := context.WithCancel(context.Background())
	go func() { done <- rack.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	return rack
}

// Eventually waits until cond holds.
func Eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	deadline := time.Now().Add(Timeout)
	for !cond() {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s", Timeout, what)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// Powered waits until a server's power state is the wanted one.
func Powered(t *testing.T, s *sim.Server, want model.Power) {
	t.Helper()
	Eventually(t, "power "+string(want), func() bool { return s.Power() == want })
}

// Client speaks raw Redfish with one BMC.
type Client struct {
	t    *testing.T
	BMC  *sim.BMC
	HTTP *http.Client
}

// Dial returns a client of a BMC, with the BMC's credentials.
func Dial(t *testing.T, b *sim.BMC) *Client {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	t.Cleanup(transport.CloseIdleConnections)
	return &Client{t: t, BMC: b, HTTP: &http.Client{Transport: transport, Timeout: Timeout}}
}

// Answer is a BMC's answer.
type Answer struct {
	Status int
	Header http.Header
	Body   map[string]any // of a resource or an error, nil if there is none
}

// MessageIDs returns those of the extended error information.
func (a Answer) MessageIDs() []string {
	e, _ := a.Body["error"].(map[string]any)
	list, _ := e["@Message.ExtendedInfo"].([]any)
	var ids []string
	for _, m := range list {
		ids = append(ids, m.(map[string]any)["MessageId"].(string))
	}
	return ids
}

// Do sends a request with the BMC's credentials; header is key, value, …; "" as the value
// of Authorization sends none.
func (c *Client) Do(method, path, body string, header ...string) Answer {
	c.t.Helper()
	a, err := c.Try(method, path, body, header...)
	if err != nil {
		c.t.Fatalf("%s %s: %v", method, path, err)
	}
	return a
}

// Try is Do for a request that may fail.
func (c *Client) Try(method, path, body string, header ...string) (Answer, error) {
	req, err := http.NewRequestWithContext(context.Background(), method, "https://"+c.BMC.Addr()+path, bytes.NewReader([]byte(body)))
	if err != nil {
		return Answer{}, err
	}
	target := c.BMC.Target()
	req.SetBasicAuth(target.Username, target.Password.Reveal())
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
		if header[i+1] == "" || header[i] == "X-Auth-Token" {
			req.Header.Del("Authorization")
		}
	}
	resp, err := c.HTTP.Do(req)
	if err != nil {
		return Answer{}, err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		return Answer{}, err
	}
	a := Answer{Status: resp.StatusCode, Header: resp.Header}
	if len(raw) > 0 && resp.Header.Get("Content-Type") != "application/xml; charset=utf-8" {
		if err := json.Unmarshal(raw, &a.Body); err != nil {
			c.t.Fatalf("%s %s: body is no JSON: %v\n%s", method, path, err, raw)
		}
	}
	return a, nil
}

// Get reads a resource that must exist.
func (c *Client) Get(path string) map[string]any {
	c.t.Helper()
	a := c.Do(http.MethodGet, path, "")
	if a.Status != http.StatusOK {
		c.t.Fatalf("GET %s: %d", path, a.Status)
	}
	return a.Body
}

// TryReset asks for a reset, which the BMC may refuse.
func TryReset(t *testing.T, s *sim.Server, kind string) Answer {
	t.Helper()
	return Dial(t, s.BMC()).Do(http.MethodPost, s.URI()+"/Actions/ComputerSystem.Reset", `{"ResetType":"`+kind+`"}`)
}

// Reset asks for a reset, which the BMC must accept.
func Reset(t *testing.T, s *sim.Server, kind string) {
	t.Helper()
	if a := TryReset(t, s, kind); a.Status != http.StatusNoContent {
		t.Fatalf("reset %s: %d %v", kind, a.Status, a.Body)
	}
}
