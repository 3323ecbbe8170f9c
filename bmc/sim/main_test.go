package sim_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"net/http"
	"testing"
	"time"

	"go.uber.org/goleak"

	"ingot/bmc/sim"
	"ingot/model"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long a test waits for what must happen.
const patience = 10 * time.Second

// quick are delays of next to nothing.
func quick() sim.Delays {
	return sim.Delays{Boot: 5 * time.Millisecond, ProbeRestart: 20 * time.Millisecond, ProbeRepeat: 30 * time.Millisecond}
}

// start runs a rack until the test ends.
func start(t *testing.T, o sim.Options) *sim.Rack {
	t.Helper()
	if o.Delays == (sim.Delays{}) {
		o.Delays = quick()
	}
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

// client speaks raw Redfish with one BMC.
type client struct {
	t    *testing.T
	bmc  *sim.BMC
	http *http.Client
}

func dial(t *testing.T, b *sim.BMC) *client {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	t.Cleanup(transport.CloseIdleConnections)
	return &client{t: t, bmc: b, http: &http.Client{Transport: transport, Timeout: patience}}
}

// answer is what a BMC answered.
type answer struct {
	status int
	header http.Header
	body   map[string]any
}

// messageIDs are those of the extended error information.
func (a answer) messageIDs() []string {
	e, _ := a.body["error"].(map[string]any)
	list, _ := e["@Message.ExtendedInfo"].([]any)
	var ids []string
	for _, m := range list {
		ids = append(ids, m.(map[string]any)["MessageId"].(string))
	}
	return ids
}

// do sends a request with the BMC's credentials; header is key, value, …; "" as
// the value of Authorization sends none.
func (c *client) do(method, path, body string, header ...string) answer {
	c.t.Helper()
	a, err := c.try(method, path, body, header...)
	if err != nil {
		c.t.Fatalf("%s %s: %v", method, path, err)
	}
	return a
}

func (c *client) try(method, path, body string, header ...string) (answer, error) {
	req, err := http.NewRequestWithContext(context.Background(), method, "https://"+c.bmc.Addr()+path, bytes.NewReader([]byte(body)))
	if err != nil {
		return answer{}, err
	}
	target := c.bmc.Target()
	req.SetBasicAuth(target.Username, target.Password.Reveal())
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
		if header[i+1] == "" || header[i] == "X-Auth-Token" {
			req.Header.Del("Authorization")
		}
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		return answer{}, err
	}
	a := answer{status: resp.StatusCode, header: resp.Header}
	if len(raw) > 0 && resp.Header.Get("Content-Type") != "application/xml; charset=utf-8" {
		if err := json.Unmarshal(raw, &a.body); err != nil {
			c.t.Fatalf("%s %s: body is no JSON: %v\n%s", method, path, err, raw)
		}
	}
	return a, nil
}

// get reads a resource that must be there.
func (c *client) get(path string) map[string]any {
	c.t.Helper()
	a := c.do("GET", path, "")
	if a.status != http.StatusOK {
		c.t.Fatalf("GET %s: %d", path, a.status)
	}
	return a.body
}

// bootOnce asks for one network boot and switches the server on.
func bootOnce(t *testing.T, s *sim.Server) {
	t.Helper()
	c := dial(t, s.BMC())
	a := c.do("PATCH", s.URI(), `{"Boot":{"BootSourceOverrideEnabled":"Once","BootSourceOverrideTarget":"Pxe"}}`)
	if a.status != http.StatusOK {
		t.Fatalf("override: %d %v", a.status, a.body)
	}
	reset(t, s, "On")
}

// reset asks for a reset that must be taken.
func reset(t *testing.T, s *sim.Server, kind string) {
	t.Helper()
	a := dial(t, s.BMC()).do("POST", s.URI()+"/Actions/ComputerSystem.Reset", `{"ResetType":"`+kind+`"}`)
	if a.status != http.StatusNoContent {
		t.Fatalf("reset %s: %d %v", kind, a.status, a.body)
	}
}

// lastBoot is the newest boot once it has come to something.
func lastBoot(t *testing.T, s *sim.Server, boots int) sim.BootRecord {
	t.Helper()
	var last sim.BootRecord
	eventually(t, "a boot comes to something", func() bool {
		all := s.Boots()
		if len(all) < boots {
			return false
		}
		last = all[len(all)-1]
		return last.Outcome != ""
	})
	return last
}

func powered(t *testing.T, s *sim.Server, want model.Power) {
	t.Helper()
	eventually(t, "power "+string(want), func() bool { return s.Power() == want })
}
