package imagecache

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"ingot/model/must"
)

func runChild(what string) {
	var err error
	switch what {
	case "download":
		err = childDownload()
	case "full disk":
		err = childFullDisk()
	case "bare", "cache":
		err = childServer(what)
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

func child(t *testing.T, what string) *exec.Cmd {
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), "IMAGECACHE_CHILD="+what, "IMAGECACHE_DIR="+t.TempDir())
	return cmd
}

// childDownload fetches one blob wholly and another for ever.
func childDownload() error {
	c, err := openAt(settings{Path: os.Getenv("IMAGECACHE_DIR")})
	if err != nil {
		return err
	}
	ctx := context.Background()
	whole := &upstreamFake{blob: content(1<<20, 1)}
	if err := c.Prefetch(ctx, []Key{keyOf(whole.blob)}, func(Key) Fetch { return whole.fetch }); err != nil {
		return err
	}
	half := &upstreamFake{blob: content(1<<20, 2), silent: 600_000}
	b, err := c.Get(ctx, keyOf(half.blob), half.fetch)
	if err != nil {
		return err
	}
	if _, err := io.CopyN(io.Discard, b, 600_000); err != nil {
		return err
	}
	fmt.Println("half")
	_, err = io.Copy(io.Discard, b)
	return err
}

func TestAProcessKilledInTheMiddleLeavesNothingHalf(t *testing.T) {
	cmd := child(t, "download")
	dir := cmd.Env[len(cmd.Env)-1][len("IMAGECACHE_DIR="):]
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	must.Do(t, cmd.Start())
	line := make([]byte, 5)
	_, err = io.ReadFull(out, line)
	if killErr := cmd.Process.Kill(); err != nil || killErr != nil || string(line) != "half\n" {
		t.Fatal(err, killErr, string(line))
	}
	_ = cmd.Wait()
	if got := names(t, dir); len(got) != 2 {
		t.Fatalf("the child left %v", got)
	}
	c := newCache(t, dir)
	whole, half := &upstreamFake{blob: content(1<<20, 1)}, &upstreamFake{blob: content(1<<20, 2)}
	if got := names(t, dir); len(got) != 1 || got[0] != strings.Replace(keyOf(whole.blob).Digest, ":", "-", 1) {
		t.Errorf("after the restart there is %v", got)
	}
	mustRead(t, c, whole.blob, never)
	mustRead(t, c, half.blob, half.fetch)
}

// A disk that lies, found before anything of it is served.
func TestADamagedFileIsFetchedAnew(t *testing.T) {
	blob := content(1<<20, 1)
	flipped := bytes.Clone(blob)
	flipped[77] ^= 1
	for name, write := range map[string][]byte{
		"a byte has changed": flipped,
		"it is shorter":      blob[:1000],
		"it is longer":       append(bytes.Clone(blob), 0),
		"it is empty":        {},
	} {
		damage := func(t *testing.T, path string) {
			f := must.Get(os.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0))(t)
			defer f.Close()
			must.Get(f.Write(write))(t)
		}
		check := func(t *testing.T, c *Cache) {
			up := &upstreamFake{blob: blob}
			var first [4]bool
			for n := range first { // whoever asks, nobody sees the damage
				b := get(t, c, keyOf(blob), up.fetch)
				got, err := io.ReadAll(b)
				if err != nil || !bytes.Equal(got, blob) {
					t.Fatalf("reader %d: got %d bytes, %v", n, len(got), err)
				}
			}
			landed(t, c)
			if up.bytes() != len(blob) {
				t.Errorf("the registry sent %d bytes", up.bytes())
			}
			if got := names(t, pathOf(c, "")); len(got) != 1 {
				t.Errorf("there is %v", got)
			}
		}
		t.Run(name+" while nobody looked", func(t *testing.T) {
			dir := t.TempDir()
			c := newCache(t, dir)
			mustRead(t, c, blob, (&upstreamFake{blob: blob}).fetch)
			landed(t, c)
			shut(c)
			damage(t, pathOf(c, keyOf(blob).Digest))
			check(t, newCache(t, dir))
		})
		t.Run(name+" behind the cache's back", func(t *testing.T) {
			c := newCache(t, t.TempDir())
			mustRead(t, c, blob, (&upstreamFake{blob: blob}).fetch)
			landed(t, c)
			damage(t, pathOf(c, keyOf(blob).Digest))
			check(t, c)
		})
	}
}

