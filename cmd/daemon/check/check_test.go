package check

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"ingot/bootsvc/dhcp"
	"ingot/cmd/daemon/config"
	"ingot/gitsource/gitserver"
	"ingot/model/must"
	"ingot/registry"
)

func TestClock(t *testing.T) {
	before := time.Date(2026, 1, 2, 3, 4, 5, 900e6, time.UTC)
	after := before.Add(200 * time.Millisecond)
	for name, tc := range map[string]struct {
		date time.Time
		want string
	}{
		"a date has whole seconds":     {before.Truncate(time.Second), "agrees"},
		"half a minute is nothing":     {after.Add(30 * time.Second), "agrees"},
		"a clock that is behind":       {after.Add(90 * time.Second), "1m30s behind"},
		"a clock that is ahead":        {before.Truncate(time.Second).Add(-time.Hour), "1h0m0s ahead of"},
		"a machine without a battery":  {before.AddDate(10, 0, 0), "behind"},
		"a little ahead, within a sec": {before.Truncate(time.Second).Add(-30 * time.Second), "agrees"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := clockResult(before, after, tc.date); !strings.Contains(got.Message, tc.want) || (got.Outcome == OK) != (tc.want == "agrees") {
				t.Errorf("got %+v, want %q", got, tc.want)
			}
		})
	}
}

func TestOtherDHCPServers(t *testing.T) {
	other, own := netip.MustParseAddr("192.0.2.9"), netip.MustParseAddr("192.0.2.2")
	for name, tc := range map[string]struct {
		mode   dhcp.Mode
		server netip.Addr
		err    error
		want   Outcome
	}{
		"nobody beside a server":       {dhcp.ModeServer, netip.Addr{}, nil, OK},
		"somebody beside a server":     {dhcp.ModeServer, other, nil, Wrong},
		"a server is what is meant":    {"", other, nil, Wrong},
		"somebody beside a proxy":      {dhcp.ModeProxy, other, nil, OK},
		"nobody beside a proxy":        {dhcp.ModeProxy, netip.Addr{}, nil, Wrong},
		"this machine itself":          {dhcp.ModeServer, own, nil, Skipped},
		"it is not permitted to ask":   {dhcp.ModeServer, netip.Addr{}, syscall.EPERM, Skipped},
		"an interface that is missing": {dhcp.ModeProxy, netip.Addr{}, errors.New("no such network interface"), Skipped},
	} {
		t.Run(name, func(t *testing.T) {
			n := dhcp.Network{Name: "rack", Interface: "eth0", Mode: tc.mode}
			if got := dhcpResult(n, tc.server, tc.err, []netip.Addr{own}); got.Outcome != tc.want || (got.Fix == "") != (tc.want != Wrong) {
				t.Errorf("got %+v, want %s", got, tc.want)
			}
		})
	}
}

func TestURLs(t *testing.T) {
	for name, tc := range map[string]struct {
		public string
		err    error
		want   Outcome
	}{
		"it leads here":                 {"http://192.0.2.1:8082", nil, OK},
		"it leads elsewhere":            {"http://192.0.2.1:8082", errors.New("something else answers there"), Wrong},
		"no server reaches loopback":    {"http://127.0.0.1:8082", nil, Wrong},
		"nor loopback by its name":      {"http://localhost:8082", nil, Wrong},
		"nor loopback of another kind":  {"http://[::1]:8082", nil, Wrong},
		"a name that leads here is one": {"http://boot.example.com", nil, OK},
	} {
		t.Run(name, func(t *testing.T) {
			if got := urlResult("boot.url", tc.public, tc.err); got.Outcome != tc.want {
				t.Errorf("got %+v, want %s", got, tc.want)
			}
		})
	}
}

func TestReach(t *testing.T) {
	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	if got := reach(t.Context(), "boot.url", other.URL, "127.0.0.1:0"); !strings.Contains(got.Message, "own") {
		t.Errorf("another loopback address: %+v", got)
	}
	if err := askNonce(t.Context(), other.URL, "nonce"); err == nil || !strings.Contains(err.Error(), "something else") {
		t.Errorf("another server answers: %v", err)
	}
	if got := reach(t.Context(), "boot.url", "", other.Listener.Addr().String()); got.Outcome != Skipped {
		t.Errorf("a port in use: %+v", got)
	}
}

func TestSpace(t *testing.T) {
	if got := spaceResult("space", "/srv", 10<<20, 20<<20); got.Outcome != Wrong || got.Message != "10 MiB are free at /srv" {
		t.Errorf("got %+v", got)
	}
	if got := spaceResult("space", "/srv", 20<<20, 20<<20); got.Outcome != OK {
		t.Errorf("got %+v", got)
	}
}

