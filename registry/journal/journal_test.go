package journal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ingot/model/must"
	"ingot/registry/internal/disk"
)

func newJournal(t testing.TB, dir string, d calls) *Journal {
	t.Helper()
	j := must.Get(openOn(d, dir, slog.New(slog.DiscardHandler)))(t)
	t.Cleanup(func() { _ = j.Close() })
	return j
}

// leasesOf are leases to append: names and values in turn, gone for one to be forgotten.
func leasesOf(pairs ...string) iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		for i := 0; i < len(pairs); i += 2 {
			value := []byte(pairs[i+1])
			if pairs[i+1] == gone {
				value = nil
			}
			if !yield(pairs[i], value) {
				return
			}
		}
	}
}

const gone = "(gone)"

func mustAppend(t testing.TB, j *Journal, leases iter.Seq2[string, []byte]) {
	t.Helper()
	must.Do(t, j.Append(leases))
}

func wantJournal(t testing.TB, j *Journal, want map[string]string) {
	t.Helper()
	got := make(map[string]string)
	err := j.All(t.Context(), func(name, value []byte) { got[string(name)] = string(value) })
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if total, _ := j.Count(slices.Values([]string(nil))); total != len(want) {
		t.Errorf("%d leases counted, want %d", total, len(want))
	}
}

// threeFrames returns a journal of three commits, and where each of them begins and
// ends.
func threeFrames(t testing.TB) (raw []byte, ends []int64) {
	t.Helper()
	dir := t.TempDir()
	j := newJournal(t, dir, realCalls)
	ends = append(ends, j.file.end)
	for _, b := range []iter.Seq2[string, []byte]{
		leasesOf("a", "1", "b", "1"), leasesOf("b", "2", "c", "2"), leasesOf("d", "3", "a", gone),
	} {
		mustAppend(t, j, b)
		ends = append(ends, j.file.end)
	}
	raw = must.Get(os.ReadFile(filepath.Join(dir, FileName)))(t)
	return raw, ends
}

// reopened is what is in a journal that was found as raw, and in it once more after
// another commit.
func reopened(t testing.TB, raw []byte, want map[string]string) *Journal {
	t.Helper()
	dir := t.TempDir()
	must.Do(t, os.WriteFile(filepath.Join(dir, FileName), raw, 0o600))
	j := newJournal(t, dir, realCalls)
	damage := j.damage
	wantJournal(t, j, want)
	mustAppend(t, j, leasesOf("z", "9"))
	must.Do(t, errors.Join(j.checkTail(), j.Close()))
	again := newJournal(t, dir, realCalls)
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

// A bit that flipped costs no more than the commit it is in, and is reported.
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
		aside, err := os.ReadFile(j.path + damagedSuffix)
		if err != nil || !bytes.Equal(aside, flipped) {
			t.Errorf("byte %d: no copy of the damaged file, %v", at, err)
		}
	}
}

func TestJournalOfAnotherVersionIsRefused(t *testing.T) {
	raw, _ := threeFrames(t)
	binary.BigEndian.PutUint32(raw[8:], version+1)
	sealHead(raw[:headSize])
	dir := t.TempDir()
	must.Do(t, os.WriteFile(filepath.Join(dir, FileName), raw, 0o600))
	_, err := Open(dir, slog.New(slog.DiscardHandler))
	if !errors.Is(err, errVersion) {
		t.Errorf("got %v", err)
	}
	if after, _ := os.ReadFile(filepath.Join(dir, FileName)); !bytes.Equal(after, raw) {
		t.Error("it was changed")
	}
}

