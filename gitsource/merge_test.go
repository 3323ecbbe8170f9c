package gitsource

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"ingot/model"
	"ingot/model/must"
)

func claimText(name, image string) string {
	return "apiVersion: metal.ironcore.dev/v1alpha1\nkind: ServerClaim\nmetadata:\n  name: " + name + "\nspec:\n  power: \"On\"\n  image: " + image + "\n"
}

// proposal is a repository with main and a branch beside it.
type proposal struct {
	t    *testing.T
	repo *servedRepo
}

func newProposal(t *testing.T, files map[string]string) *proposal {
	t.Helper()
	p := &proposal{t, newRepo(t)}
	p.commit("main", files)
	p.branch("topic")
	return p
}

func (p *proposal) commit(branch string, files map[string]string) string {
	p.t.Helper()
	hash := must.Get(p.repo.CommitTo(branch, files, "change"))(p.t)
	return hash
}

func (p *proposal) branch(name string) {
	p.t.Helper()
	must.Do(p.t, p.repo.SetBranch(name, p.repo.Head("main")))
}

func runGit(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=a", "-c", "user.email=a@b"}, args...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
}

func (p *proposal) cloned(args ...string) (*Clone, string) {
	p.t.Helper()
	dir := filepath.Join(p.t.TempDir(), "clone")
	runGit(p.t, ".", append(append([]string{"clone", "--quiet"}, args...), p.repo.Repo.URL(), dir)...)
	return p.open(dir), dir
}

func (p *proposal) open(dir string) *Clone {
	p.t.Helper()
	c := must.Get(OpenClone(dir))(p.t)
	p.t.Cleanup(c.Close)
	return c
}

func (p *proposal) merge(c *Clone, applied string) (*Merged, error) {
	p.t.Helper()
	o := MergeOptions{Source: model.Applied{Branch: "main", Path: "."}, Now: time.Unix(1e9, 0)}
	o.Beginning.Applied = model.Applied{Branch: "main", Path: ".", Commit: applied}
	for name, at := range map[string]*string{"main": &o.Base, "topic": &o.Head} {
		var err error
		if *at, err = c.Resolve(name); err != nil {
			p.t.Fatal(err)
		}
	}
	return c.Merge(o)
}

