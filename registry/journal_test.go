package registry

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	bolt "go.etcd.io/bbolt"

	"ingot/model"
)

// newJournal opens the journal in dir for the time of a test.
func newJournal(t testing.TB, dir string, d disk) *journal {
	t.Helper()
	j, err := openJournal(dir, d, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.close() })
	return j
}

func leaseBatch(pairs ...string) batch {
	var b batch
	for i := 0; i < len(pairs); i += 2 {
		b = append(b, set(bucketLease, pairs[i], pairs[i+1]))
	}
	return b
}

func mustAppend(t testing.TB, j *journal, b batch) {
	t.Helper()
	j.endCompaction()
	if err := j.append(b); err != nil {
		t.Fatal(err)
	}
}

func wantJournal(t testing.TB, j *journal, want map[string]string) {
	t.Helper()
	got := make(map[string]string)
	err := j.each(func() error { return nil }, func(name, value []byte) { got[string(name)] = string(value) })
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if total, _ := j.count(nil); total != len(want) {
		t.Errorf("%d leases counted, want %d", total, len(want))
	}
}

// threeFrames returns a journal of three commits, and where each of them begins and
// ends.
func threeFrames(t testing.TB) (raw []byte, ends []int64) {
	t.Helper()
	dir := t.TempDir()
	j := newJournal(t, dir, realDisk)
	ends = append(ends, j.file.end)
	for _, b := range []batch{leaseBatch("a", "1", "b", "1"), leaseBatch("b", "2", "c", "2"), {set(bucketLease, "d", "3"), del(bucketLease, "a")}} {
		mustAppend(t, j, b)
		ends = append(ends, j.file.end)
	}
	raw, err := os.ReadFile(filepath.Join(dir, journalFile))
	if err != nil {
		t.Fatal(err)
	}
	return raw, ends
}

// reopened is what is in a journal that was found as raw, and in it once more after
// another commit.
func reopened(t testing.TB, raw []byte, want map[string]string) *journal {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, journalFile), raw, 0o600); err != nil {
		t.Fatal(err)
	}
	j := newJournal(t, dir, realDisk)
	damage := j.damage
	wantJournal(t, j, want)
	mustAppend(t, j, leaseBatch("z", "9"))
	if err := errors.Join(j.checkTail(), j.close()); err != nil {
		t.Fatal(err)
	}
	again := newJournal(t, dir, realDisk)
	want = maps.Clone(want)
	want["z"] = "9"
	wantJournal(t, again, want)
	if again.damage != 0 || again.file.torn != 0 {
		t.Errorf("%d bad places and %d bytes are left", again.damage, again.file.torn)
	}
	again.damage = damage
	return again
}

// A write that a crash cut short, at whatever byte, is as if it had not begun, and no
// reason for alarm.
func TestTornTailIsCutOff(t *testing.T) {
	raw, ends := threeFrames(t)
	before := map[string]string{"a": "1", "b": "2", "c": "2"}
	whole := map[string]string{"b": "2", "c": "2", "d": "3"}
	padding := 0
	for ; raw[ends[3]-int64(padding)-1] == 0; padding++ {
	}
	for at := ends[2]; at <= ends[3]; at++ {
		for name, torn := range map[string][]byte{
			"the file ends":     raw[:at],
			"zeros follow":      append(slices.Clone(raw[:at]), make([]byte, int64(len(raw))-at)...),
			"pages are missing": append(append(slices.Clone(raw[:ends[2]]), make([]byte, at-ends[2])...), raw[at:]...),
		} {
			want := before
			if name == "pages are missing" && at == ends[2] || name != "pages are missing" && at >= ends[3]-int64(padding) {
				want = whole
			}
			if j := reopened(t, torn, want); j.damage != 0 {
				t.Errorf("%s at byte %d: damage is reported", name, at-ends[2])
			}
		}
	}
}