// Another layout needs another version.
func TestJournalLayoutStays(t *testing.T) {
	const salt = 0x0102030405060708
	frame, err := appendEntry(make([]byte, headSize), "name", []byte("value"))
	if err == nil {
		frame, err = appendEntry(frame, "gone", nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprintf("%q", append(headOf(salt), sealFrame(frame, 7, salt)...))
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
	j := newJournal(t, dir, realCalls)
	mustAppend(t, j, leasesOf("a", "1"))
	_ = j.Close()
	must.Do(t, os.WriteFile(filepath.Join(dir, FileName+newSuffix), make([]byte, 1<<20), 0o600))
	wantJournal(t, newJournal(t, dir, realCalls), map[string]string{"a": "1"})
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) != 1 {
		t.Errorf("files %v", left)
	}
}

// Where no copy can be kept the leases are used all the same.
func TestDamagedJournalIsUsedWithoutACopy(t *testing.T) {
	raw, ends := threeFrames(t)
	raw[ends[0]+headSize] ^= 1
	dir := t.TempDir()
	occupied := filepath.Join(dir, FileName+damagedSuffix, "by something else")
	must.Do(t, errors.Join(os.MkdirAll(occupied, 0o700), os.WriteFile(filepath.Join(dir, FileName), raw, 0o600)))
	wantJournal(t, newJournal(t, dir, realCalls), map[string]string{"b": "2", "c": "2", "d": "3"})
}

func TestJournalIsForItsOwnerAlone(t *testing.T) {
	j := newJournal(t, t.TempDir(), realCalls)
	if info, err := os.Stat(j.path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

// Whatever is saved while the journal is compacted is in it before and afterwards.
func TestLeasesAreSavedWhileTheJournalIsCompacted(t *testing.T) {
	dir := t.TempDir()
	j := newJournal(t, dir, realCalls)
	want := make(map[string]string)
	compacted, began := 0, j.file.salt
	for n := 0; compacted < 5; n++ {
		name := fmt.Sprint("lease-", n%50)
		mustAppend(t, j, leasesOf(name, fmt.Sprint(n), fmt.Sprint("lease-", (n+25)%50), gone))
		want[name] = fmt.Sprint(n)
		delete(want, fmt.Sprint("lease-", (n+25)%50))
		if j.file.salt != began {
			compacted, began = compacted+1, j.file.salt
			wantJournal(t, j, want)
			must.Do(t, j.checkTail())
		}
		j.compactAt = 0
		if n > 100_000 {
			t.Fatal("it is not compacted")
		}
	}
	if err := j.Close(); err != nil { // with a compaction under way, or not
		t.Fatal(err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) != 1 {
		t.Errorf("files %v", left)
	}
	wantJournal(t, newJournal(t, dir, realCalls), want)
}

func TestJournalStaysSmall(t *testing.T) {
	j := newJournal(t, t.TempDir(), realCalls)
	largest := int64(0)
	value := strings.Repeat("x", 64<<10-2)
	for range 300 {
		mustAppend(t, j, leasesOf("a", value))
		largest = max(largest, j.file.end)
		if c := j.compaction; c != nil {
			<-c.done
		}
	}
	if largest > minCompactSize+(256<<10) {
		t.Errorf("it had %d bytes for one lease", largest)
	}
	wantJournal(t, j, map[string]string{"a": value})
}

// A journal that cannot be compacted goes on as it is.
func TestFailedCompactionIsOfNoHarm(t *testing.T) {
	d := realCalls
	full := false
	d.write = func(f *os.File, b []byte, at int64) (int, error) {
		if full && strings.HasSuffix(f.Name(), newSuffix) {
			return 0, syscall.ENOSPC
		}
		return f.WriteAt(b, at)
	}
	dir := t.TempDir()
	newJournal(t, dir, realCalls).Close()
	j := newJournal(t, dir, d)
	full, j.compactAt = true, 0
	mustAppend(t, j, leasesOf("a", "1"))
	<-j.compaction.done
	mustAppend(t, j, leasesOf("b", "1"))
	if j.compaction != nil {
		t.Error("it is tried again at once")
	}
	wantJournal(t, j, map[string]string{"a": "1", "b": "1"})
}

// What only a new file has is not durable before its name is: after a crash the file
// before may be there again.
func TestNothingIsSavedBeforeTheJournalsNameIsDurable(t *testing.T) {
	dir := t.TempDir()
	d, named, failed := realCalls, 0, syscall.EIO
	d.names = func(dir string) error {
		if failed != 0 {
			return failed
		}
		named++
		return disk.SyncDir(dir)
	}
	j := newJournal(t, dir, d)
	if err := j.Append(leasesOf("a", "1")); !errors.Is(err, syscall.EIO) {
		t.Errorf("a new journal: %v", err)
	}
	failed = 0
	mustAppend(t, j, leasesOf("b", "1"))
	j.compactAt = 0
	mustAppend(t, j, leasesOf("c", "1"))
	if named != 1 {
		t.Errorf("it was made durable %d times", named)
	}
	<-j.compaction.done
	failed = syscall.EIO
	j.endCompaction()
	for range 2 {
		if err := j.Append(leasesOf("d", "1")); !errors.Is(err, syscall.EIO) {
			t.Errorf("a compacted journal: %v", err)
		}
	}
	failed = 0
	mustAppend(t, j, leasesOf("e", "1"))
	wantJournal(t, j, map[string]string{"b": "1", "c": "1", "e": "1"})
}

// A damage that is found while the journal is used is a loss: what can be read is kept,
// and who saves learns that the rest is to be saved again.
func TestDamageUnderUsIsALoss(t *testing.T) {
	j := newJournal(t, t.TempDir(), realCalls)
	mustAppend(t, j, leasesOf("a", "1"))
	f := must.Get(os.OpenFile(j.path, os.O_RDWR, 0))(t)
	defer f.Close()
	must.Get(f.WriteAt([]byte{0xff}, j.file.last+headSize+3))(t)
	j.compactAt = 0
	mustAppend(t, j, leasesOf("b", "1"))
	<-j.compaction.done
	if err := j.Append(leasesOf("c", "1")); !errors.Is(err, ErrLost) {
		t.Errorf("got %v", err)
	}
	must.Do(t, j.Reopen())
	mustAppend(t, j, leasesOf("c", "1"))
	wantJournal(t, j, map[string]string{"b": "1", "c": "1"})
}

// A disk that fails leaves the journal as it was, and the next save is made.
func TestFailedWritesLeaveTheJournalAsItWas(t *testing.T) {
	const times = 4
	cases := map[string]func(d *calls, fails *bool){
		"no room to grow": func(d *calls, fails *bool) {
			d.grow = func(f *os.File, from, to int64) error {
				if *fails {
					return errors.Join(f.Truncate(to), syscall.ENOSPC)
				}
				return disk.Preallocate(f, from, to)
			}
		},
		"half of a write": func(d *calls, fails *bool) {
			d.write = func(f *os.File, b []byte, at int64) (int, error) {
				if *fails {
					n, _ := f.WriteAt(b[:len(b)/2], at)
					return n, syscall.ENOSPC
				}
				return f.WriteAt(b, at)
			}
		},
		"a sync that fails": func(d *calls, fails *bool) {
			d.sync = func(f *os.File) error {
				if *fails {
					return syscall.EDQUOT
				}
				return disk.Datasync(f)
			}
		},
	}
	for name, breakDisk := range cases {
		t.Run(name, func(t *testing.T) {
			d, fails := realCalls, false
			breakDisk(&d, &fails)
			dir := t.TempDir()
			j := newJournal(t, dir, d)
			want := make(map[string]string)
			large := strings.Repeat("x", growStep/8)
			for n := range 4 * times {
				fails = n%2 == 1
				err := j.Append(leasesOf(fmt.Sprint(n), large, "a", fmt.Sprint(n), fmt.Sprint(n, "b"), large))
				if err == nil {
					want["a"], want[fmt.Sprint(n)], want[fmt.Sprint(n, "b")] = fmt.Sprint(n), large, large
				} else if !errors.Is(err, ErrFull) || !strings.Contains(err.Error(), "free some space") {
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
			_ = j.Close()
			again := newJournal(t, dir, realCalls)
			wantJournal(t, again, want)
			if again.damage != 0 {
				t.Error("it is damaged")
			}
		})
	}
}

var unsynced = calls{
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
		if errors.Is(err, errVersion) {
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
		j := &Journal{path: filepath.Join(t.TempDir(), FileName), disk: unsynced}
		s := must.Get(j.write(func(add func(entry) error) error {
			return live.each(bytes.NewReader(raw), int64(len(raw)), add)
		}))(t)
		defer s.file.Close()
		again, kept, err := readLive(s.file, s.end, func() error { return nil })
		if err != nil || again.damage > 0 || again.torn > 0 || !maps.EqualFunc(kept.spans, want, func(span, string) bool { return true }) {
			t.Errorf("written again: %+v, %d leases of %d, %v", again, len(kept.spans), len(want), err)
		}
	})
}