func TestAFileIsHashedOnceAfterARestart(t *testing.T) {
	dir := t.TempDir()
	c := newCache(t, dir)
	blob := content(1<<20, 1)
	mustRead(t, c, blob, (&upstreamFake{blob: blob}).fetch)
	landed(t, c)
	shut(c)
	c = newCache(t, dir, func(o *settings) { o.QueueTimeout = time.Second })
	mustRead(t, c, blob, never)
	for range cap(c.proofs) {
		c.proofs <- struct{}{} // what has to be hashed from now on waits in vain
	}
	for range 2 {
		mustRead(t, c, blob, never)
	}
	counted(t, "hits", c.metrics.hits, 3)
	counted(t, "misses", c.metrics.misses, 0)
}

func blobs(n, size int) []*upstreamFake {
	var ups []*upstreamFake
	for i := range n {
		ups = append(ups, &upstreamFake{blob: content(size, uint64(i))})
	}
	return ups
}

func kept(c *Cache, ups []*upstreamFake) []int {
	var kept []int
	for n, up := range ups {
		if done, total, ok := c.Progress(keyOf(up.blob).Digest); ok && done == total {
			kept = append(kept, n)
		}
	}
	return kept
}

func TestTheLeastRecentlyUsedBlobGoesFirst(t *testing.T) {
	dir := t.TempDir()
	ups := blobs(6, 1000)
	spared := keyOf(ups[0].blob).Digest
	now := time.Now()
	options := func(o *settings) {
		o.MaxBytes, o.Clock = 3000, func() time.Time { return now }
		o.Pinned = func(d string) bool { return d == spared }
	}
	c := newCache(t, dir, options)
	use := func(n int, want ...int) {
		t.Helper()
		now = now.Add(2 * time.Minute)
		mustRead(t, c, ups[n].blob, ups[n].fetch)
		landed(t, c)
		if got := kept(c, ups); !slices.Equal(got, want) {
			t.Errorf("after %d there is %v, want %v", n, got, want)
		}
	}
	use(0, 0)
	use(1, 0, 1)
	use(2, 0, 1, 2)
	use(1, 0, 1, 2)
	use(3, 0, 1, 3) // 0 is spared, 1 was used after 2
	shut(c)
	c = newCache(t, dir, options)
	use(1, 0, 1, 3)
	shut(c)
	c = newCache(t, dir, options)
	use(4, 0, 1, 4) // the order outlived both restarts
	reader := get(t, c, keyOf(ups[1].blob), never)
	use(5, 0, 1, 5) // 1 is being read, though 4 was used later
	if err := reader.Close(); err != nil {
		t.Error(err)
	}
	taken(t, c, 3000)
	counted(t, "blobs", c.metrics.blobs, 3)
}

func TestWhatIsSparedIsNotEvictedForABlobThatDoesNotFitAnyway(t *testing.T) {
	ups := append(blobs(2, 1000), &upstreamFake{blob: content(2500, 9)})
	c := newCache(t, t.TempDir(), func(o *settings) {
		o.MaxBytes = 3000
		o.Pinned = func(d string) bool { return d == keyOf(ups[0].blob).Digest }
	})
	for _, up := range ups {
		mustRead(t, c, up.blob, up.fetch)
		landed(t, c)
	}
	if got := kept(c, ups); !slices.Equal(got, []int{0, 1}) {
		t.Errorf("there is %v", got)
	}
	counted(t, "bypasses", c.metrics.bypasses, 1)
	taken(t, c, 2000)
	if err := c.Prefetch(t.Context(), []Key{keyOf(ups[2].blob)}, func(Key) Fetch { return never }); !errors.Is(err, ErrNoRoom) {
		t.Errorf("prefetch: %v", err)
	}
}

// lines counts log lines with a text.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), text)
}

