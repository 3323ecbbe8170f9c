package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"ingot/cmd/metalprobe/install"
	"ingot/cmd/metalprobe/install/efi"
	"ingot/cmd/metalprobe/inventory"
	"ingot/cmd/metalprobe/machine"
	"ingot/cmd/metalprobe/wipe"
	"ingot/model"
	"ingot/model/must"
)

const (
	uuid  = "4C4C4544-0042-4310-8031-B3C04F313233" // sent as it is
	token = "mzxw6ytboi7xk3tforsgk3tfnq"
)

func TestParse(t *testing.T) {
	defaults := options{
		registryURL: "http://192.0.2.1:10000/r/" + token, serverUUID: uuid, timeout: 5 * time.Second,
		lldpInterval: 5 * time.Second, lldpDuration: 30 * time.Second, duration: 5 * time.Second, interval: 30 * time.Second,
	}
	changed := func(change func(*options)) options {
		o := defaults
		change(&o)
		return o
	}
	url, id := "--registry-url="+defaults.registryURL, "--server-uuid="+uuid
	tests := map[string]struct {
		args []string
		want options
		err  string // part of it
	}{
		"two dashes":            {args: []string{url, id}, want: defaults},
		"one dash, and a space": {args: []string{"-registry-url", defaults.registryURL, "-server-uuid", uuid}, want: defaults},
		"upstream's flags": {
			args: []string{url, id, "--duration=1s", "--registry-client-timeout=2s", "--lldp-sync-interval=3s", "--lldp-sync-duration=4s"},
			want: changed(func(o *options) {
				o.duration, o.timeout, o.lldpInterval, o.lldpDuration = time.Second, 2*time.Second, 3*time.Second, 4*time.Second
			}),
		},
		"a wipe": {
			args: []string{url, id, "--wipe=quick", "--report-url=http://192.0.2.1:10000/r/x/wipe"},
			want: changed(func(o *options) { o.wipe, o.reportURL = "quick", "http://192.0.2.1:10000/r/x/wipe" }),
		},
		"a machine that ends with its wipe": {
			args: []string{url, id, "--wipe=secure", "--report-url=http://h/wipe", "--power-off"},
			want: changed(func(o *options) { o.wipe, o.reportURL, o.powerOff = "secure", "http://h/wipe", true }),
		},
		"an install": {
			args: []string{url, id, "--install=http://192.0.2.1:8080/install/u/t/document"},
			want: changed(func(o *options) { o.install = "http://192.0.2.1:8080/install/u/t/document" }),
		},
		"a claim": {
			args: []string{id, "--boot-state-url=" + defaults.registryURL},
			want: changed(func(o *options) { o.registryURL, o.bootStateURL = "", defaults.registryURL }),
		},
		"a claim and a wipe": {
			args: []string{url, id, "--boot-state-url=http://h/", "--wipe=quick", "--report-url=http://h/"}, err: "--boot-state-url does not go with --install or --wipe",
		},
		"a claim of nowhere":      {args: []string{id, "--boot-state-url=" + token}, err: "--boot-state-url is not an address"},
		"an install from nowhere": {args: []string{url, id, "--install=" + token}, err: "--install is not an address"},
		"an install and a wipe": {
			args: []string{url, id, "--install=http://h/", "--wipe=quick", "--report-url=http://h/"}, err: "--install and --wipe do not go together",
		},
		"a machine that would, and is only to register": {
			args: []string{url, id, "--power-off"}, want: changed(func(o *options) { o.powerOff = true }),
		},
		"no registry": {args: []string{id}, err: "--registry-url is required"},
		"no UUID":     {args: []string{url}, err: "--server-uuid is required"},
		"an address that is none": {
			args: []string{id, "--registry-url=192.0.2.1/" + token}, err: "--registry-url is not an address",
		},
		"an address that cannot be read": {args: []string{id, "--registry-url=http://[/" + token}, err: "--registry-url is not an address"},
		"a wipe that nobody asks for": {
			args: []string{url, id, "--report-url=http://h/"}, err: "nothing is wiped unless --wipe says how",
		},
		"a wipe without a report": {args: []string{url, id, "--wipe=quick"}, err: "--report-url is required"},
		"an unknown wipe": {
			args: []string{url, id, "--wipe=all"}, err: `--wipe "all" is not known: use none, quick, secure`,
		},
		"printing and wiping":    {args: []string{"--json", "--wipe=quick"}, err: "--json only prints"},
		"a dry run of nothing":   {args: []string{"--dry-run"}, err: "--dry-run needs --wipe"},
		"an unknown flag":        {args: []string{"--x"}, err: "flag provided but not defined: -x; see metalprobe -h"},
		"an argument":            {args: []string{url, id, "now"}, err: `argument "now" is not expected`},
		"an interval of nothing": {args: []string{url, id, "--interval=0"}, err: "must be longer than 0"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := parse(test.args, io.Discard)
			switch {
			case test.err == "" && err != nil:
				t.Fatal(err)
			case test.err != "" && (err == nil || !strings.Contains(err.Error(), test.err)):
				t.Fatalf("got error %v, want %q", err, test.err)
			case err != nil && strings.Contains(err.Error(), token):
				t.Fatalf("error %q shows the token", err)
			case test.err != "":
				return
			}
			if diff := gocmp.Diff(test.want, got, gocmp.AllowUnexported(options{})); diff != "" {
				t.Errorf("options (-want +got):\n%s", diff)
			}
		})
	}
}