func in(d *model.Desired) string {
	var all []string
	for name, c := range d.Claims {
		all = append(all, string(name)+"="+c.Spec.Image)
	}
	for id := range d.Removed {
		all = append(all, "-"+id.Name)
	}
	for _, r := range d.Renamed {
		for old, now := range r.Names {
			all = append(all, string(old)+">"+string(now))
		}
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

func TestMergeIsWhatIsInForceAfterwards(t *testing.T) {
	t.Parallel()
	base := map[string]string{"claims/a.yaml": claimText("a", "os:1"), "claims/b.yaml": claimText("b", "os:1")}
	for name, tc := range map[string]struct {
		topic, main map[string]string // committed to each; "" removes
		want        string
		problems    int
	}{
		"what the branch adds is there":    {topic: map[string]string{"c.yaml": claimText("c", "os:1")}, want: "default/a=os:1 default/b=os:1 default/c=os:1"},
		"what it removes is gone":          {topic: map[string]string{"claims/a.yaml": ""}, want: "-a default/b=os:1"},
		"a folder that is renamed is none": {topic: map[string]string{"claims/a.yaml": "", "x/a.yaml": base["claims/a.yaml"]}, want: "default/a=os:1 default/b=os:1"},
		"a claim that is renamed goes on":  {topic: map[string]string{"claims/a.yaml": claimText("z", "os:1")}, want: "default/a>default/z default/b=os:1 default/z=os:1"},
		"a file that breaks keeps its last good version": {
			topic: map[string]string{"claims/a.yaml": strings.Replace(claimText("a", "os:2"), "power", "powr", 1)}, want: "default/a=os:1 default/b=os:1", problems: 1,
		},
		"what came to main meanwhile stays": {
			topic: map[string]string{"claims/a.yaml": ""}, main: map[string]string{"claims/b.yaml": claimText("b", "os:2"), "d.yaml": claimText("d", "os:1")},
			want: "-a default/b=os:2 default/d=os:1",
		},
		"both may make the same change": {
			topic: map[string]string{"claims/a.yaml": claimText("a", "os:2")}, main: map[string]string{"claims/a.yaml": claimText("a", "os:2")},
			want: "default/a=os:2 default/b=os:1",
		},
		"a Secret in plain text is refused, as the daemon does": {
			topic:    map[string]string{"s.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {ignition: \"{}\"}\n"},
			want:     "default/a=os:1 default/b=os:1",
			problems: 1,
		},
		"a Secret that is encrypted is there": {
			topic: map[string]string{"s.yaml": sealedSecret(t)},
			want:  "default/a=os:1 default/b=os:1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProposal(t, base)
			applied := p.repo.Head("main")
			p.change("topic", tc.topic)
			if tc.main != nil {
				p.change("main", tc.main)
			}
			c, _ := p.cloned()
			m := must.Get(p.merge(c, applied))(t)
			if got := in(m.Head); got != tc.want || len(m.Head.Problems) != tc.problems {
				t.Errorf("got %s and %v, want %s", got, m.Head.Problems, tc.want)
			}
			if want := tc.main != nil; m.Behind != want {
				t.Errorf("behind: %t, want %t", m.Behind, want)
			}
			if _, there := m.Head.Secrets["default/s"]; there != (tc.topic["s.yaml"] != "" && tc.problems == 0) {
				t.Errorf("secrets are %v", slices.Collect(maps.Keys(m.Head.Secrets)))
			}
		})
	}
}

func (p *proposal) change(branch string, files map[string]string) {
	p.t.Helper()
	dir := filepath.Join(p.t.TempDir(), "work")
	runGit(p.t, ".", "clone", "--quiet", "--branch", branch, p.repo.Repo.URL(), dir)
	for path, content := range files {
		file := filepath.Join(dir, path)
		if content == "" {
			must.Do(p.t, os.Remove(file))
			continue
		}
		must.Do(p.t, os.MkdirAll(filepath.Dir(file), 0o755))
		must.Do(p.t, os.WriteFile(file, []byte(content), 0o600))
	}
	runGit(p.t, dir, "add", "--all")
	runGit(p.t, dir, "commit", "--quiet", "--message", "change")
	runGit(p.t, dir, "push", "--quiet", "origin", "HEAD:"+branch)
}

func TestWhatCannotBeMergedIsSaidSo(t *testing.T) {
	t.Parallel()
	base := map[string]string{"a.yaml": claimText("a", "os:1")}
	p := newProposal(t, base)
	applied := p.repo.Head("main")
	p.change("topic", map[string]string{"a.yaml": claimText("a", "os:2")})
	p.change("main", map[string]string{"a.yaml": claimText("a", "os:3")})
	c, _ := p.cloned()
	if _, err := p.merge(c, applied); err == nil || !strings.Contains(err.Error(), "a.yaml changed on both sides") {
		t.Errorf("two changes of one file: %v", err)
	}
	var missing *MissingError
	if _, err := p.merge(c, strings.Repeat("1", 40)); !errors.As(err, &missing) || !missing.Applied {
		t.Errorf("a revision that the clone lacks: %v", err)
	}
	p.change("main", map[string]string{"b.yaml": claimText("b", "os:1")})
	if _, err := p.merge(c, p.repo.Head("main")); !errors.As(err, &missing) {
		t.Errorf("a clone that is not up to date: %v", err)
	}
	stale, dir := p.cloned()
	runGit(t, dir, "update-ref", "refs/remotes/origin/main", applied)
	runGit(t, dir, "update-ref", "refs/heads/main", applied)
	missing = nil
	if _, err := p.merge(stale, p.repo.Head("main")); !errors.As(err, &missing) || !strings.Contains(err.Error(), "has moved on") {
		t.Errorf("a clone whose main is behind what Ingot acted upon: %v", err)
	}
	p.change("topic", map[string]string{"b.yaml": claimText("b", "os:1")})
	shallow, _ := p.cloned("--depth", "1", "--no-single-branch")
	if _, err := p.merge(shallow, p.repo.Head("main")); !errors.As(err, &missing) || !shallow.Shallow() {
		t.Errorf("a clone without history: %v", err)
	}
}

func TestAMergeOfWhatWasMergedCrosswiseIsSaidToBeUnknown(t *testing.T) {
	t.Parallel()
	p := newProposal(t, map[string]string{"a.yaml": claimText("a", "os:1")})
	applied := p.repo.Head("main")
	p.change("topic", map[string]string{"t.yaml": claimText("t", "os:1")})
	p.change("main", map[string]string{"m.yaml": claimText("m", "os:1")})
	_, dir := p.cloned()
	theirs, ours := p.repo.Head("topic"), p.repo.Head("main")
	runGit(t, dir, "checkout", "--quiet", "-b", "topic", theirs)
	runGit(t, dir, "merge", "--quiet", "--no-edit", ours)
	runGit(t, dir, "checkout", "--quiet", "main")
	runGit(t, dir, "merge", "--quiet", "--no-edit", "--no-ff", theirs)
	if _, err := p.merge(p.open(dir), applied); err == nil || !strings.Contains(err.Error(), "crosswise") {
		t.Errorf("got %v", err)
	}
}

func TestAHeadThatIsMergedAlreadyDoesNothing(t *testing.T) {
	t.Parallel()
	p := newProposal(t, map[string]string{"a.yaml": claimText("a", "os:1")})
	p.change("main", map[string]string{"b.yaml": claimText("b", "os:1")})
	c, _ := p.cloned()
	m, err := p.merge(c, p.repo.Head("main"))
	if err != nil || !m.Contained || m.Head != m.Base {
		t.Errorf("got %+v, %v", m, err)
	}
}

func TestACloneIsOpenedWhereverItIs(t *testing.T) {
	t.Parallel()
	p := newProposal(t, map[string]string{"a/a.yaml": claimText("a", "os:1")})
	p.change("topic", map[string]string{"b.yaml": claimText("b", "os:1")})
	_, dir := p.cloned()
	tree := filepath.Join(t.TempDir(), "tree")
	runGit(t, dir, "worktree", "add", "--quiet", tree, "origin/topic")
	before := filesBelow(t, dir)
	for _, at := range []string{dir, filepath.Join(dir, "a"), tree, p.repo.Dir} {
		c := p.open(at)
		head, err := c.Resolve("topic")
		if err != nil || head != p.repo.Head("topic") {
			t.Errorf("%s: topic is %s, %v", at, head, err)
		}
		if head, err = c.Resolve("HEAD"); at == tree && head != p.repo.Head("topic") || err != nil {
			t.Errorf("%s: HEAD is %s, %v", at, head, err)
		}
		if _, err := c.Resolve("config"); !errors.Is(err, ErrUnknownRevision) {
			t.Errorf("a file of the repository counts as a revision: %v", err)
		}
		if _, err := p.merge(c, p.repo.Head("main")); err != nil {
			t.Errorf("%s: %v", at, err)
		}
	}
	if after := filesBelow(t, dir); !slices.Equal(before, after) {
		t.Errorf("the clone was written to:\n%v\n%v", before, after)
	}
	if _, err := OpenClone(t.TempDir()); err == nil || !strings.Contains(err.Error(), "in no Git repository") {
		t.Errorf("a folder that is none: %v", err)
	}
}

func filesBelow(t *testing.T, dir string) (all []string) {
	t.Helper()
	must.Do(t, filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		all = append(all, path)
		return err
	}))
	return all
}

