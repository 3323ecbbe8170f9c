package gitserver_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/sideband"
	"github.com/go-git/go-git/v5/plumbing/transport"
	githttp "github.com/go-git/go-git/v5/plumbing/transport/http"
	"github.com/go-git/go-git/v5/storage/memory"

	"ingot/gitsource/gitserver"
	"ingot/model/must"
)

func newRepo(t *testing.T) *gitserver.Repo {
	t.Helper()
	return must.Get(gitserver.New(t.TempDir(), "fleet"))(t)
}

func checked(t *testing.T, r *gitserver.Repo) {
	t.Helper()
	if out, err := r.Git("fsck", "--strict", "--no-dangling"); err != nil || strings.Contains(out, "missing") {
		t.Errorf("fsck: %v\n%s", err, out)
	}
}

func fastImport(t *testing.T, r *gitserver.Repo, stream string) {
	t.Helper()
	cmd := exec.Command("git", "-C", r.Dir, "fast-import", "--quiet", "--date-format=raw")
	cmd.Stdin = strings.NewReader(stream)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("fast-import: %v\n%s", err, out)
	}
}

func modify(files map[string]string) string {
	var b strings.Builder
	for _, path := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintf(&b, "M 100644 inline %s\ndata %d\n%s\n", path, len(files[path]), files[path])
	}
	return b.String()
}

func TestCommitsAreThoseOfGit(t *testing.T) {
	t.Parallel()
	ours, gits := newRepo(t), newRepo(t)
	when := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Unix()
	random := rand.New(rand.NewPCG(1, 2))
	paths := []string{"a", "a.b", "a/b", "a/b/c", "a/b.c", "a-b", "d/e/f", "d/e/g", "d", "z/ä", "z/with space"}
	path := func() string { return paths[random.IntN(len(paths))] }
	var stream strings.Builder
	head := ""
	for i := range 150 {
		message := strings.Repeat("line\n", random.IntN(3)) + fmt.Sprint(i)
		files := map[string]string{path(): fmt.Sprint(i), path(): strings.Repeat("x\n", random.IntN(50))}
		all := must.Get(ours.ReadBranch("main"))(t)
		var err error
		var changes string
		was := head
		switch n := random.IntN(12); {
		case n < 5 || len(all) == 0:
			head, err = ours.Commit(files, message)
			changes = modify(files)
		case n < 8:
			p, q := path(), path()
			head, err = ours.Remove(message, p, q)
			changes = fmt.Sprintf("D %s\nD %s\n", p, q)
		case n == 8:
			from := slices.Sorted(maps.Keys(all))[0]
			head, err = ours.Move(message, from, "moved/"+from)
			changes = fmt.Sprintf("R \"%[1]s\" \"moved/%[1]s\"\n", from)
		case n == 9:
			head, err = ours.Replace(files, message)
			changes = "deleteall\n" + modify(files)
		case n == 10:
			head, err = ours.Link("link", "120000", "a/b", message)
			changes = "M 120000 inline link\ndata 3\na/b\n"
		default:
			head, err = ours.Merge(was, files, message)
			changes = fmt.Sprintf("merge :%d\n%s", i, modify(files))
		}
		if err != nil {
			t.Fatal(err)
		}
		when++
		fmt.Fprintf(&stream, "commit refs/heads/main\nmark :%d\nauthor %[2]s %[3]d +0000\ncommitter %[2]s %[3]d +0000\ndata %[4]d\n%[5]s\n%[6]s\n",
			i+1, ours.Author, when, len(message), message, changes)
	}
	fastImport(t, gits, stream.String())
	checked(t, ours)
	log := must.Get(ours.ReadLog("main"))(t)
	want := strings.Fields(must.Get(gits.Git("log", "--format=%H", "main"))(t))
	got := make([]string, 0, len(log))
	for _, c := range log {
		got = append(got, c.Hash)
	}
	if !slices.Equal(got, want) {
		t.Errorf("%d of %d commits differ from those of git", len(slices.DeleteFunc(got, func(h string) bool { return slices.Contains(want, h) })), len(want))
	}
	files := must.Get(ours.ReadBranch("main"))(t)
	must.Get(ours.Git("repack", "-adq"))(t)
	must.Get(ours.Git("pack-refs", "--all"))(t)
	again := must.Get(gitserver.New(filepath.Dir(ours.Dir), "fleet"))(t)
	if packed := must.Get(again.ReadBranch("main"))(t); !maps.Equal(packed, files) {
		t.Errorf("once packed, the files are %v, want %v", packed, files)
	}
}