func TestHelpTeachesAndIsNoFailure(t *testing.T) {
	for _, flag := range []string{"-h", "--help"} {
		var out bytes.Buffer
		if err := run(t.Context(), []string{flag}, io.Discard, &out); err != nil {
			t.Errorf("%s: %v", flag, err)
		}
		for _, want := range []string{"THIS DESTROYS DATA", "-registry-url", "-wipe", "-power-off", "(default 30s)"} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%s does not mention %q", flag, want)
			}
		}
	}
}

// world is an agent on a machine with no disks, and what it posted.
type world struct {
	*agent
	log    *syncBuffer
	posted []any // bodies, in order
	times  []time.Time
	answer func(n int) error // to the nth post, from 1; nil = accepted
	lldp   func(n int) (string, error)
	asked  int // how often lldpctl was
}

func newWorld(t *testing.T, args ...string) *world {
	t.Helper()
	o := must.Get(parse(append([]string{"--registry-url=http://h/r/" + token, "--server-uuid=" + uuid}, args...), io.Discard))(t)
	w := &world{log: &syncBuffer{}}
	log := slog.New(slog.NewTextHandler(w.log, nil))
	w.agent = &agent{options: o, log: log, wiper: wipe.Local(log)}
	w.firmware = func() (efi.Variables, error) { return efi.Variables{}, efi.ErrNone }
	w.host = &inventory.Host{
		Root:       t.TempDir(),
		Interfaces: func() ([]inventory.Interface, error) { return nil, nil },
		LLDP: func(context.Context) ([]byte, error) {
			if w.lldp == nil {
				return nil, inventory.ErrNoLLDP
			}
			w.asked++
			out, err := w.lldp(w.asked)
			return []byte(out), err
		},
		Log: log,
	}
	w.choose = func() []wipe.Choice { return wipe.Choose(w.host.Disks(), nil, o.wipe) }
	w.post = func(_ context.Context, address string, body any) error {
		if _, progress := body.(model.ProbeWipeProgress); progress {
			return nil
		}
		w.posted, w.times = append(w.posted, body), append(w.times, time.Now())
		if w.answer == nil {
			return nil
		}
		return w.answer(len(w.posted))
	}
	return w
}

type syncBuffer struct {
	mu sync.Mutex
	bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.String()
}

const neighbor = `{"lldp":{"interface":{"eth0":{"chassis":{"leaf-1":{"id":"c"}},"port":{"id":"p"}}}}}`

func (w *world) during(t *testing.T, while time.Duration) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), while)
	defer cancel()
	return w.register(ctx)
}

func (w *world) registrations(t *testing.T) []model.ProbeRegistration {
	t.Helper()
	var list []model.ProbeRegistration
	for _, body := range w.posted {
		list = append(list, body.(model.ProbeRegistration))
	}
	return list
}

func TestTheFirstPostDecides(t *testing.T) {
	w := newWorld(t)
	w.answer = func(int) error { return errors.New("answered 500") }
	if err := w.register(t.Context()); err == nil || !strings.Contains(err.Error(), "answered 500") {
		t.Errorf("got %v, want what the registry answered", err)
	}
	if len(w.posted) != 1 {
		t.Errorf("%d posts, want one attempt", len(w.posted))
	}
}

