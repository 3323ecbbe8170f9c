package gitsource

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"

	"ingot/gitsource/gitserver"
	"ingot/model"
)

func unpacked(t *testing.T, pack []byte) (*store, map[plumbing.Hash]int64, error) {
	t.Helper()
	st := ok[*store](t)(openStore(t.TempDir()))
	t.Cleanup(st.close)
	left, err := unpack(t.Context(), st.dir, &st.storage.ObjectStorage, bytes.NewReader(pack))
	return st, left, err
}

func prose(seed uint64, n int) string {
	rng := rand.New(rand.NewPCG(seed, 0))
	var b strings.Builder
	for b.Len() < n {
		fmt.Fprintf(&b, "line %d: %x\n", b.Len(), rng.Uint64())
	}
	return b.String()[:n]
}

func packOf(t *testing.T, repo *servedRepo, arguments ...string) []byte {
	t.Helper()
	ok[string](t)(repo.Git(append([]string{"repack", "-adfq", "--window=20"}, arguments...)...))
	names := strings.Fields(ok[string](t)(repo.Git("rev-list", "--objects", "--all", "--no-object-names")))
	file := writeFile(t, []byte(strings.Join(names, "\n")+"\n"))
	out := writeFile(t, nil)
	ok[string](t)(repo.Git("-c",
		"alias.pack=!f() { git pack-objects --stdout --delta-base-offset <\""+file+"\" >\""+out+"\"; }; f", "pack"))
	return ok[[]byte](t)(os.ReadFile(out))
}

func TestUnpack(t *testing.T) {
	repo := newGitRepo(t)
	large := prose(1, 3<<20)
	for _, files := range []map[string]string{
		{"a.yaml": claimYAML("a", "1"), "large.yaml": large, "zeros": strings.Repeat("\x00", 40<<20), "exact.yaml": prose(2, maxBlob)},
		{"a.yaml": claimYAML("a", "2"), "large.yaml": large + "more\n"},
		// what is split is made of what it was
		{"a.yaml": claimYAML("a", "3"), "large.yaml": large[:900<<10], "rest.yaml": large[900<<10 : 1800<<10]},
	} {
		ok[string](t)(repo.Commit(files, "change"))
	}
	st, left, err := unpacked(t, packOf(t, repo))
	if err != nil {
		t.Fatal(err)
	}
	deltas := 0
	checks := ok[string](t)(repo.Git("cat-file", "--batch-all-objects",
		"--batch-check=%(objectname) %(objecttype) %(objectsize) %(deltabase)"))
	for line := range strings.Lines(checks) {
		var name, kind, base string
		var size int64
		_ = ok[int](t)(fmt.Sscan(line, &name, &kind, &size, &base))
		if base != plumbing.ZeroHash.String() {
			deltas++
		}
		hash := plumbing.NewHash(name)
		o, err := st.storage.EncodedObject(plumbing.AnyObject, hash)
		if size > maxBlob {
			if !errors.Is(err, plumbing.ErrObjectNotFound) || left[hash] != size {
				t.Errorf("%s of %d bytes: %v, and it is left out with %d", kind, size, err, left[hash])
			}
			continue
		}
		if err != nil || o.Type().String() != kind || o.Size() != size || o.Hash() != hash || left[hash] != 0 {
			t.Errorf("%s %s of %d bytes: %v", kind, name, size, err)
		}
	}
	if deltas < 4 || len(left) != 3 {
		t.Errorf("Git packed %d deltas, and %d objects were left out: that tries too little", deltas, len(left))
	}
	if files := ok[[]os.DirEntry](t)(os.ReadDir(st.dir)); strings.Contains(fmt.Sprint(files), "spool") {
		t.Errorf("files are left behind: %v", files)
	}
}

func packed_(objects uint32, entries ...func(*packWriter)) []byte {
	p := newPackWriter()
	for _, add := range entries {
		add(p)
	}
	p.objects = objects
	return p.bytes()
}

func blobEntry(content []byte) func(*packWriter) {
	return func(p *packWriter) { p.add(packBlob, content) }
}

func copies(base []byte, n int) []byte {
	delta := binary.AppendUvarint(binary.AppendUvarint(nil, uint64(len(base))), uint64(len(base)*n))
	for range n { // copy from offset 0: the size in two bytes
		delta = append(delta, 0x80|0x10|0x20, byte(len(base)), byte(len(base)>>8))
	}
	return delta
}

