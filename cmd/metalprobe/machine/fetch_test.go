package machine

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"ingot/model/must"
)

const secret = "mzxw6ytboi7xk3tforsgk3tfnq"

// tries notes what a seeker does.
type tries struct {
	mu  sync.Mutex
	log bytes.Buffer
}

func (a *tries) Write(p []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.log.Write(p)
}

func TestSeek(t *testing.T) {
	uplink4 := func(nic string, index int, url string) uplink {
		return uplink{nic: nic, index: index, family: 4, address: netip.MustParsePrefix("192.0.2.7/24"), url: url, preferred: true}
	}
	const at = "http://192.0.2.1/ignition/" + secret
	slow := uplink4("eth0", 2, "")
	slow.preferred = false
	six := uplink4("eth0", 2, "")
	six.family, six.address = 6, netip.MustParsePrefix("2001:db8::7/64")
	for title, tc := range map[string]struct {
		url     string
		uplinks []uplink
		later   []uplink // known after a minute
		reach   map[string]time.Duration
		want    string // card
		after   time.Duration
		says    string
	}{
		"the only uplink": {
			url: at, uplinks: []uplink{uplink4("eth0", 2, "")}, reach: map[string]time.Duration{"eth0": 0},
			want: "eth0",
		},
		"the card that reaches Ingot wins": {
			url: at, uplinks: []uplink{uplink4("eth0", 2, ""), uplink4("eth1", 3, "")},
			reach: map[string]time.Duration{"eth1": 0}, want: "eth1",
		},
		"the card that booted is ahead of others": {
			url: at, uplinks: []uplink{slow, uplink4("eth1", 3, "")},
			reach: map[string]time.Duration{"eth0": 0, "eth1": 2 * time.Second}, want: "eth1", after: 3 * time.Second,
		},
		"another card does when that has no uplink": {
			url: at, uplinks: []uplink{slow}, reach: map[string]time.Duration{"eth0": 0}, want: "eth0",
			after: preferredFirst,
		},
		"Ingot may come later": {
			url: at, uplinks: []uplink{uplink4("eth0", 2, "")},
			reach: map[string]time.Duration{"eth0": 100 * time.Second}, want: "eth0", after: 121 * time.Second,
			says: "Ignition is not fetched yet",
		},
		"a lease may come later": {
			url: at, later: []uplink{uplink4("eth0", 2, "")}, reach: map[string]time.Duration{"eth0": 0},
			want: "eth0", after: time.Minute,
		},
		"DHCP says where": {
			uplinks: []uplink{uplink4("eth0", 2, at)}, reach: map[string]time.Duration{"eth0": 0}, want: "eth0",
		},
		"DHCP says it at last": {
			uplinks: []uplink{uplink4("eth0", 2, "")}, later: []uplink{uplink4("eth0", 2, at)},
			reach: map[string]time.Duration{"eth0": 0}, want: "eth0", after: time.Minute,
			says: "is this server known to Ingot",
		},
		"an IPv4 address is not sought by IPv6": {
			url: at, uplinks: []uplink{six}, later: []uplink{uplink4("eth1", 3, "")},
			reach: map[string]time.Duration{"eth0": 0, "eth1": 0}, want: "eth1", after: time.Minute,
		},
		"a name is sought by both": {
			url: "http://ingot/ignition/" + secret, uplinks: []uplink{six},
			reach: map[string]time.Duration{"eth0": 0}, want: "eth0",
		},
		"an address on the command line that none": {
			url: "tftp://192.0.2.1/" + secret, uplinks: []uplink{uplink4("eth0", 2, at)},
			says: "no http or https address",
		},
	} {
		t.Run(title, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				record := &tries{}
				reach := newUplinks(filepath.Join(t.TempDir(), "resolv.conf"))
				for _, u := range tc.uplinks {
					reach.add(u, nil, nil)
				}
				get := func(_ context.Context, u uplink, address string) ([]byte, error) {
					if from, ok := tc.reach[u.nic]; ok && time.Since(began) >= from {
						return []byte(address), nil
					}
					return nil, errors.New("connection refused")
				}
				s := &seeker{url: tc.url, uplinks: reach, log: newLog(record), get: get}
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				time.AfterFunc(time.Minute, func() {
					for _, u := range tc.later {
						reach.add(u, nil, nil)
					}
				})
				f, err := s.seek(ctx)
				if f.uplink.nic != tc.want || (err != nil) != (tc.want == "") {
					t.Fatalf("by %q, error %v, want %q", f.uplink.nic, err, tc.want)
				}
				if took := time.Since(began); tc.want != "" && took != tc.after {
					t.Errorf("took %v, want %v", took, tc.after)
				}
				cancel()
				synctest.Wait()
				if text := record.log.String(); !strings.Contains(text, tc.says) || strings.Contains(text, secret) {
					t.Errorf("log says:\n%s", text)
				}
			})
		})
	}
}