func TestTheProbePostsAgainAndAlwaysWithTheTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.answer = func(n int) error {
			if n == 2 {
				return errors.New("answered 503")
			}
			return nil
		}
		w.lldp = func(n int) (string, error) {
			if n == 1 {
				return neighbor, nil
			}
			return "", errors.New("lldpd died")
		}
		must.Do(t, w.during(t, 100*time.Second))
		got := w.registrations(t)
		if len(got) != 4 { // at 0, 30, 60 and 90 s
			t.Fatalf("%d posts, want 4", len(got))
		}
		for i, r := range got {
			if r.SystemUUID != uuid {
				t.Errorf("post %d: UUID %q, want it as it was given", i, r.SystemUUID)
			}
			if want := got[0].Data.Timestamp.Add(time.Duration(i) * 30 * time.Second); !r.Data.Timestamp.Equal(want) {
				t.Errorf("post %d: timestamp %v, want %v", i, r.Data.Timestamp, want)
			}
			if len(r.Data.LLDP) != 1 {
				t.Errorf("post %d: neighbours %v, want the one seen last", i, r.Data.LLDP)
			}
		}
		if n := strings.Count(w.log.String(), "not registered again"); n != 1 {
			t.Errorf("%d failures logged, want 1:\n%s", n, w.log)
		}
	})
}

func TestWaitingForNeighbours(t *testing.T) {
	tests := map[string]struct {
		lldp func(n int) (string, error)
		want time.Duration // until the first post
	}{
		"without an LLDP daemon there is no wait": {nil, 0},
		"a neighbour ends the wait": {func(n int) (string, error) {
			if n < 3 {
				return `{"lldp":{}}`, nil
			}
			return neighbor, nil
		}, 10 * time.Second},
		"the wait has an end":               {func(int) (string, error) { return `{"lldp":{}}`, nil }, 30 * time.Second},
		"a daemon that fails may come back": {func(int) (string, error) { return "", errors.New("no socket") }, 30 * time.Second},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, "--once")
				w.lldp = test.lldp
				began := time.Now()
				must.Do(t, w.register(t.Context()))
				if got := w.times[0].Sub(began); got != test.want {
					t.Errorf("first post after %v, want %v", got, test.want)
				}
			})
		})
	}
}

func TestCleanUpReportsUntilItIsHeard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "--wipe=none", "--report-url=http://h/r/"+token+"/wipe", "--once")
		w.answer = func(n int) error { // the registration fails, too
			if n < 12 {
				return errors.New("connection refused")
			}
			return nil
		}
		must.Do(t, w.cleanUp(t.Context()))
		var waits []time.Duration
		for i := 2; i < len(w.times); i++ {
			waits = append(waits, w.times[i].Sub(w.times[i-1])/time.Second)
		}
		if diff := gocmp.Diff([]time.Duration{1, 2, 4, 8, 16, 32, 60, 60, 60, 60}, waits); diff != "" {
			t.Errorf("seconds between reports (-want +got):\n%s", diff)
		}
		want := model.ProbeWipe{SystemUUID: uuid, Mode: "none", Disks: []model.DiskWipe{}}
		if diff := gocmp.Diff(want, w.posted[len(w.posted)-1]); diff != "" {
			t.Errorf("report (-want +got):\n%s", diff)
		}
	})
}

func TestCleanUpReportsUntilItIsStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "--wipe=none", "--report-url=http://h/r/"+token+"/wipe")
		w.answer = func(int) error { return errors.New("answered 404") }
		ctx, cancel := context.WithTimeout(t.Context(), 48*time.Hour)
		defer cancel()
		began := time.Now()
		err := w.cleanUp(ctx)
		if err == nil || !strings.Contains(err.Error(), "answered 404") {
			t.Errorf("got %v", err)
		}
		if took := time.Since(began); took != 48*time.Hour {
			t.Errorf("gave up after %v", took)
		}
	})
}

