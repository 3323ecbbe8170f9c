package registry

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"ingot/model"
	"ingot/model/must"
	"ingot/registry/journal"
	"ingot/registry/lease"
	"ingot/registry/store"
)

const journalHeadSize = 32

func TestDamagedJournalIsLoud(t *testing.T) {
	o := Options{Dir: t.TempDir()}
	r := lead(t, o)
	saveLeases(t, r, leaseOf(1))
	saveLeases(t, r, leaseOf(2))
	_ = r.Close()
	path := filepath.Join(o.Dir, journal.FileName)
	raw := must.Get(os.ReadFile(path))(t)
	raw[2*journalHeadSize+10] ^= 4 // in the first frame
	must.Do(t, os.WriteFile(path, raw, 0o600))
	var said bytes.Buffer
	o = testOptions(t, o)
	o.Log = slog.New(slog.NewTextHandler(&said, nil))
	again := must.Get(Open(t.Context(), o))(t)
	defer again.Close()
	wantLeases(t, again, leaseOf(2))
	if !strings.Contains(said.String(), "level=ERROR") || testutil.ToFloat64(again.metrics.corrupt) != 1 {
		t.Errorf("%v counted; said: %s", testutil.ToFloat64(again.metrics.corrupt), &said)
	}
}

// What becomes of the journal behind our back is noticed at the next save or check,
// and DHCP is asked for what it has.
func TestLostJournalIsNoticed(t *testing.T) {
	cases := map[string]struct {
		lose func(t *testing.T, path string, older []byte)
		want []model.Lease
	}{
		"deleted": {func(t *testing.T, path string, _ []byte) {
			must.Do(t, os.Remove(path))
		}, nil},
		"cut off": {func(t *testing.T, path string, _ []byte) {
			must.Do(t, os.Truncate(path, 0))
		}, nil},
		"replaced with an older one": {func(t *testing.T, path string, older []byte) {
			must.Do(t, errors.Join(os.WriteFile(path+".backup", older, 0o600), os.Rename(path+".backup", path)))
		}, []model.Lease{leaseOf(1)}},
		"overwritten with an older one": {func(t *testing.T, path string, older []byte) {
			must.Do(t, os.WriteFile(path, older, 0o600))
		}, []model.Lease{leaseOf(1)}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			r := lead(t, Options{Dir: dir})
			path := filepath.Join(dir, journal.FileName)
			saveLeases(t, r, leaseOf(1))
			older := must.Get(os.ReadFile(path))(t)
			saveLeases(t, r, leaseOf(2))
			saved, fence := r.Leases.LeaseEpoch(), r.Lead.Fence()
			c.lose(t, path, older)
			must.Do(t, r.keep(t.Context()))
			if r.Leases.LeaseEpoch() == saved || r.Lead.Fence() != fence {
				t.Errorf("epoch %d, fence %d after %d", r.Leases.LeaseEpoch(), r.Lead.Fence(), fence)
			}
			wantLeases(t, r, c.want...)
			saveLeases(t, r, leaseOf(3))
			wantLeases(t, r, append(slices.Clone(c.want), leaseOf(3))...)
			if len(r.Observed().EndpointFacts) != 3 {
				t.Error("facts are lost with the leases")
			}
		})
	}
}

// Leases outlive the file that all else is in.
func TestLeasesOutliveTheLossOfTheFile(t *testing.T) {
	o := Options{Dir: t.TempDir()}
	r := lead(t, o)
	leases := []model.Lease{given(1, "10.0.0.1", -time.Hour), given(2, "10.0.0.2", 0), given(3, "fd00::3", 0)}
	saveLeases(t, r, leases...)
	want := r.Observed()
	_ = r.Close()
	must.Do(t, os.Remove(filepath.Join(o.Dir, store.FileName)))
	again := lead(t, o)
	wantLeases(t, again, leases...)
	wantObserved(t, again, want)
}

// The one whose bbolt file was taken away does not write to the journal of the next.
func TestFencedIngotLeavesTheJournalAlone(t *testing.T) {
	o := Options{Dir: t.TempDir()}
	first := lead(t, o)
	saveLeases(t, first, leaseOf(1))
	must.Do(t, os.Remove(filepath.Join(o.Dir, store.FileName)))
	ofFirst := must.Get(os.OpenFile(filepath.Join(o.Dir, journal.FileName), os.O_RDWR, 0))(t)
	defer ofFirst.Close()
	second := lead(t, o)
	wantLeases(t, second, leaseOf(1))
	before, errBefore := ofFirst.Stat()
	after, errAfter := os.Stat(filepath.Join(o.Dir, journal.FileName))
	if err := errors.Join(errBefore, errAfter); err != nil || os.SameFile(before, after) {
		t.Errorf("both have one file open, %v", err)
	}
	if err := first.Leases.SaveLeases(t.Context(), []model.Lease{leaseOf(2)}); !errors.Is(err, store.ErrFenced) {
		t.Errorf("got %v", err)
	}
	saveLeases(t, second, leaseOf(3))
	wantLeases(t, second, leaseOf(1), leaseOf(3))
	_, _ = ofFirst.WriteAt([]byte("in flight"), 0)
	_ = second.Close()
	wantLeases(t, lead(t, o), leaseOf(1), leaseOf(3))
}