func TestRoutesAndNameserversOfTheChosenWayComeFirst(t *testing.T) {
	file := filepath.Join(t.TempDir(), "resolv.conf")
	s := newUplinks(file)
	s.add(uplink{nic: "eth0", index: 2, family: 4}, nil, []netip.Addr{netip.MustParseAddr("192.0.2.53"), netip.MustParseAddr("192.0.2.54")})
	s.add(uplink{nic: "eth1", index: 3, family: 4}, nil,
		[]netip.Addr{netip.MustParseAddr("198.51.100.53"), netip.MustParseAddr("192.0.2.53")})
	s.add(uplink{nic: "eth1", index: 3, family: 6}, nil, []netip.Addr{netip.MustParseAddr("2001:db8::53")})
	check := func(want string) {
		t.Helper()
		got, err := os.ReadFile(file)
		if err != nil || string(got) != want {
			t.Errorf("resolv.conf is %q (%v), want %q", got, err, want)
		}
	}
	check("nameserver 192.0.2.53\nnameserver 192.0.2.54\nnameserver 198.51.100.53\n")
	must.Do(t, s.choose(uplink{nic: "eth1", index: 3, family: 4}))
	check("nameserver 198.51.100.53\nnameserver 192.0.2.53\nnameserver 192.0.2.54\n")
	s.remove("eth1", 4)
	check("nameserver 192.0.2.53\nnameserver 192.0.2.54\nnameserver 2001:db8::53\n")
}

func TestGet(t *testing.T) {
	for title, tc := range map[string]struct {
		serve http.HandlerFunc
		err   string
	}{
		"an Ignition":             {func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("{}")) }, ""},
		"no ticket":               {http.NotFound, "answered 404 Not Found: Ingot has no boot ticket"},
		"another server's ticket": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(403) }, "is not for this address"},
		"a fault":                 {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) }, "see Ingot's log"},
		"a redirect": {
			func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/elsewhere", http.StatusFound) },
			"redirects are not followed",
		},
		"more than an Ignition is": {
			func(w http.ResponseWriter, _ *http.Request) { w.Write(make([]byte, maxIgnition+1)) }, "it has more than",
		},
	} {
		t.Run(title, func(t *testing.T) {
			server := httptest.NewServer(tc.serve)
			defer server.Close()
			content, err := get(t.Context(), uplink{nic: "lo", family: 4}, server.URL+"/ignition/"+secret)
			if errors.Is(err, os.ErrPermission) {
				t.Skip("binding to an interface needs CAP_NET_RAW: ", err)
			}
			switch {
			case tc.err == "" && (err != nil || string(content) != "{}"):
				t.Errorf("got %q, %v", content, err)
			case tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err) || strings.Contains(err.Error(), secret)):
				t.Errorf("got error %v, want %q", err, tc.err)
			}
		})
	}
	closed := httptest.NewServer(nil)
	closed.Close()
	_, err := get(t.Context(), uplink{nic: "lo", family: 4}, closed.URL+"/"+secret)
	if err == nil || strings.Contains(err.Error(), secret) {
		t.Errorf("nobody listens: got %v", err)
	}
}

func TestLinesForAConsole(t *testing.T) {
	var b bytes.Buffer
	log := newLog(&b).With("interface", "eth0")
	log.Info("link is up", "mac", "a b", "n", 1)
	log.Warn("no lease", "err", errors.New("x\ny\x1b[2J"))
	log.Debug("why")
	log.Log(t.Context(), slog.LevelError, "gone")
	want := "link is up interface=eth0 mac=\"a b\" n=1\nWARN no lease interface=eth0 err=\"x\\ny\\x1b[2J\"\nERROR gone interface=eth0\n"
	if b.String() != want {
		t.Errorf("got\n%swant\n%s", b.String(), want)
	}
}