func TestTheMachineIsPoweredOffOnlyWhenAllIsWell(t *testing.T) {
	wiped := model.DiskWipe{Name: "sda", Result: model.WipeDone}
	skipped := model.DiskWipe{Name: "sdb", Result: model.WipeSkipped}
	failed := model.DiskWipe{Name: "sdc", Serial: "S3", Result: model.WipeFailed, Error: "it is locked"}
	for _, tc := range []struct {
		title string
		flags []string
		disks []model.DiskWipe
		off   bool
	}{
		{"every disk is wiped or needs it not", []string{"--power-off"}, []model.DiskWipe{wiped, skipped}, true},
		{"there is no disk", []string{"--power-off"}, nil, true},
		{"a disk has failed", []string{"--power-off"}, []model.DiskWipe{wiped, failed}, false},
		{"nobody asked", nil, []model.DiskWipe{wiped}, false},
	} {
		t.Run(tc.title, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, append(tc.flags, "--wipe=quick", "--report-url=http://h/r/"+token+"/wipe")...)
				w.choose = func() []wipe.Choice {
					var list []wipe.Choice
					for _, d := range tc.disks {
						list = append(list, wipe.Choice{
							Disk:   inventory.Disk{ProbeDisk: model.ProbeDisk{Name: d.Name, Serial: d.Serial}},
							Result: cmp.Or(map[bool]string{true: model.WipeSkipped}[d.Result == model.WipeDone], d.Result), Why: d.Error,
						})
					}
					return list
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				began := time.Now()
				err := w.cleanUp(ctx)
				if errors.Is(err, machine.ErrPowerOff) != tc.off {
					t.Errorf("got %v, want power off %v", err, tc.off)
				}
				if stayed := time.Since(began) == time.Hour; stayed == tc.off {
					t.Errorf("the machine stayed on: %v", stayed)
				}
				if says := strings.Contains(w.log.String(), "sdc (S3): it is locked"); says != slices.Contains(tc.disks, failed) {
					t.Errorf("the console says:\n%s", w.log)
				}
			})
		})
	}
}

func TestAMachineThatIsInstalledIsPoweredOff(t *testing.T) {
	document := model.InstallDocument{Version: model.InstallVersion, Install: "i", Image: model.DiskImage{Bytes: 1}, Hints: []string{"seriel=1"}}
	daemon := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(document) }))
	defer daemon.Close()
	for name, test := range map[string]struct {
		flags []string
		want  error
	}{
		"as the image that Ingot boots asks for": {[]string{"--power-off"}, machine.ErrPowerOff},
		"and stays on by hand":                   {nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, append(test.flags, "--install="+daemon.URL+"/"+token)...)
			var address string
			post := w.post
			w.post = func(ctx context.Context, to string, body any) error {
				address = to
				return post(ctx, to, body)
			}
			w.installer = func(post install.Post) install.Installer {
				return install.Installer{Product: func() string { return "" }, Post: post, Log: w.agent.log}
			}
			if err := w.do(t.Context(), io.Discard); !errors.Is(err, test.want) || test.want == nil && err != nil {
				t.Errorf("got %v, want %v", err, test.want)
			}
			last, _ := w.posted[len(w.posted)-1].(model.ProbeInstall)
			if last.Reason == "" || last.Install != "i" || last.SystemUUID != uuid || address != "http://h/r/"+token+"/install" {
				t.Errorf("reported to %s: %+v", address, last)
			}
			if strings.Contains(w.log.String(), token) {
				t.Errorf("the log shows the token:\n%s", w.log)
			}
		})
	}
}

func TestAClaimedMachineReportsThatItIsUpAndStaysOn(t *testing.T) {
	for title, answer := range map[string]error{"taken": nil, "refused": errors.New("answered 500")} {
		t.Run(title, func(t *testing.T) {
			w := newWorld(t, "--power-off", "--boot-state-url=http://h/r/"+token+"/bootstate")
			w.answer = func(int) error { return answer }
			if err := w.do(t.Context(), io.Discard); !errors.Is(err, answer) {
				t.Errorf("got %v, want %v", err, answer)
			}
			if diff := gocmp.Diff([]any{model.ProbeBootState{SystemUUID: uuid, Booted: true}}, w.posted); diff != "" {
				t.Errorf("posted (-want +got):\n%s", diff)
			}
			if strings.Contains(w.log.String(), token) {
				t.Errorf("the log shows the token:\n%s", w.log)
			}
		})
	}
}

func TestACleanupTakesBootEntriesAway(t *testing.T) {
	const name, vendor = "Boot0003", "-8be4df61-93ca-11d2-aa0d-00e098032b8c"
	for mode, kept := range map[string]bool{model.CleanupQuick: false, model.CleanupNone: true} {
		folder := t.TempDir()
		entry := append([]byte{7, 0, 0, 0}, efi.Option{Label: "Ingot web-1"}.Encode()...)
		must.Do(t, os.WriteFile(filepath.Join(folder, name+vendor), entry, 0o600))
		w := newWorld(t, "--wipe="+mode, "--report-url=http://h/r/"+token+"/wipe", "--once")
		w.firmware = func() (efi.Variables, error) { return efi.Variables{Folder: folder}, nil }
		must.Do(t, w.cleanUp(t.Context()))
		if _, err := os.Stat(filepath.Join(folder, name+vendor)); (err == nil) != kept {
			t.Errorf("after mode %s the entry is there: %v, want %v\n%s", mode, err == nil, kept, w.log)
		}
	}
}