// A bit that flipped costs no more than the commit it is in, and is told of.
func TestFlippedBitsAreReported(t *testing.T) {
	raw, ends := threeFrames(t)
	padding := func(at int64) bool {
		return slices.ContainsFunc([]int{0, 1}, func(i int) bool {
			body := int64(binary.BigEndian.Uint32(raw[ends[i]+4:]))
			return at >= ends[i]+headSize+body && at < ends[i+1]
		})
	}
	for at := range ends[2] {
		want := map[string]string{"b": "2", "c": "2", "d": "3"}
		switch {
		case at >= ends[1]:
			want = map[string]string{"b": "1", "d": "3"}
		case at >= ends[0]: // all of its leases changed since
		}
		if padding(at) {
			continue // it means nothing
		}
		flipped := slices.Clone(raw)
		flipped[at] ^= 1 << (at % 8)
		j := reopened(t, flipped, want)
		if j.damage == 0 {
			t.Errorf("byte %d: nothing is reported", at)
			continue
		}
		aside, err := os.ReadFile(j.path + journalDamaged)
		if err != nil || !bytes.Equal(aside, flipped) {
			t.Errorf("byte %d: no copy of the damaged file, %v", at, err)
		}
	}
}

func TestDamagedJournalIsLoud(t *testing.T) {
	o := Options{Dir: t.TempDir()}
	r := lead(t, o)
	saveLeases(t, r, lease(1))
	at := r.store.(*boltStore).journal.file.last
	saveLeases(t, r, lease(2))
	_ = r.Close()
	path := filepath.Join(o.Dir, journalFile)
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	raw[at+headSize+10] ^= 4
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	o = testOptions(t, o)
	o.Log = slog.New(slog.NewTextHandler(&said, nil))
	again, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	wantLeases(t, again, lease(2))
	if !strings.Contains(said.String(), "level=ERROR") || testutil.ToFloat64(again.metrics.corrupt) != 1 {
		t.Errorf("%v counted; said: %s", testutil.ToFloat64(again.metrics.corrupt), &said)
	}
}

func TestJournalOfANewerIngotIsRefused(t *testing.T) {
	raw, _ := threeFrames(t)
	binary.BigEndian.PutUint32(raw[8:], journalVersion+1)
	sealHead(raw[:headSize])
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, journalFile), raw, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Open(t.Context(), testOptions(t, Options{Dir: dir}))
	if !errors.Is(err, errNewerJournal) {
		t.Errorf("got %v", err)
	}
	if after, _ := os.ReadFile(filepath.Join(dir, journalFile)); !bytes.Equal(after, raw) {
		t.Error("it was changed")
	}
}

