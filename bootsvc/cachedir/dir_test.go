package cachedir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"ingot/model/must"
)

func digest(n byte) string { return "sha256:" + strings.Repeat(string([]byte{'0' + n}), 64) }

// files is a kind of which nothing is noted.
func files() *Kind {
	return &Kind{
		Ending: ".x", Evicted: func(*Entry) {},
		Measure: func(_, _ string, info fs.FileInfo) (int64, bool) { return info.Size(), info.Size() > 0 },
	}
}

func open(t *testing.T, o Options) *Dir {
	t.Helper()
	d := must.Get(Open(o))(t)
	t.Cleanup(d.Close)
	return d
}

func keep(t *testing.T, d *Dir, k *Kind, n byte, size int64, used time.Time) *Entry {
	t.Helper()
	e := d.New(k, digest(n))
	must.Do(t, e.Take(size))
	must.Do(t, os.WriteFile(e.Part(), make([]byte, size), 0o600))
	must.Do(t, e.Keep(used))
	return e
}

func TestEntriesOutliveTheProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "cache")
	d := open(t, Options{Path: path})
	used := time.Unix(1e9, 0)
	keep(t, d, files(), 1, 10, used).Touch(used.Add(time.Hour))
	keep(t, d, files(), 2, 20, used).Touch(used.Add(2 * time.Hour))
	must.Do(t, os.WriteFile(d.New(files(), digest(3)).Path(), nil, 0o600)) // cannot be used
	must.Do(t, os.MkdirAll(filepath.Join(d.New(files(), digest(4)).Part(), "half"), 0o700))
	must.Do(t, os.WriteFile(filepath.Join(path, "notes"), nil, 0o600)) // of another program
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the folder: %v, %v", info.Mode(), err)
	}
	if _, err := Open(Options{Path: path}); err == nil || !strings.Contains(err.Error(), "in use by another process") {
		t.Errorf("a second process in the folder: %v", err)
	}
	d.Close()
	d = open(t, Options{Path: path, MaxBytes: 30})
	k := files()
	var sizes []int64
	for _, e := range must.Get(d.Load(k))(t) {
		sizes = append(sizes, e.Size())
	}
	if !slices.Equal(sizes, []int64{10, 20}) {
		t.Errorf("entries of %v bytes", sizes)
	}
	var names []string
	for _, f := range must.Get(os.ReadDir(path))(t) {
		names = append(names, f.Name())
	}
	if len(names) != 4 || !slices.Contains(names, "notes") {
		t.Errorf("there is %v", names)
	}
	var gone []string
	k.Evicted = func(e *Entry) { gone = append(gone, e.Digest) }
	must.Do(t, d.New(k, digest(5)).Take(5))
	if !slices.Equal(gone, []string{digest(1)}) {
		t.Errorf("evicted %v, want the one that was not used longest", gone)
	}
}

func TestTakeEvictsOnlyWhatMakesRoom(t *testing.T) {
	for name, tc := range map[string]struct {
		max, disk int64 // of the disk, of which entries take their part
		pinned    byte
		read      byte // is being read
		take      int64
		evicted   string
		err       error
	}{
		"there is room":                                {max: 50, disk: 100, take: 20},
		"the oldest goes":                              {max: 50, disk: 100, take: 21, evicted: "1"},
		"as many as it takes":                          {max: 50, disk: 100, take: 41, evicted: "123"},
		"pinned stays":                                 {max: 50, disk: 100, take: 21, pinned: 1, evicted: "2"},
		"what is read stays":                           {max: 50, disk: 100, take: 21, read: 1, evicted: "2"},
		"nothing goes for what does not fit":           {max: 50, disk: 100, take: 41, pinned: 3, err: ErrLimit},
		"the disk is full":                             {disk: 40, take: 15, evicted: "1"},
		"the disk is too small":                        {disk: 40, take: 31, pinned: 1, err: ErrFull},
		"the disk has room and the cache is too small": {max: 35, disk: 100, take: 36, err: ErrLimit},
	} {
		t.Run(name, func(t *testing.T) {
			d := open(t, Options{Path: t.TempDir(), MaxBytes: tc.max, Pinned: func(s string) bool { return s == digest(tc.pinned) }})
			d.free = func() (int64, error) { return tc.disk - d.size, nil }
			k, evicted := files(), ""
			k.Evicted = func(e *Entry) { evicted += e.Digest[len(e.Digest)-1:] }
			for n := byte(1); n <= 3; n++ {
				e := keep(t, d, k, n, 10, time.Unix(int64(n), 0))
				if n == tc.read {
					e.Users.Add(1)
				}
			}
			can := d.CanTake(tc.take)
			e := d.New(k, digest(9))
			if err := e.Take(tc.take); !errors.Is(err, tc.err) || !errors.Is(can, tc.err) || evicted != tc.evicted {
				t.Errorf("got %v and %v, evicted %q; want %v, %q", err, can, evicted, tc.err, tc.evicted)
			}
			before := d.size
			had := e.Size()
			e.Drop()
			if d.size != before-had || e.Size() != 0 {
				t.Errorf("%d bytes are taken, %d before an entry of %d was dropped", d.size, before, had)
			}
		})
	}
}

func TestUseIsNotedOnceAMinute(t *testing.T) {
	d := open(t, Options{Path: t.TempDir()})
	start := time.Unix(1e9, 0)
	e := keep(t, d, files(), 1, 10, start)
	if e.Touch(start.Add(59*time.Second)) || e.Used() != start {
		t.Errorf("it was noted after 59 s: %v", e.Used())
	}
	later := start.Add(time.Minute)
	if !e.Touch(later) || !must.Get(os.Stat(e.Path()))(t).ModTime().Equal(later) {
		t.Error("it was not noted after a minute")
	}
}

func TestAReplacedEntryIsCountedOnce(t *testing.T) {
	d := open(t, Options{Path: t.TempDir()})
	old := keep(t, d, files(), 1, 10, time.Now())
	keep(t, d, files(), 1, 20, time.Now())
	old.Drop()
	if d.size != 20 || !d.Fits(1<<40) {
		t.Errorf("%d bytes are taken, want 20", d.size)
	}
}

func TestAPartOfTheDiskIsLeftToOthers(t *testing.T) {
	dir := t.TempDir()
	var s unix.Statfs_t
	must.Do(t, unix.Statfs(dir, &s))
	all, twentieth := must.Get(free(dir, 0))(t), int64(s.Blocks/share)*s.Bsize
	if got := must.Get(free(dir, 1<<62))(t); all-got < twentieth/2 || all-got > twentieth*2 {
		t.Errorf("%d of %d bytes are left to others, want about %d", all-got, all, twentieth)
	}
}