// A crash between the leases and what follows from them is healed.
func TestFactsThatACrashLeftBehindAreBroughtUp(t *testing.T) {
	host := func(l model.Lease) model.Lease { l.Role = model.RoleHost; return l }
	on := func(network string, l model.Lease) model.Lease { l.Network = network; return l }
	ended := func(l model.Lease) model.Lease { l.Expires = lease.LastSeen(&l).Add(time.Minute); return l }
	const hour = time.Hour
	cases := map[string]struct {
		known []model.Lease
		lost  []model.Lease
		also  []model.Lease // what is stored later, and facts tell of too
		want  map[string]string
	}{
		"a new device": {
			lost: []model.Lease{given(1, "10.0.0.1", 0)},
			want: map[string]string{macOf(1): "10.0.0.1"},
		},
		"a device with a new address": {
			known: []model.Lease{given(1, "10.0.0.1", -hour)},
			lost:  []model.Lease{given(1, "10.0.0.2", 0)},
			want:  map[string]string{macOf(1): "10.0.0.2"},
		},
		"an address that another one got": {
			known: []model.Lease{given(1, "10.0.0.1", -hour)},
			lost:  []model.Lease{given(2, "10.0.0.1", 0)},
			want:  map[string]string{macOf(1): "", macOf(2): "10.0.0.1"},
		},
		"an address that a host got": {
			known: []model.Lease{given(1, "10.0.0.1", -hour)},
			lost:  []model.Lease{host(given(2, "10.0.0.1", 0))},
			want:  map[string]string{macOf(1): ""},
		},
		"on another network": {
			known: []model.Lease{given(1, "10.0.0.1", -hour)},
			lost:  []model.Lease{host(on("lab", given(2, "10.0.0.1", 0)))},
			want:  map[string]string{macOf(1): ""},
		},
		"though that lease has ended since": {
			known: []model.Lease{given(1, "10.0.0.1", -3*hour)},
			lost:  []model.Lease{ended(given(2, "10.0.0.1", -2*hour))},
			want:  map[string]string{macOf(1): "", macOf(2): "10.0.0.1"},
		},
		"devices that changed places": {
			known: []model.Lease{given(1, "10.0.0.1", -hour), given(2, "10.0.0.2", -hour)},
			lost:  []model.Lease{given(1, "10.0.0.2", 0), given(2, "10.0.0.1", 0)},
			want:  map[string]string{macOf(1): "10.0.0.2", macOf(2): "10.0.0.1"},
		},
		"but not what is older than is known": {
			lost: []model.Lease{given(1, "10.0.0.9", -hour)},
			also: []model.Lease{given(1, "10.0.0.1", 0)},
			want: map[string]string{macOf(1): "10.0.0.1"},
		},
		"nor what is just as old": {
			known: []model.Lease{given(1, "10.0.0.1", 0), on("lab", given(2, "10.0.0.1", 0))},
			want:  map[string]string{macOf(1): "", macOf(2): "10.0.0.1"},
		},
		"nor what a wrong clock wrote": {
			known: []model.Lease{given(1, "10.0.0.1", -hour)},
			lost:  []model.Lease{given(1, "10.0.0.2", hour)},
			want:  map[string]string{macOf(1): "10.0.0.1"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			o := Options{Dir: t.TempDir()}
			r := lead(t, o)
			saveLeases(t, r, c.known...)
			var b store.Batch
			for i := range c.lost {
				ch := must.Get(leaseChange(&c.lost[i]))(t)
				b = append(b, ch)
			}
			must.Do(t, r.store.Commit(t.Context(), b))
			saveLeases(t, r, c.also...)
			_ = r.Close()
			again := open(t, o)
			got := make(map[string]string)
			for mac, f := range again.Observed().EndpointFacts {
				got[mac] = f.IP
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			want := again.Observed()
			_ = again.Close()
			wantObserved(t, open(t, o), want)
		})
	}
}