// TestPacksThatInflate: what a pack claims and holds costs no memory before it is known
// to be within limits.
func TestPacksThatInflate(t *testing.T) {
	base := bytes.Repeat([]byte("x"), 0xffff)
	small := []byte("kind: ServerClaim\n")
	bomb := func(p *packWriter) { p.addDelta(hashObject("blob", base), copies(base, 20_000)) }
	tests := map[string]struct {
		pack []byte
		err  error
		left int
	}{
		"a file of 200 MiB":             {pack: packed_(2, blobEntry(make([]byte, 200<<20)), blobEntry(small)), left: 1},
		"a change that makes 1.3 GB":    {pack: packed_(3, blobEntry(base), bomb, blobEntry(small))},
		"more objects than are indexed": {pack: packed_(1<<31, blobEntry(small)), err: errPackTooLarge},
		"an object that claims 1 TB": {
			pack: packed_(1, func(p *packWriter) { p.header(packBlob, 1<<40); p.deflate(small) }),
			err:  packfile.ErrMalformedPackFile,
		},
		"an object that claims too little": {
			pack: packed_(1, func(p *packWriter) { p.header(packBlob, 3); p.deflate(small) }),
			err:  packfile.ErrInflatedSizeMismatch,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			st := ok[*store](t)(openStore(t.TempDir()))
			defer st.close()
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			left, err := unpack(t.Context(), st.dir, &st.storage.ObjectStorage, bytes.NewReader(tt.pack))
			runtime.ReadMemStats(&after)
			if !errors.Is(err, tt.err) || len(left) != tt.left {
				t.Errorf("%v, and %d objects are left out; want %v and %d", err, len(left), tt.err, tt.left)
			}
			if got := after.TotalAlloc - before.TotalAlloc; got > 16<<20 {
				t.Errorf("%d MiB were allocated", got>>20)
			}
			if _, err := st.blob(hashObject("blob", small)); (err == nil) != (tt.err == nil) {
				t.Errorf("the small file beside it: %v", err)
			}
		})
	}
}

func FuzzUnpack(f *testing.F) {
	base := bytes.Repeat([]byte("x"), 100)
	f.Add(packed_(2, blobEntry(base), func(p *packWriter) { p.addDelta(hashObject("blob", base), copies(base, 3)) }))
	f.Add(packed_(2, blobEntry(base), func(p *packWriter) { p.header(packOffsetDelta, 7); p.offset(9); p.deflate(copies(base, 1)) }))
	f.Fuzz(func(t *testing.T, pack []byte) {
		st, _, err := unpacked(t, pack)
		if err == nil && st.packs() > 1 {
			t.Error("one pack became several")
		}
	})
}

// TestLargeFiles: a file that is too large is that file's problem, whether or not the
// server can leave it out.
func TestLargeFiles(t *testing.T) {
	for _, filter := range []string{"true", "false"} {
		t.Run("the server filters: "+filter, func(t *testing.T) {
			repo := newGitRepo(t)
			ok[string](t)(repo.Git("config", "uploadpack.allowFilter", filter))
			c := &counted{}
			server := serveHTTP(t, repo, gitserver.HTTPOptions{Wrap: func(next http.Handler) http.Handler { c.next = next; return c }})
			opts := testOptions(t, server.URL)
			large := "# " + strings.ReplaceAll(prose(7, 3<<20), "\n", "\n# ") + "\n"
			ok[string](t)(repo.Commit(map[string]string{"web.yaml": claimYAML("web", "a"), "notes/large.yaml": large}, "begin"))
			s := newSource(t, opts)
			check := func(what string, images map[string]string, problem string) {
				t.Helper()
				d := mustSync(t, s)
				if got := claims(d); fmt.Sprint(got) != fmt.Sprint(images) {
					t.Errorf("%s: %v is in force, want %v", what, got, images)
				}
				if got := messages(d); problem == "" && got != "" || !strings.Contains(got, problem) {
					t.Errorf("%s: problems %q, want %q", what, got, problem)
				}
			}
			const tooLarge = "notes/large.yaml: is larger than 1 MiB"
			check("at first", map[string]string{"web": "a"}, tooLarge)
			if n := c.take(); n > 100<<10 == (filter == "true") {
				t.Errorf("the server sent %d bytes", n)
			}

			s.close()
			s = begun(t, opts, records(s.Desired()))
			c.take()
			check("after a restart", map[string]string{"web": "a"}, tooLarge)
			if n := c.take(); n > 10<<10 {
				t.Errorf("a restart fetched %d bytes", n)
			}

			other := strings.ReplaceAll(large, "line", "word")
			ok[string](t)(repo.Commit(map[string]string{"db.yaml": other, "web.yaml": claimYAML("web", "b")}, "another"))
			check("with another", map[string]string{"web": "b"}, "db.yaml: is larger than 1 MiB")

			ok[string](t)(repo.Commit(map[string]string{
				"notes/large.yaml": claimYAML("notes", "a") + large[:900<<10], "db.yaml": claimYAML("db", "a") + other[:900<<10],
			}, "split them"))
			check("once they are split", map[string]string{"web": "b", "notes": "a", "db": "a"}, "")
		})
	}
}

func TestAllManifestsTogetherAreBounded(t *testing.T) {
	repo := newGitRepo(t)
	ok[string](t)(repo.Commit(map[string]string{"web.yaml": claimYAML("web", "a")}, "begin"))
	s := newSource(t, testOptions(t, repo.URL()))
	s.reader.most = 10 << 10
	mustSync(t, s)
	many := map[string]string{"web.yaml": claimYAML("web", "b")}
	for i := range 30 {
		many[fmt.Sprintf("%d.yaml", i)] = claimYAML(fmt.Sprint("c", i), "a")
	}
	ok[string](t)(repo.Commit(many, "too much"))
	d := mustSync(t, s)
	if got := claims(d); len(got) != 1 || got["web"] != "a" {
		t.Errorf("%v is in force", got)
	}
	if d.Source.Reason != model.SourceRejected || !strings.Contains(d.Source.Message, "manifests of more than 268435456 bytes together") {
		t.Errorf("the source says %s: %s", d.Source.Reason, d.Source.Message)
	}
}