func TestConcurrentWritersLoseNothing(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	must.Get(r.Commit(map[string]string{"a": "0"}, "begin"))(t)
	server := must.Get(r.ServeHTTP(gitserver.HTTPOptions{}))(t)
	t.Cleanup(server.Close)
	var writers sync.WaitGroup
	for i := range 3 {
		writers.Go(func() {
			for j := range 10 {
				if _, err := r.Commit(map[string]string{fmt.Sprintf("ours/%d-%d", i, j): "1"}, "ours"); err != nil {
					t.Error(err)
				}
			}
		})
	}
	clone := filepath.Join(t.TempDir(), "clone")
	git := func(args ...string) error {
		cmd := exec.Command("git", append([]string{"-c", "user.name=x", "-c", "user.email=x@example.com"}, args...)...)
		if args[0] != "clone" {
			cmd.Dir = clone
		}
		out, err := cmd.CombinedOutput()
		if err != nil {
			err = fmt.Errorf("%w: %s", err, out)
		}
		return err
	}
	must.Do(t, git("clone", "--quiet", server.URL, clone))
	for i := range 3 {
		name := fmt.Sprint("git-", i)
		must.Do(t, errors.Join(os.WriteFile(filepath.Join(clone, name), nil, 0o600), git("add", name), git("commit", "--quiet", "-m", name)))
		for tries := 0; git("push", "--quiet") != nil; tries++ {
			if err := git("pull", "--quiet", "--rebase"); err != nil || tries > 100 {
				t.Fatal(err)
			}
		}
	}
	writers.Wait()
	if files := must.Get(r.ReadBranch("main"))(t); len(files) != 34 {
		t.Errorf("the branch has %d files, want 34: %v", len(files), slices.Sorted(maps.Keys(files)))
	}
	checked(t, r)
}

func history(t *testing.T, r *gitserver.Repo, random *rand.Rand) []string {
	t.Helper()
	var commits []string
	r.Clock = func() time.Time { return time.Unix(1_800_000_000+int64(len(commits))*100+random.Int64N(500), 0) }
	for i := range 30 {
		files := map[string]string{fmt.Sprintf("d%d/f%d", random.IntN(3), random.IntN(5)): strings.Repeat(fmt.Sprint(i), 1+random.IntN(40))}
		var hash string
		var err error
		if i > 3 && random.IntN(4) == 0 {
			hash, err = r.Merge(commits[random.IntN(i-1)], files, "merge")
		} else {
			hash, err = r.Commit(files, "commit")
		}
		if err != nil {
			t.Fatal(err)
		}
		commits = append(commits, hash)
		if random.IntN(6) == 0 {
			must.Do(t, r.SetBranch(fmt.Sprint("side-", i), hash))
		}
	}
	return commits
}

// fetched is the response to a request.
type fetched struct {
	shallow, unshallow []plumbing.Hash
	objects            map[plumbing.Hash]plumbing.EncodedObject
}

func fetch(t *testing.T, url string, change func(*packp.UploadPackRequest)) fetched {
	t.Helper()
	endpoint := must.Get(transport.NewEndpoint(url))(t)
	session := must.Get(githttp.DefaultClient.NewUploadPackSession(endpoint, nil))(t)
	adv := must.Get(session.AdvertisedReferencesContext(t.Context()))(t)
	req := packp.NewUploadPackRequestFromCapabilities(adv.Capabilities)
	req.Capabilities.Delete(capability.ThinPack)
	for _, c := range []capability.Capability{capability.Shallow, capability.NoProgress} {
		must.Do(t, req.Capabilities.Set(c))
	}
	change(req)
	res := must.Get(session.UploadPack(t.Context(), req))(t)
	defer res.Close()
	plumbing.HashesSort(res.Shallows)
	plumbing.HashesSort(res.Unshallows)
	store := memory.NewStorage()
	err := packfile.UpdateObjectStorage(store, sideband.NewDemuxer(sideband.Sideband64k, res))
	if err != nil && !errors.Is(err, packfile.ErrEmptyPackfile) {
		t.Fatal(err)
	}
	return fetched{res.Shallows, res.Unshallows, store.Objects}
}