func TestDisksThatAppearDuringTheWipeAreWipedAsWell(t *testing.T) {
	choice := func(name, serial string) wipe.Choice {
		return wipe.Choice{
			Disk:   inventory.Disk{ProbeDisk: model.ProbeDisk{Name: name, Serial: serial}},
			Result: model.WipeFailed, Why: "it is " + serial,
		}
	}
	w := newWorld(t, "--wipe=quick", "--report-url=http://h/r/"+token+"/wipe", "--once")
	looked := 0
	w.choose = func() []wipe.Choice {
		looked++
		switch looked {
		case 1:
			return []wipe.Choice{choice("sda", "S1"), choice("sdb", "S2")}
		case 2: // one more, and another in the place of one
			return []wipe.Choice{choice("sda", "S1"), choice("sdb", "S4"), choice("sdc", "S3")}
		}
		return []wipe.Choice{choice("sda", "S1"), choice("sdc", "S3")}
	}
	must.Do(t, w.cleanUp(t.Context()))
	var got []string
	for _, d := range w.posted[len(w.posted)-1].(model.ProbeWipe).Disks {
		got = append(got, d.Name+" "+d.Serial)
	}
	if diff := gocmp.Diff([]string{"sda S1", "sdb S2", "sdb S4", "sdc S3"}, got); diff != "" {
		t.Errorf("disks in the report (-want +got):\n%s", diff)
	}
}

func TestProgressURL(t *testing.T) {
	for report, want := range map[string]string{
		"http://192.0.2.1:10000/r/" + token + "/wipe":      "http://192.0.2.1:10000/r/" + token + "/wipe-progress",
		"https://[2001:db8::1]/ingot/r/" + token + "/wipe": "https://[2001:db8::1]/ingot/r/" + token + "/wipe-progress",
	} {
		if got, err := progressURL(report); got != want || err != nil {
			t.Errorf("got %s, %v, want %s", got, err, want)
		}
	}
	if _, err := progressURL("http://[/" + token); err == nil || strings.Contains(err.Error(), token) {
		t.Errorf("error %v", err)
	}
}

func TestProgressIsPostedInGoodTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var posts []string
		log := &syncBuffer{}
		r := newProgressReporter(func(_ context.Context, disks []model.DiskProgress) error {
			posts = append(posts, fmt.Sprintf("%v %s %d", time.Since(began), disks[0].Method, disks[0].Percent))
			return errors.New("answered 404")
		}, slog.New(slog.NewTextHandler(log, nil)))
		ctx, cancel := context.WithCancel(t.Context())
		var done sync.WaitGroup
		done.Go(func() { r.run(ctx) })
		at := func(after time.Duration, method string, percent int, urgent bool) {
			time.Sleep(time.Until(began.Add(after)))
			r.watch([]model.DiskProgress{{Method: method, Percent: percent}}, urgent)
			synctest.Wait()
		}
		at(100*time.Millisecond, "nvme-sanitize-block", 0, true)
		at(200*time.Millisecond, "nvme-sanitize-block", 1, false)
		at(300*time.Millisecond, "nvme-format", 0, true) // not a second after the last
		for i := range 25 {
			at(time.Duration(2+i)*time.Second-time.Second/2, "nvme-format", i, false)
		}
		at(26500*time.Millisecond, "nvme-format", 100, true)
		time.Sleep(150 * time.Second) // in which no disk gets further
		cancel()
		done.Wait()
		want := []string{
			"100ms nvme-sanitize-block 0", "1.1s nvme-format 0", "10s nvme-format 8", "20s nvme-format 18", "26.5s nvme-format 100",
			"1m30s nvme-format 100", "2m30s nvme-format 100", // signs of life
		}
		if diff := gocmp.Diff(want, posts); diff != "" {
			t.Errorf("posts (-want +got):\n%s", diff)
		}
		if n := strings.Count(log.String(), "could not be posted"); n != 1 {
			t.Errorf("%d failures logged, want one:\n%s", n, log)
		}
	})
}

func TestAnInterruptedWipeIsNotReported(t *testing.T) {
	w := newWorld(t, "--wipe=quick", "--report-url=http://h/wipe")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := w.cleanUp(ctx); err == nil || len(w.posted) != 1 {
		t.Errorf("error %v after %d posts, want an error after the registration", err, len(w.posted))
	}
}