func TestTheNewerOfTwoBranchesCounts(t *testing.T) {
	t.Parallel()
	p := newProposal(t, map[string]string{"a.yaml": claimText("a", "os:1")})
	_, dir := p.cloned()
	p.change("main", map[string]string{"b.yaml": claimText("b", "os:1")})
	runGit(t, dir, "fetch", "--quiet", "origin")
	if at, err := p.open(dir).Resolve("main"); err != nil || at != p.repo.Head("main") {
		t.Errorf("main is %s, %v, want what was fetched", at, err)
	}
	runGit(t, dir, "merge", "--quiet", "origin/main")
	runGit(t, dir, "commit", "--quiet", "--allow-empty", "--message", "mine")
	if at, err := p.open(dir).Resolve("main"); err != nil || at == p.repo.Head("main") {
		t.Errorf("main is %s, %v, want the clone's own", at, err)
	}
	if at, err := p.open(dir).ResolveBase("main"); err != nil || at != p.repo.Head("main") {
		t.Errorf("the base main is %s, %v, want what origin has", at, err)
	}
	runGit(t, dir, "branch", "--quiet", "mine")
	if at, err := p.open(dir).ResolveBase("mine"); err != nil || at == p.repo.Head("main") {
		t.Errorf("the base mine is %s, %v, want the clone's own, as origin has none", at, err)
	}
	if got := p.open(dir).DefaultBranch(); got != "main" {
		t.Errorf("the default branch is %q", got)
	}
}

