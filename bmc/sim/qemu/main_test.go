package qemu_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"net/http"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"ingot/bmc/sim"
	"ingot/model"
)

func TestMain(m *testing.M) {
	if how, fake := os.LookupEnv(fakeQEMUMode); fake && len(os.Args) > 1 && os.Args[1] == "-accel" {
		os.Exit(fakeQEMU(how))
	}
	goleak.VerifyTestMain(m)
}

// patience is how long a test waits for what must happen.
const patience = 10 * time.Second

// start runs a rack until the test ends.
func start(t *testing.T, o sim.Options) *sim.Rack {
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

// eventually waits until cond holds.
func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for !cond() {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s", patience, what)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// redfish sends a request to the BMC of a server, and returns the status and the body.
func redfish(t *testing.T, s *sim.Server, method, path, body string) (status int, got map[string]any) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, "https://"+s.BMC().Addr()+path, bytes.NewReader([]byte(body)))
	if err != nil {
		t.Fatal(err)
	}
	target := s.BMC().Target()
	req.SetBasicAuth(target.Username, target.Password.Reveal())
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	defer transport.CloseIdleConnections()
	resp, err := (&http.Client{Transport: transport, Timeout: patience}).Do(req)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode == http.StatusNoContent {
		return resp.StatusCode, nil
	}
	if err := json.NewDecoder(resp.Body).Decode(&got); err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	return resp.StatusCode, got
}

// get reads a resource that must be there.
func get(t *testing.T, s *sim.Server, path string) map[string]any {
	t.Helper()
	status, body := redfish(t, s, http.MethodGet, path, "")
	if status != http.StatusOK {
		t.Fatalf("GET %s: %d", path, status)
	}
	return body
}

// reset asks for a reset that must be taken.
func reset(t *testing.T, s *sim.Server, kind string) {
	t.Helper()
	if status, body := askReset(t, s, kind); status != http.StatusNoContent {
		t.Fatalf("reset %s: %d %v", kind, status, body)
	}
}

// askReset asks for a reset.
func askReset(t *testing.T, s *sim.Server, kind string) (status int, body map[string]any) {
	t.Helper()
	return redfish(t, s, http.MethodPost, s.URI()+"/Actions/ComputerSystem.Reset", `{"ResetType":"`+kind+`"}`)
}

// set sets a fault that the server must take.
func set(t *testing.T, s *sim.Server, f sim.Fault) {
	t.Helper()
	if err := s.SetFault(f); err != nil {
		t.Fatal(err)
	}
}

func powered(t *testing.T, s *sim.Server, want model.Power) {
	t.Helper()
	eventually(t, "power "+string(want), func() bool { return s.Power() == want })
}