// A disk that fails in the middle: each reader gets the blob all the same, verified
// as a whole.
func TestADiskThatFailsInTheMiddle(t *testing.T) {
	blob := content(2<<20, 1)
	wrong := bytes.Clone(blob)
	wrong[1_900_000] ^= 1
	early := bytes.Clone(blob)
	early[1000] ^= 1
	for name, tt := range map[string]struct {
		then []byte // what the registry has when readers turn to it
		ok   bool
		had  []byte // what it had before
	}{
		"readers go on from the registry":          {blob, true, blob},
		"and what they get there is verified, too": {wrong, false, blob},
		"along with what they have already":        {blob, false, early},
	} {
		t.Run(name, func(t *testing.T) {
			var log lines
			c := newCache(t, t.TempDir(), func(o *settings) { o.Log = slog.New(slog.NewTextHandler(&log, nil)) })
			var part *os.File
			c.disk.allocate = func(f *os.File, _ int64) error { part = f; return nil }
			up := &upstreamFake{blob: tt.had, gate: make(chan struct{}), piece: 1 << 20}
			var readers sync.WaitGroup
			for n := range 3 {
				b := get(t, c, keyOf(blob), up.fetch)
				readers.Go(func() {
					_, _ = b.Seek(int64(n)*700_000, io.SeekStart)
					got, err := io.ReadAll(b)
					if (err == nil) != tt.ok || tt.ok && !bytes.Equal(got, blob[n*700_000:]) {
						t.Errorf("reader %d: got %d bytes, %v", n, len(got), err)
					}
					if err != nil && len(got) > len(blob)-n*700_000-holdback {
						t.Errorf("reader %d has all of a blob that is wrong", n)
					}
				})
			}
			for range 3 {
				up.gate <- struct{}{}
			}
			until(t, "some arrives", func() bool { return up.bytes() >= 500_000 })
			// From now on the file cannot be written, as when the disk is full.
			null := must.Get(os.Open(os.DevNull))(t)
			defer null.Close()
			up.mu.Lock()
			up.blob = tt.then
			up.mu.Unlock()
			readOnly(t, part)
			close(up.gate)
			readers.Wait()
			landed(t, c)
			if n := log.count("cannot keep a blob"); n != 1 {
				t.Errorf("it was said %d times", n)
			}
			if left := names(t, pathOf(c, "")); left != nil {
				t.Errorf("files left: %v", left)
			}
			taken(t, c, 0)
		})
	}
}

// readOnly makes f, which is open, refuse to be written.
func readOnly(t *testing.T, f *os.File) {
	t.Helper()
	same := must.Get(os.Open(f.Name()))(t)
	defer same.Close()
	raw, err := f.SyscallConn() // as f may be closed meanwhile
	if err != nil {
		t.Fatal(err)
	}
	var refused error
	if err := raw.Control(func(fd uintptr) { refused = unix.Dup3(int(same.Fd()), int(fd), unix.O_CLOEXEC) }); err != nil || refused != nil {
		t.Fatal(err, refused)
	}
}

// childFullDisk uses a cache on a disk of 1 MB.
func childFullDisk() error {
	dir := os.Getenv("IMAGECACHE_DIR")
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
		return fmt.Errorf("mount: %w", err)
	}
	var log lines
	c, err := openAt(settings{
		Path: dir, Options: Options{Log: slog.New(slog.NewTextHandler(&log, nil))},
		Pinned: func(d string) bool { return d == keyOf(content(400_000, 0)).Digest },
	})
	if err != nil {
		return err
	}
	ups := append(blobs(3, 400_000), &upstreamFake{blob: content(900_000, 9)})
	for n, want := range [][]int{{0}, {0, 1}, {0, 2}, {0, 2}} {
		b, err := c.Get(context.Background(), keyOf(ups[n].blob), ups[n].fetch)
		if err != nil {
			return err
		}
		got, err := io.ReadAll(b)
		b.Close()
		if err != nil || !bytes.Equal(got, ups[n].blob) {
			return fmt.Errorf("blob %d: got %d bytes, %w", n, len(got), err)
		}
		c.group.Wait()
		if got := kept(c, ups); !slices.Equal(got, want) {
			return fmt.Errorf("after blob %d there is %v, want %v", n, got, want)
		}
	}
	// The same without an early warning: the disk is full in the middle of a blob.
	c.disk.allocate = func(*os.File, int64) error { return nil }
	b, err := c.Get(context.Background(), keyOf(ups[3].blob), ups[3].fetch)
	if err != nil {
		return err
	}
	defer b.Close()
	if got, err := io.ReadAll(b); err != nil || !bytes.Equal(got, ups[3].blob) {
		return fmt.Errorf("full in the middle: got %d bytes, %w", len(got), err)
	}
	if n := log.count("no room"); n != 1 {
		return fmt.Errorf("it was said %d times: %s", n, log.text.String())
	}
	return nil
}