// The layout is a promise to the next Ingot.
func TestJournalLayoutStays(t *testing.T) {
	const salt = 0x0102030405060708
	frame, err := appendEntry(make([]byte, headSize), "name", []byte("value"))
	if err == nil {
		frame, err = appendEntry(frame, "gone", nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprintf("%q", append(journalHead(salt), sealFrame(frame, 7, salt)...))
	want := `"ingotlsj\x00\x00\x00\x01\x00\x00\x00\x00\x01\x02\x03\x04\x05\x06\a\b\x00\x00\x00\x00LAYOUT` +
		`leas\x00\x00\x00\x15\x00\x00\x00\x00\x00\x00\x00\a\x01\x02\x03\x04\x05\x06\a\bLAYOUT` +
		`\x00\x04\x00\x05namevalue\x00\x04\xff\xffgone\x00\x00\x00"`
	for part := range strings.SplitSeq(want, "LAYOUT") {
		_, after, found := strings.Cut(got, part)
		if !found {
			t.Fatalf("got %s, want %s", got, part)
		}
		got = after
	}
}

func TestRestsOfACrashAreRemoved(t *testing.T) {
	dir := t.TempDir()
	j := newJournal(t, dir, realDisk)
	mustAppend(t, j, leaseBatch("a", "1"))
	_ = j.close()
	if err := os.WriteFile(filepath.Join(dir, journalFile+journalNew), make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	wantJournal(t, newJournal(t, dir, realDisk), map[string]string{"a": "1"})
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) != 1 {
		t.Errorf("files %v", left)
	}
}

// Where no copy can be kept the leases are used all the same.
func TestDamagedJournalIsUsedWithoutACopy(t *testing.T) {
	raw, ends := threeFrames(t)
	raw[ends[0]+headSize] ^= 1
	dir := t.TempDir()
	occupied := filepath.Join(dir, journalFile+journalDamaged, "by something else")
	if err := errors.Join(os.MkdirAll(occupied, 0o700), os.WriteFile(filepath.Join(dir, journalFile), raw, 0o600)); err != nil {
		t.Fatal(err)
	}
	wantJournal(t, newJournal(t, dir, realDisk), map[string]string{"b": "2", "c": "2", "d": "3"})
}

func TestJournalIsForItsOwnerAlone(t *testing.T) {
	j := newJournal(t, t.TempDir(), realDisk)
	if info, err := os.Stat(j.path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

// Whatever is saved while the journal is compacted is in it before and afterwards.
func TestLeasesAreSavedWhileTheJournalIsCompacted(t *testing.T) {
	dir := t.TempDir()
	j := newJournal(t, dir, realDisk)
	want := make(map[string]string)
	compacted, began := 0, j.file.salt
	for n := 0; compacted < 5; n++ {
		name := fmt.Sprint("lease-", n%50)
		mustAppend(t, j, batch{set(bucketLease, name, fmt.Sprint(n)), del(bucketLease, fmt.Sprint("lease-", (n+25)%50))})
		want[name] = fmt.Sprint(n)
		delete(want, fmt.Sprint("lease-", (n+25)%50))
		if j.file.salt != began {
			compacted, began = compacted+1, j.file.salt
			wantJournal(t, j, want)
			if err := j.checkTail(); err != nil {
				t.Fatal(err)
			}
		}
		j.compactAt = 0
		if n > 100_000 {
			t.Fatal("it is not compacted")
		}
	}
	if err := j.close(); err != nil { // with a compaction under way, or not
		t.Fatal(err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) != 1 {
		t.Errorf("files %v", left)
	}
	wantJournal(t, newJournal(t, dir, realDisk), want)
}

func TestJournalStaysSmall(t *testing.T) {
	j := newJournal(t, t.TempDir(), realDisk)
	largest := int64(0)
	value := strings.Repeat("x", 64<<10-2)
	for range 300 {
		mustAppend(t, j, leaseBatch("a", value))
		largest = max(largest, j.file.end)
		if c := j.compaction; c != nil {
			<-c.done
		}
	}
	if largest > compactLeast+(256<<10) {
		t.Errorf("it had %d bytes for one lease", largest)
	}
	wantJournal(t, j, map[string]string{"a": value})
}

// A journal that cannot be compacted goes on as it is.
func TestFailedCompactionIsOfNoHarm(t *testing.T) {
	d := realDisk
	full := false
	d.write = func(f *os.File, b []byte, at int64) (int, error) {
		if full && strings.HasSuffix(f.Name(), journalNew) {
			return 0, syscall.ENOSPC
		}
		return f.WriteAt(b, at)
	}
	dir := t.TempDir()
	newJournal(t, dir, realDisk).close()
	j := newJournal(t, dir, d)
	full, j.compactAt = true, 0
	mustAppend(t, j, leaseBatch("a", "1"))
	<-j.compaction.done
	mustAppend(t, j, leaseBatch("b", "1"))
	if j.compaction != nil {
		t.Error("it is tried again at once")
	}
	wantJournal(t, j, map[string]string{"a": "1", "b": "1"})
}

// What only a new file has is not durable before its name is: after a crash the file
// before may be there again.
func TestNothingIsSavedBeforeTheJournalsNameIsDurable(t *testing.T) {
	dir := t.TempDir()
	d, named, failed := realDisk, 0, syscall.EIO
	d.names = func(dir string) error {
		if failed != 0 {
			return failed
		}
		named++
		return syncDir(dir)
	}
	j := newJournal(t, dir, d)
	if err := j.append(leaseBatch("a", "1")); !errors.Is(err, syscall.EIO) {
		t.Errorf("a new journal: %v", err)
	}
	failed = 0
	mustAppend(t, j, leaseBatch("b", "1"))
	j.compactAt = 0
	mustAppend(t, j, leaseBatch("c", "1"))
	if named != 1 {
		t.Errorf("it was made durable %d times", named)
	}
	<-j.compaction.done
	failed = syscall.EIO
	j.endCompaction()
	for range 2 {
		if err := j.append(leaseBatch("d", "1")); !errors.Is(err, syscall.EIO) {
			t.Errorf("a compacted journal: %v", err)
		}
	}
	failed = 0
	mustAppend(t, j, leaseBatch("e", "1"))
	wantJournal(t, j, map[string]string{"b": "1", "c": "1", "e": "1"})
}

// A damage that is found while the journal is used makes DHCP save all again.
func TestDamageUnderUsIsALoss(t *testing.T) {
	o := Options{Dir: t.TempDir()}
	r := lead(t, o)
	saveLeases(t, r, lease(1))
	j := r.store.(*boltStore).journal
	f, err := os.OpenFile(j.path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt([]byte{0xff}, j.file.last+headSize+3); err != nil {
		t.Fatal(err)
	}
	saved := r.LeaseEpoch()
	j.compactAt = 0
	saveLeases(t, r, lease(2))
	<-j.compaction.done
	saveLeases(t, r, lease(3))
	if r.LeaseEpoch() == saved {
		t.Error("leases are not asked for")
	}
	wantLeases(t, r, lease(2), lease(3))
}

// A disk that fails leaves the journal as it was, and the next save is made.
func TestFailedWritesLeaveTheJournalAsItWas(t *testing.T) {
	const times = 4
	cases := map[string]func(d *disk, fails *bool){
		"no room to grow": func(d *disk, fails *bool) {
			d.grow = func(f *os.File, from, to int64) error {
				if *fails {
					return errors.Join(f.Truncate(to), syscall.ENOSPC)
				}
				return preallocate(f, from, to)
			}
		},
		"half of a write": func(d *disk, fails *bool) {
			d.write = func(f *os.File, b []byte, at int64) (int, error) {
				if *fails {
					n, _ := f.WriteAt(b[:len(b)/2], at)
					return n, syscall.ENOSPC
				}
				return f.WriteAt(b, at)
			}
		},
		"a sync that fails": func(d *disk, fails *bool) {
			d.sync = func(f *os.File) error {
				if *fails {
					return syscall.EDQUOT
				}
				return datasync(f)
			}
		},
	}
	for name, breakDisk := range cases {
		t.Run(name, func(t *testing.T) {
			d, fails := realDisk, false
			breakDisk(&d, &fails)
			dir := t.TempDir()
			j := newJournal(t, dir, d)
			want := make(map[string]string)
			large := strings.Repeat("x", growStep/8)
			for n := range 4 * times {
				fails = n%2 == 1
				b := batch{set(bucketLease, fmt.Sprint(n), large), set(bucketLease, "a", fmt.Sprint(n)), set(bucketLease, fmt.Sprint(n, "b"), large)}
				if err := j.append(b); err == nil {
					want["a"], want[fmt.Sprint(n)], want[fmt.Sprint(n, "b")] = fmt.Sprint(n), large, large
				} else if !errors.Is(err, errFull) || !strings.Contains(err.Error(), "free some space") {
					t.Errorf("got %v", err)
				} else if !fails {
					t.Fatal(err)
				}
				if err := j.checkTail(); err != nil {
					t.Error(err)
				}
				wantJournal(t, j, want)
			}
			if name != "no room to grow" && len(want) != 1+4*times {
				t.Errorf("%d leases", len(want))
			}
			_ = j.close()
			again := newJournal(t, dir, realDisk)
			wantJournal(t, again, want)
			if again.damage != 0 {
				t.Error("it is damaged")
			}
		})
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
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		}, nil},
		"cut off": {func(t *testing.T, path string, _ []byte) {
			if err := os.Truncate(path, 0); err != nil {
				t.Fatal(err)
			}
		}, nil},
		"replaced with an older one": {func(t *testing.T, path string, older []byte) {
			if err := errors.Join(os.WriteFile(path+".backup", older, 0o600), os.Rename(path+".backup", path)); err != nil {
				t.Fatal(err)
			}
		}, []model.Lease{lease(1)}},
		"overwritten with an older one": {func(t *testing.T, path string, older []byte) {
			if err := os.WriteFile(path, older, 0o600); err != nil {
				t.Fatal(err)
			}
		}, []model.Lease{lease(1)}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := lead(t, Options{Dir: t.TempDir()})
			path := r.store.(*boltStore).journal.path
			saveLeases(t, r, lease(1))
			older, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			saveLeases(t, r, lease(2))
			saved, fence := r.LeaseEpoch(), r.Fence()
			c.lose(t, path, older)
			if err := r.keep(t.Context()); err != nil {
				t.Fatal(err)
			}
			if r.LeaseEpoch() == saved || r.Fence() != fence {
				t.Errorf("epoch %d, fence %d after %d", r.LeaseEpoch(), r.Fence(), fence)
			}
			wantLeases(t, r, c.want...)
			saveLeases(t, r, lease(3))
			wantLeases(t, r, append(slices.Clone(c.want), lease(3))...)
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
	if err := os.Remove(filepath.Join(o.Dir, boltFile)); err != nil {
		t.Fatal(err)
	}
	again := lead(t, o)
	wantLeases(t, again, leases...)
	wantObserved(t, again, want)
}

// The one whose bbolt file was taken away does not write to the journal of the next.
func TestFencedIngotLeavesTheJournalAlone(t *testing.T) {
	o := Options{Dir: t.TempDir()}
	first := lead(t, o)
	saveLeases(t, first, lease(1))
	if err := os.Remove(filepath.Join(o.Dir, boltFile)); err != nil {
		t.Fatal(err)
	}
	second := lead(t, o)
	wantLeases(t, second, lease(1))
	if os.SameFile(first.store.(*boltStore).journal.file.info, second.store.(*boltStore).journal.file.info) {
		t.Error("both have one file open")
	}
	if err := first.SaveLeases(t.Context(), []model.Lease{lease(2)}); !errors.Is(err, ErrFenced) {
		t.Errorf("got %v", err)
	}
	saveLeases(t, second, lease(3))
	wantLeases(t, second, lease(1), lease(3))
	_, _ = first.store.(*boltStore).journal.file.file.WriteAt([]byte("in flight"), 0)
	_ = second.Close()
	wantLeases(t, lead(t, o), lease(1), lease(3))
}

// oldStore makes a file as an ingot without journal left it.
func oldStore(t *testing.T, dir string, leases ...model.Lease) {
	t.Helper()
	db, err := bolt.Open(filepath.Join(dir, boltFile), 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	var b batch
	for i := range leases {
		ch, err := leaseChange(&leases[i])
		if err != nil {
			t.Fatal(err)
		}
		b = append(b, ch)
	}
	if err := errors.Join(db.Update(func(tx *bolt.Tx) error { return applyBolt(tx, tx.Bucket(boltMeta), b) }), db.Close()); err != nil {
		t.Fatal(err)
	}
}

func TestLeasesOfAnOlderIngotAreTakenOver(t *testing.T) {
	o := Options{Dir: t.TempDir()}
	r := lead(t, o)
	save(t, r, everything())
	_ = r.Close()
	if err := os.Remove(filepath.Join(o.Dir, journalFile)); err != nil {
		t.Fatal(err)
	}
	var old []model.Lease
	for i := range leaseGroup + 1 {
		old = append(old, leaseWith(i, func(l *model.Lease) { l.Role = model.RoleHost }))
	}
	oldStore(t, o.Dir, old...)
	r = lead(t, o)
	wantLeases(t, r, old...)
	if left, err := r.store.(*boltStore).oldLeases(); left != nil || err != nil {
		t.Errorf("%d leases are left, %v", len(left), err)
	}
	_ = r.Close()
	wantLeases(t, lead(t, o), old...)
}

// Whether a crash let leases be moved twice, or an older ingot ran in between, or an
// old backup of the file came back: the newer one counts.
func TestTheNewerLeaseIsTakenOver(t *testing.T) {
	at := func(i int, d time.Duration) model.Lease {
		return leaseWith(i, func(l *model.Lease) { l.Renewed = now.Add(d) })
	}
	o := Options{Dir: t.TempDir()}
	r := lead(t, o)
	saveLeases(t, r, at(1, time.Hour), at(2, time.Minute), at(4, 0))
	_ = r.Close()
	oldStore(t, o.Dir, at(1, time.Minute), at(2, time.Hour), at(3, 0), at(4, 0))
	wantLeases(t, lead(t, o), at(1, time.Hour), at(2, time.Hour), at(3, 0), at(4, 0))
}

// A crash between the leases and what follows from them is healed.
func TestFactsThatACrashLeftBehindAreBroughtUp(t *testing.T) {
	host := func(l model.Lease) model.Lease { l.Role = model.RoleHost; return l }
	on := func(network string, l model.Lease) model.Lease { l.Network = network; return l }
	ended := func(l model.Lease) model.Lease { l.Expires = lastSeen(&l).Add(time.Minute); return l }
	const hour = time.Hour
	cases := map[string]struct {
		known []model.Lease
		lost  []model.Lease
		also  []model.Lease // what is stored later, and facts tell of too
		want  map[string]string
	}{
		"a new device":                        {nil, []model.Lease{given(1, "10.0.0.1", 0)}, nil, map[string]string{macOf(1): "10.0.0.1"}},
		"a device with a new address":         {[]model.Lease{given(1, "10.0.0.1", -hour)}, []model.Lease{given(1, "10.0.0.2", 0)}, nil, map[string]string{macOf(1): "10.0.0.2"}},
		"an address that another one got":     {[]model.Lease{given(1, "10.0.0.1", -hour)}, []model.Lease{given(2, "10.0.0.1", 0)}, nil, map[string]string{macOf(1): "", macOf(2): "10.0.0.1"}},
		"an address that a host got":          {[]model.Lease{given(1, "10.0.0.1", -hour)}, []model.Lease{host(given(2, "10.0.0.1", 0))}, nil, map[string]string{macOf(1): ""}},
		"on another network":                  {[]model.Lease{given(1, "10.0.0.1", -hour)}, []model.Lease{host(on("lab", given(2, "10.0.0.1", 0)))}, nil, map[string]string{macOf(1): ""}},
		"though that lease has ended since":   {[]model.Lease{given(1, "10.0.0.1", -3*hour)}, []model.Lease{ended(given(2, "10.0.0.1", -2*hour))}, nil, map[string]string{macOf(1): "", macOf(2): "10.0.0.1"}},
		"devices that changed places":         {[]model.Lease{given(1, "10.0.0.1", -hour), given(2, "10.0.0.2", -hour)}, []model.Lease{given(1, "10.0.0.2", 0), given(2, "10.0.0.1", 0)}, nil, map[string]string{macOf(1): "10.0.0.2", macOf(2): "10.0.0.1"}},
		"but not what is older than is known": {nil, []model.Lease{given(1, "10.0.0.9", -hour)}, []model.Lease{given(1, "10.0.0.1", 0)}, map[string]string{macOf(1): "10.0.0.1"}},
		"nor what is just as old":             {[]model.Lease{given(1, "10.0.0.1", 0), on("lab", given(2, "10.0.0.1", 0))}, nil, nil, map[string]string{macOf(1): "", macOf(2): "10.0.0.1"}},
		"nor what a wrong clock wrote":        {[]model.Lease{given(1, "10.0.0.1", -hour)}, []model.Lease{given(1, "10.0.0.2", hour)}, nil, map[string]string{macOf(1): "10.0.0.1"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			o := Options{Dir: t.TempDir()}
			r := lead(t, o)
			saveLeases(t, r, c.known...)
			var b batch
			for i := range c.lost {
				ch, err := leaseChange(&c.lost[i])
				if err != nil {
					t.Fatal(err)
				}
				b = append(b, ch)
			}
			if err := r.store.commit(t.Context(), b); err != nil {
				t.Fatal(err)
			}
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

// unsynced is a disk that is quick.
var unsynced = disk{
	grow:  func(*os.File, int64, int64) error { return nil },
	write: (*os.File).WriteAt,
	sync:  func(*os.File) error { return nil },
}

// FuzzReadJournal reads anything. What it makes of it, it makes of its own writing of
// that too.
func FuzzReadJournal(f *testing.F) {
	raw, ends := threeFrames(f)
	raw = raw[:ends[3]]
	f.Add(raw)
	f.Add(raw[:ends[2]+5])
	f.Add(raw[headSize:])
	flipped := slices.Clone(raw)
	flipped[ends[0]+headSize] ^= 1
	f.Add(flipped)
	f.Add([]byte(nil))
	f.Fuzz(func(t *testing.T, raw []byte) {
		frames := int64(headSize)
		facts, live, err := readLive(bytes.NewReader(raw), int64(len(raw)), func() error { return nil })
		if errors.Is(err, errNewerJournal) {
			return
		}
		if err != nil || facts.end > max(frames, roundUp(int64(len(raw)), 8)) || live.bytes < int64(len(live.spans))*entryHead {
			t.Fatalf("%+v of %d bytes, %v", facts, len(raw), err)
		}
		want := make(map[string]string)
		err = live.each(bytes.NewReader(raw), int64(len(raw)), func(e entry) error {
			want[string(e.name)] = string(e.value)
			return nil
		})
		if err != nil || len(want) != len(live.spans) {
			t.Fatalf("%d leases of %d, %v", len(want), len(live.spans), err)
		}
		j := &journal{path: filepath.Join(t.TempDir(), journalFile), disk: unsynced}
		s, err := j.write(func(add func(entry) error) error {
			return live.each(bytes.NewReader(raw), int64(len(raw)), add)
		})
		if err != nil {
			t.Fatal(err)
		}
		defer s.file.Close()
		again, kept, err := readLive(s.file, s.end, func() error { return nil })
		if err != nil || again.damage > 0 || again.torn > 0 || !maps.EqualFunc(kept.spans, want, func(span, string) bool { return true }) {
			t.Errorf("written again: %+v, %d leases of %d, %v", again, len(kept.spans), len(want), err)
		}
	})
}