func TestListen(t *testing.T) {
	ln := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer ln.Close()
	taken := ln.Addr().String()
	if got := listenResult("boot.listen", taken, tryListen(t.Context(), "boot.listen", taken)); got.Outcome != Wrong || !strings.Contains(got.Message, "in use") {
		t.Errorf("got %+v", got)
	}
	if got := listenResult("tftp.listen", ":69", fmt.Errorf("listen: %w", syscall.EACCES)); !strings.Contains(got.Fix, "CAP_NET_BIND_SERVICE") {
		t.Errorf("got %+v", got)
	}
}

func TestStateAndStore(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	must.Do(t, os.WriteFile(file, nil, 0o600))
	outcome := func(stateDir string, look check) Outcome {
		o := config.Default()
		o.State.Dir = stateDir
		return look(t.Context(), &o)[0].Outcome
	}
	for name, tc := range map[string]struct {
		dir  string
		look check
		want Outcome
	}{
		"a folder that is there":         {dir, stateDir, OK},
		"a folder that can be made":      {filepath.Join(dir, "a", "b"), stateDir, OK},
		"a file in place of a folder":    {file, stateDir, Wrong},
		"a store that is made at first":  {dir, store, OK},
		"a seal key that is made, too":   {dir, sealKey, OK},
		"a seal key that others may see": {sealedFolder(t, 0o644), sealKey, Wrong},
		"a seal key that is none":        {sealedFolder(t, 0o600), sealKey, Wrong},
		"a store that another has open":  {lockedFolder(t), store, Skipped},
		"a store that cannot be opened":  {folderFor(t, "ingot.db"), store, Wrong},
		"a store that is there":          {storeIn(t), store, OK},
		"a store that is damaged":        {damagedFolder(t), store, Wrong},
	} {
		t.Run(name, func(t *testing.T) {
			if got := outcome(tc.dir, tc.look); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
	if files, _ := os.ReadDir(dir); len(files) != 1 {
		t.Errorf("the checks made files: %v", files)
	}
}

func TestNobodyIsToldToWriteOverASealKey(t *testing.T) {
	o := config.Default()
	o.State.Dir = sealedFolder(t, 0o644)
	if got := sealKey(t.Context(), &o)[0]; got.Outcome != Wrong || strings.Contains(got.Fix, "openssl") {
		t.Errorf("a key that others may read: %+v", got)
	}
	o.Redis.SealKeyFile = filepath.Join(t.TempDir(), "none")
	if got := sealKey(t.Context(), &o)[0]; got.Outcome != Wrong || !strings.Contains(got.Fix, "openssl") {
		t.Errorf("a key that is not there: %+v", got)
	}
}

func sealedFolder(t *testing.T, mode os.FileMode) string {
	t.Helper()
	dir := t.TempDir()
	must.Do(t, os.WriteFile(filepath.Join(dir, "seal.key"), []byte("short"), mode))
	return dir
}

// lockedFolder has a store that somebody else holds.
func lockedFolder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	f := must.Get(os.Create(filepath.Join(dir, "ingot.db")))(t)
	t.Cleanup(func() { f.Close() })
	must.Do(t, unix.Flock(int(f.Fd()), unix.LOCK_EX))
	return dir
}

// storeIn has a store that nobody has open.
func storeIn(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	r, err := registry.Open(t.Context(), registry.Options{Dir: dir, SealKey: []byte(strings.Repeat("k", 32))})
	if err == nil {
		err = r.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// damagedFolder has one whose pages are not as they were written.
func damagedFolder(t *testing.T) string {
	t.Helper()
	dir := storeIn(t)
	must.Do(t, os.WriteFile(filepath.Join(dir, "ingot.db"), []byte(strings.Repeat("x", 1<<16)), 0o600))
	return dir
}

func folderFor(t *testing.T, name string) string {
	t.Helper()
	dir := t.TempDir()
	must.Do(t, os.Mkdir(filepath.Join(dir, name), 0o755))
	return dir
}

func repository(t *testing.T) (repo *gitserver.Repo, o config.Options) {
	t.Helper()
	repo = must.Get(gitserver.New(t.TempDir(), "fleet"))(t)
	server := must.Get(repo.ServeHTTP(gitserver.HTTPOptions{Username: "ingot", Password: "right"}))(t)
	t.Cleanup(server.Close)
	o = config.Default()
	o.Git.URL = server.URL
	return repo, o
}

func withPassword(t *testing.T, o config.Options, password string) config.Options {
	t.Helper()
	dir := t.TempDir()
	o.Git.Auth.UsernameFile, o.Git.Auth.PasswordFile = filepath.Join(dir, "user"), filepath.Join(dir, "password")
	must.Do(t, errors.Join(
		os.WriteFile(o.Git.Auth.UsernameFile, []byte("ingot"), 0o600),
		os.WriteFile(o.Git.Auth.PasswordFile, []byte(password), 0o600),
	))
	return o
}

func outcomes(results []Result) map[string]Outcome {
	all := make(map[string]Outcome)
	for _, r := range results {
		all[r.Check] = r.Outcome
	}
	return all
}

func TestGit(t *testing.T) {
	repo, o := repository(t)
	right := withPassword(t, o, "right")
	look := func(o config.Options) map[string]Outcome { return outcomes(gitAccess(t.Context(), &o)) }
	if got := look(right); got["git.url"] != Wrong || got["status.branch"] != OK {
		t.Errorf("an empty repository: %v", got)
	}
	before := must.Get(repo.Commit(map[string]string{"README.md": "fleet\n"}, "begin"))(t)
	if got := look(right); got["git.url"] != OK || got["status.branch"] != OK {
		t.Errorf("all is right: %v", got)
	}
	if got := look(withPassword(t, o, "wrong")); got["git.url"] != Wrong || got["status.branch"] != Wrong {
		t.Errorf("a wrong password: %v", got)
	}
	elsewhere := right
	elsewhere.Git.Branch = "other"
	if got := look(elsewhere); got["git.url"] != Wrong || got["status.branch"] != OK {
		t.Errorf("a branch that is not there: %v", got)
	}
	must.Get(repo.Git("config", "http.receivepack", "false"))(t)
	if got := look(right); got["git.url"] != OK || got["status.branch"] != Wrong {
		t.Errorf("nobody may push: %v", got)
	}
	if refs, _ := repo.Git("for-each-ref", "--format=%(objectname)"); strings.TrimSpace(refs) != before {
		t.Errorf("the checks changed the repository: %s", refs)
	}
	if got := clock(t.Context(), &right)[0]; got.Outcome != OK {
		t.Errorf("the clock: %+v", got)
	}
}

func TestRun(t *testing.T) {
	repo, o := repository(t)
	must.Get(repo.Commit(map[string]string{"README.md": "fleet\n"}, "begin"))(t)
	o = withPassword(t, o, "right")
	o.State.Dir = filepath.Join(t.TempDir(), "state")
	o.Boot.Listen, o.Registry.Listen, o.Admin.Listen, o.TFTP.Listen = "127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0"
	o.Boot.LoaderDirs, o.Boot.CacheSize = []string{t.TempDir()}, 1<<20
	o.Discovery.Image = "oci:/nonexistent/probe"
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	got := outcomes(Run(ctx, &o))
	delete(got, "state.dir space") // of the machine that tests run on
	want := map[string]Outcome{
		"git.url": OK, "status.branch": OK, "git.auth.usernameFile": OK, "git.auth.passwordFile": OK, "clock": OK, "store": OK, "redis.sealKeyFile": OK, "state.dir": OK,
		"boot.cacheDir space": OK, "boot.listen": OK, "registry.listen": OK, "admin.listen": OK, "tftp.listen": OK,
		"boot.url": Wrong, "registry.url": Wrong, "boot.loaderDirs": Wrong, "discovery.image": Wrong,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, err := os.Stat(o.State.Dir); err == nil {
		t.Error("the checks made state.dir")
	}
}

func TestFilesOfOnesOwn(t *testing.T) {
	dir := t.TempDir()
	script := filepath.Join(dir, "rescue.ipxe")
	o := config.Default()
	if got := files(t.Context(), &o); len(got) > 0 {
		t.Errorf("without any, %+v", got)
	}
	o.Boot.Files, o.Boot.Rescue, o.Boot.CredentialsFile = filepath.Join(dir, "files"), script, filepath.Join(dir, "config.json")
	outcomes := func() (all []Outcome) {
		for _, r := range append(files(t.Context(), &o), folders(t.Context(), &o)...) {
			all = append(all, r.Outcome)
		}
		return all
	}
	if diff := cmp.Diff([]Outcome{Wrong, Wrong, Wrong}, outcomes()); diff != "" {
		t.Errorf("none is there (-want +got):\n%s", diff)
	}
	must.Do(t, errors.Join(os.Mkdir(o.Boot.Files, 0o755), os.WriteFile(script, []byte("#!ipxe\nexit\n"), 0o644),
		os.WriteFile(o.Boot.CredentialsFile, []byte("{}"), 0o600)))
	if diff := cmp.Diff([]Outcome{OK, OK, OK}, outcomes()); diff != "" {
		t.Errorf("all are there (-want +got):\n%s", diff)
	}
}

// Scripts read these words.
func TestTheWordsOfAResult(t *testing.T) {
	for want, r := range map[string]Result{
		`{"check":"clock","outcome":"ok","message":"agrees"}`:                         ok("clock", "agrees"),
		`{"check":"clock","outcome":"wrong","message":"is late","fix":"run chronyd"}`: wrong("clock", "is late", "run chronyd"),
		`{"check":"clock","outcome":"skipped","message":"no https"}`:                  skipped("clock", "no https"),
	} {
		if got, err := json.Marshal(r); err != nil || string(got) != want {
			t.Errorf("got %s, want %s: %v", got, want, err)
		}
	}
}