func TestFetchesAreAnsweredAsByGit(t *testing.T) {
	t.Parallel()
	for seed := range uint64(3) {
		t.Run(fmt.Sprint("history ", seed), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(seed, 7))
			r := newRepo(t)
			commits := history(t, r, random)
			must.Get(r.Git("-c", "user.name=x", "-c", "user.email=x@example.com", "tag", "-a", "-m", "tag", "v1", commits[9]))(t)
			must.Get(r.Git("config", "uploadpack.allowFilter", "true"))(t)
			if seed%2 == 1 {
				must.Get(r.Git("repack", "-adq"))(t)
				must.Get(r.Git("pack-refs", "--all"))(t)
			}
			ours := must.Get(r.ServeHTTP(gitserver.HTTPOptions{}))(t)
			t.Cleanup(ours.Close)
			gits := must.Get(r.ServeHTTP(gitserver.HTTPOptions{RealGit: true}))(t)
			t.Cleanup(gits.Close)
			sameAdvertisement(t, ours.URL, gits.URL)
			tag := plumbing.NewHash(strings.TrimSpace(must.Get(r.Git("rev-parse", "v1"))(t)))
			pick := func() plumbing.Hash { return plumbing.NewHash(commits[random.IntN(len(commits))]) }
			for range 10 {
				wants := []plumbing.Hash{plumbing.NewHash(r.Head("main")), pick(), tag}[:1+random.IntN(3)]
				c := randomClient(t, gits.URL, random, pick())
				compare(t, ours.URL, gits.URL, c, randomRequest(c, wants, random))
			}
		})
	}
}

func sameAdvertisement(t *testing.T, ours, gits string) {
	t.Helper()
	var lists []*packp.AdvRefs
	for _, url := range []string{ours, gits} {
		endpoint := must.Get(transport.NewEndpoint(url))(t)
		session := must.Get(githttp.DefaultClient.NewUploadPackSession(endpoint, nil))(t)
		lists = append(lists, must.Get(session.AdvertisedReferencesContext(t.Context()))(t))
	}
	a, b := lists[0], lists[1]
	if !maps.Equal(a.References, b.References) || !maps.Equal(a.Peeled, b.Peeled) || *a.Head != *b.Head ||
		!slices.Equal(a.Capabilities.Get(capability.SymRef), b.Capabilities.Get(capability.SymRef)) {
		t.Errorf("refs are %v, want %v", a, b)
	}
	for _, c := range a.Capabilities.All() {
		if !b.Capabilities.Supports(c) {
			t.Errorf("git does not advertise %s", c)
		}
	}
}

// client is what a client has before a request: nothing, or part of the history.
type client struct {
	haves, shallows []plumbing.Hash
	objects         map[plumbing.Hash]plumbing.EncodedObject
}

func randomClient(t *testing.T, url string, random *rand.Rand, have plumbing.Hash) (c client) {
	t.Helper()
	if random.IntN(2) == 0 {
		return c
	}
	depth := 1 + random.IntN(4)
	got := fetch(t, url, func(req *packp.UploadPackRequest) {
		req.Wants, req.Depth = []plumbing.Hash{have}, packp.DepthCommits(depth)
	})
	return client{[]plumbing.Hash{have, plumbing.NewHash(strings.Repeat("ab", 20))}, got.shallow, got.objects}
}