func TestACommitIsNamedAsGitNamesIt(t *testing.T) {
	t.Parallel()
	p := newProposal(t, map[string]string{"a.yaml": claimText("a", "os:1")})
	first := p.repo.Head("main")
	p.change("main", map[string]string{"b.yaml": claimText("b", "os:1")})
	second := p.repo.Head("main")
	p.change("main", map[string]string{"c.yaml": claimText("c", "os:1")})
	c, _ := p.cloned()
	for name, want := range map[string]string{
		"HEAD~1": second, "HEAD^": second, "main~2": first, "HEAD^^": first, "HEAD~^1": first, "HEAD~0": p.repo.Head("main"),
		second[:7]: second, second[:12]: second, first[:7]: first, second[:8] + "~": first,
	} {
		if at, err := c.Resolve(name); err != nil || at != want {
			t.Errorf("%s is %s, %v, want %s", name, at, err, want)
		}
	}
	for _, name := range []string{"HEAD~9", "HEAD^2", "nobody~1", second[:3], "ffffffff", "~1", ""} {
		if at, err := c.Resolve(name); !errors.Is(err, ErrUnknownRevision) {
			t.Errorf("%s is %q, %v, want that it is unknown", name, at, err)
		}
	}
}

func TestAFileIsTakenFromTheSideThatChangedIt(t *testing.T) {
	t.Parallel()
	files := func(s string) (all []manifest) {
		for f := range strings.FieldsSeq(s) {
			path, blob, _ := strings.Cut(f, "=")
			all = append(all, manifest{path: path, blob: plumbing.NewHash(blob), decoded: new(decoded)})
		}
		return all
	}
	for name, tc := range map[string]struct{ old, ours, theirs, want, both string }{
		"changed by us":       {"a=01", "a=02", "a=01", "a=02", ""},
		"changed by them":     {"a=01", "a=01", "a=02", "a=02", ""},
		"changed alike":       {"a=01", "a=02", "a=02", "a=02", ""},
		"changed by both":     {"a=01", "a=02", "a=03", "a=02", "a"},
		"added by them":       {"", "", "a=01", "a=01", ""},
		"removed by them":     {"a=01", "a=01", "", "", ""},
		"removed by us":       {"a=01", "", "a=01", "", ""},
		"removed and changed": {"a=01", "", "a=02", "", "a"},
	} {
		t.Run(name, func(t *testing.T) {
			merged, both := mergeManifests(files(tc.old), files(tc.ours), files(tc.theirs))
			want := files(tc.want)
			same := slices.EqualFunc(merged, want, func(a, b manifest) bool { return a.path == b.path && a.blob == b.blob })
			if len(both) == 0 && !same || strings.Join(both, " ") != tc.both {
				t.Errorf("got %v and %v, want %v and %q", merged, both, want, tc.both)
			}
		})
	}
}

// sealedSecret is Secret s as SOPS encrypted it, but for its name, which it covers and nobody
// without the key can check.
func sealedSecret(t *testing.T) string {
	t.Helper()
	data := must.Get(os.ReadFile("sops/testdata/two-recipients.yaml"))(t)
	return strings.NewReplacer("metal.ironcore.dev/v1alpha1", "v1", "BMCSecret", "Secret", "rack7", "s").Replace(string(data))
}

func TestASealedSecretThatChangesIsSeen(t *testing.T) {
	t.Parallel()
	p := newProposal(t, map[string]string{"s.yaml": sealedSecret(t)})
	applied := p.repo.Head("main")
	p.change("topic", map[string]string{"s.yaml": strings.Replace(sealedSecret(t), "data:Gt4fw0I=", "data:Gt4fw1I=", 1)})
	c, _ := p.cloned()
	m := must.Get(p.merge(c, applied))(t)
	before, after := m.Base.Secrets["default/s"], m.Head.Secrets["default/s"]
	if before == nil || after == nil || before.Values["username"] == after.Values["username"] || before.Values["password"] != after.Values["password"] {
		t.Errorf("before %+v, after %+v: want another username alone", before, after)
	}
}