func TestWhatCountsAsAccepted(t *testing.T) {
	for status, want := range map[int]bool{
		200: true, 201: true, 202: false, 204: false, 301: false, 307: false, 400: false, 404: false, 500: false,
	} {
		registry := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/elsewhere" {
				return // accepts anything
			}
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(status)
			io.WriteString(w, "why\nand more")
		}))
		err := newClient(5*time.Second).post(t.Context(), registry.URL+"/r/"+token+"/register", 1)
		registry.Close()
		if (err == nil) != want {
			t.Errorf("%d: got %v, want accepted %v", status, err, want)
		}
		if err != nil && (strings.Contains(err.Error(), token) || strings.Contains(err.Error(), "and more")) {
			t.Errorf("%d: error %q", status, err)
		}
	}
}

func TestErrorsDoNotShowTheToken(t *testing.T) {
	silent := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer silent.Close()
	gone := httptest.NewServer(nil)
	gone.Close()
	for name, address := range map[string]string{
		"silence": "http://" + silent.Addr().String(), "connection refused": gone.URL,
		"no such scheme": "gopher://h", "no address": "http://[",
	} {
		err := newClient(50*time.Millisecond).post(t.Context(), address+"/r/"+token+"/register", 1)
		if err == nil || strings.Contains(err.Error(), token) {
			t.Errorf("%s: got %v, want an error without the token", name, err)
		}
	}
}

// TestOnTheWire runs the program against a registry, as upstream's wants it.
func TestOnTheWire(t *testing.T) {
	var got struct {
		method, path, contentType string
		length                    int64
		body                      map[string]any
	}
	registry := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got.method, got.path, got.contentType, got.length = r.Method, r.URL.Path, r.Header.Get("Content-Type"), r.ContentLength
		if err := json.NewDecoder(r.Body).Decode(&got.body); err != nil {
			t.Error(err)
		}
		w.WriteHeader(http.StatusCreated)
	}))
	defer registry.Close()
	var log syncBuffer
	args := []string{"--registry-url", registry.URL + "/r/" + token, "--server-uuid", uuid, "--once", "--lldp-sync-duration=0"}
	must.Do(t, run(t.Context(), args, io.Discard, &log))
	if got.method != "POST" || got.path != "/r/"+token+"/register" || got.contentType != "application/json" || got.length <= 0 {
		t.Errorf("request %+v", got)
	}
	if got.body["systemUUID"] != uuid {
		t.Errorf("systemUUID %v, want %s", got.body["systemUUID"], uuid)
	}
	data, _ := got.body["data"].(map[string]any)
	for _, key := range []string{"timestamp", "cpu", "networkInterfaces", "lldp", "storage", "nics"} {
		if data[key] == nil {
			t.Errorf("%s is missing or null", key)
		}
	}
	if _, err := time.Parse("2006-01-02T15:04:05Z", data["timestamp"].(string)); err != nil {
		t.Errorf("timestamp %v: want whole seconds in UTC", data["timestamp"])
	}
	if strings.Contains(log.String(), token) {
		t.Errorf("the log shows the token:\n%s", log.String())
	}
}

func TestPrinting(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), []string{"--version"}, &out, io.Discard); err != nil || !strings.HasPrefix(out.String(), "metalprobe ") {
		t.Errorf("--version: %q, %v", out.String(), err)
	}
	out.Reset()
	must.Do(t, run(t.Context(), []string{"--json"}, &out, io.Discard))
	var data model.ProbeData
	if err := json.Unmarshal(out.Bytes(), &data); err != nil || len(data.CPU) == 0 {
		t.Errorf("--json: %v, %s", err, out.String())
	}
	out.Reset()
	err := run(t.Context(), []string{"--wipe=quick", "--dry-run"}, &out, io.Discard)
	if err != nil || !strings.HasPrefix(out.String(), "DISK ") {
		t.Errorf("--dry-run: %q, %v", out.String(), err)
	}
}

// What a test sets by itself no test would miss in the agent of a machine.
func TestTheAgentOfAMachineHasAllItsParts(t *testing.T) {
	v := reflect.ValueOf(newAgent(options{}, slog.New(slog.DiscardHandler))).Elem()
	for i := range v.NumField() {
		if f := v.Field(i); f.Kind() == reflect.Func && f.IsNil() {
			t.Errorf("it has no %s", v.Type().Field(i).Name)
		}
	}
}