func randomRequest(c client, wants []plumbing.Hash, random *rand.Rand) func(*packp.UploadPackRequest) {
	depth, since, filter := 0, time.Time{}, packp.Filter("")
	switch random.IntN(4) {
	case 0:
		since = time.Unix(1_800_000_000+random.Int64N(2500), 0)
	case 1, 2:
		depth = 1 + random.IntN(12)
	}
	if len(c.haves) == 0 {
		filter = []packp.Filter{"", packp.FilterBlobNone(), packp.FilterTreeDepth(0), packp.FilterBlobLimit(20, packp.BlobLimitPrefixNone)}[random.IntN(4)]
	}
	return func(req *packp.UploadPackRequest) {
		req.Wants, req.Haves, req.Shallows, req.Filter = slices.Clone(wants), slices.Clone(c.haves), slices.Clone(c.shallows), filter
		if filter != "" {
			_ = req.Capabilities.Set(capability.Filter)
		}
		req.Depth = packp.DepthCommits(depth)
		if !since.IsZero() {
			_ = req.Capabilities.Set(capability.DeepenSince)
			req.Depth = packp.DepthSince(since)
		}
	}
}

// compare fails the test if two servers give a client different histories or objects. A
// client that has something may get more of it from git than it lacks.
func compare(t *testing.T, ours, gits string, c client, request func(*packp.UploadPackRequest)) {
	t.Helper()
	req := packp.NewUploadPackRequest()
	request(req)
	got, want := fetch(t, ours, request), fetch(t, gits, request)
	what := fmt.Sprintf("wants %v, haves %v, shallow %v, depth %v, filter %q", req.Wants, req.Haves, req.Shallows, req.Depth, req.Filter)
	if !slices.Equal(got.shallow, want.shallow) || !slices.Equal(got.unshallow, want.unshallow) {
		t.Errorf("%s: boundary is %v, %v, want %v, %v", what, got.shallow, got.unshallow, want.shallow, want.unshallow)
	}
	for h := range got.objects {
		if want.objects[h] == nil {
			t.Errorf("%s: object %s is not in the pack of git", what, h)
		}
	}
	for h, obj := range want.objects {
		if got.objects[h] == nil && c.objects[h] == nil {
			t.Errorf("%s: %s %s is missing", what, obj.Type(), h)
		}
	}
}

func TestUsualRequestsOfGoGitStartNoProcess(t *testing.T) {
	r := newRepo(t)
	noise := make([]byte, 3<<20)
	for i := range noise {
		noise[i] = byte(rand.Uint32()) //nolint:gosec // that is the purpose
	}
	first := must.Get(r.Commit(map[string]string{"a": string(noise)}, "begin"))(t)
	bin := t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "git"), []byte("#!/bin/sh\nexit 1\n"), 0o755); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	t.Setenv("PATH", bin)
	var updates []string
	r.OnUpdate = func(state, ref, hash string) { updates = append(updates, state+" "+ref+" "+hash) }
	server := must.Get(r.ServeHTTP(gitserver.HTTPOptions{}))(t)
	t.Cleanup(server.Close)
	got := fetch(t, server.URL, func(req *packp.UploadPackRequest) { req.Wants = []plumbing.Hash{plumbing.NewHash(first)} })
	if len(got.objects) != 3 {
		t.Errorf("fetched %v, want a commit, a tree and a file", got.objects)
	}
	endpoint := must.Get(transport.NewEndpoint(server.URL))(t)
	session := must.Get(githttp.DefaultClient.NewReceivePackSession(endpoint, nil))(t)
	adv := must.Get(session.AdvertisedReferencesContext(t.Context()))(t)
	req := packp.NewReferenceUpdateRequestFromCapabilities(adv.Capabilities)
	req.Commands = []*packp.Command{{Name: "refs/heads/side", New: plumbing.NewHash(first)}}
	if status := must.Get(session.ReceivePack(t.Context(), req))(t); status.Error() != nil {
		t.Error(status.Error())
	}
	if r.Head("side") != first {
		t.Errorf("the branch is at %q, want %q", r.Head("side"), first)
	}
	want := []string{"prepared refs/heads/side " + first, "committed refs/heads/side " + first}
	if !slices.Equal(updates, want) {
		t.Errorf("updates are %q, want %q", updates, want)
	}
}