func TestAFullDisk(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("NOT TESTED: a full disk needs root, to mount one")
	}
	cmd := child(t, "full disk")
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	out, err := cmd.CombinedOutput()
	if bytes.HasPrefix(out, []byte("mount:")) || errors.Is(err, syscall.EPERM) {
		t.Skipf("NOT TESTED: a full disk needs the right to mount one: %s %v", out, err)
	}
	if err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// Histories: whatever happens, a reader who gets to the end has the blob, and no
// file is ever wrong.
func TestHistories(t *testing.T) {
	for seed := range uint64(12) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { history(t, rand.New(rand.NewPCG(seed, 1))) })
	}
}

func history(t *testing.T, r *rand.Rand) {
	dir := t.TempDir()
	sizes := []int{1, 1000, holdback, holdback + 1, 200_000, 700_000}
	options := func(o *settings) {
		o.MaxBytes = 1_200_000
		o.MaxFetches = 2
		o.Pinned = func(d string) bool { return d[7] < '4' }
	}
	c := newCache(t, dir, options)
	for range 6 {
		var clients sync.WaitGroup
		for range 8 {
			n := r.IntN(len(sizes))
			blob := content(sizes[n], uint64(n))
			up := &upstreamFake{blob: blob, noOffset: r.IntN(2) == 0, piece: 1 + r.IntN(100_000)}
			switch r.IntN(5) {
			case 0:
				up.blob = bytes.Clone(blob)
				up.blob[r.IntN(len(blob))] ^= 4
			case 1:
				up.blob = blob[:r.IntN(len(blob))]
			case 2:
				up.dropAt = []int{r.IntN(len(blob)), r.IntN(len(blob))}
			case 3:
				up.down = errDropped
			}
			from, leaves := r.IntN(len(blob)), r.IntN(4) == 0
			clients.Go(func() { visit(t, c, blob, up, from, leaves) })
		}
		clients.Wait()
		switch r.IntN(3) {
		case 0:
			shut(c)
			c = newCache(t, dir, options)
		case 1:
			landed(t, c)
			spoil(t, r, dir)
		}
	}
	landed(t, c)
	taken(t, c, float64(total(c)))
	shut(c)
	for _, name := range names(t, dir) {
		if strings.HasSuffix(name, ".part") {
			t.Errorf("%s was left", name)
		}
	}
}

func visit(t *testing.T, c *Cache, blob []byte, up *upstreamFake, from int, leaves bool) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	b, err := c.Get(ctx, keyOf(blob), up.fetch)
	if err != nil {
		return
	}
	defer b.Close()
	_, _ = b.Seek(int64(from), io.SeekStart)
	if leaves {
		cancel()
	}
	got, err := io.ReadAll(b)
	switch {
	case err == nil && !bytes.Equal(got, blob[from:]):
		t.Errorf("a client got %d wrong bytes from %d of %d", len(got), from, len(blob))
	case err != nil && len(got) == len(blob)-from:
		t.Errorf("a client got the whole blob and an error: %v", err)
	}
}

func total(c *Cache) (n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, f := range c.files {
		n += f.size
	}
	return n
}

func spoil(t *testing.T, r *rand.Rand, dir string) {
	files := names(t, dir)
	if len(files) == 0 {
		return
	}
	path := filepath.Join(dir, files[r.IntN(len(files))])
	raw := must.Get(os.ReadFile(path))(t)
	raw[r.IntN(len(raw))] ^= 1
	must.Do(t, os.WriteFile(path, raw, 0o600))
}
