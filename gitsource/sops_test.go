package gitsource

import (
	"encoding/base64"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"ingot/gitsource/gitserver"
	"ingot/model"
	"ingot/model/must"
)

// The account in sops/testdata/plain/bmcsecret.yaml.
const sealedPassword = `pass: #word' "äöü" 12345`

func sealedFile(t *testing.T, name string) string {
	t.Helper()
	text := must.Get(os.ReadFile(filepath.Join("sops", "testdata", name)))(t)
	return string(text)
}

// sealedWorld is a repository with encrypted files, and a key file that changes.
type sealedWorld struct {
	*testing.T
	repo *servedRepo
	opts Options
	s    *Source
	d    *model.Desired
}

func newSealedWorld(t *testing.T, key string) *sealedWorld {
	w := &sealedWorld{T: t, repo: newRepo(t)}
	w.opts = testOptions(t, w.repo.URL())
	w.opts.Decode, w.opts.Validate, w.opts.CrossCheck = nil, nil, nil
	w.opts.AgeKeyFile = filepath.Join(t.TempDir(), "age.txt")
	w.key(key)
	w.s = newSource(t, w.opts)
	return w
}

func (w *sealedWorld) key(name string) {
	w.Helper()
	if err := os.WriteFile(w.opts.AgeKeyFile, []byte(sealedFile(w.T, name)), 0o600); err != nil {
		w.Fatal(err)
	}
}

func (w *sealedWorld) commit(files map[string]string) {
	w.Helper()
	if _, err := w.repo.Commit(files, "change"); err != nil {
		w.Fatal(err)
	}
}

func (w *sealedWorld) move(files map[string]string, from string) {
	w.Helper()
	head := w.repo.Head(gitserver.Branch)
	w.commit(files)
	if from == "" {
		return
	}
	ok[string](w.T)(w.repo.Remove("away", from))
	tree, err := w.repo.Git("rev-parse", gitserver.Branch+"^{tree}")
	if err != nil {
		w.Fatal(err)
	}
	commit, err := w.repo.Git("-c", "user.name=x", "-c", "user.email=x@example.com", "commit-tree", "-p", head, "-m", "move", strings.TrimSpace(tree))
	if err == nil {
		err = w.repo.SetBranch(gitserver.Branch, strings.TrimSpace(commit))
	}
	if err != nil {
		w.Fatal(err)
	}
}

// look looks at the branch, and returns the password of rack7, "" if there is none.
func (w *sealedWorld) look() string {
	w.Helper()
	w.d = mustSync(w.T, w.s)
	if s := w.d.BMCSecrets["rack7"]; s != nil {
		return s.Values["password"].Reveal()
	}
	return ""
}

func (w *sealedWorld) restart() {
	w.s.close()
	w.s = begun(w.T, w.opts, records(w.d))
}

// A key that comes later opens what is in Git by then, without a commit.
func TestAnotherKeyNeedsNoCommit(t *testing.T) {
	t.Parallel()
	w := newSealedWorld(t, "other.txt")
	w.commit(map[string]string{"a.yaml": sealedFile(t, "bmcsecret.yaml"), "e.yaml": realHead + "Endpoint\nmetadata: {name: e1}\n" +
		"spec: {macAddress: \"aa:bb:cc:00:00:01\", ip: 10.0.0.1}\n"})
	id := model.Identity{Kind: model.KindBMCSecret, Name: "rack7"}
	if got := w.look(); got != "" || !w.d.IsQuarantined(id) || len(w.d.Endpoints) != 1 {
		t.Fatalf("got password %q, quarantined %v, %s", got, w.d.Quarantined, messages(w.d))
	}
	if !strings.Contains(messages(w.d), "a.yaml: the file is encrypted for age1025pq") {
		t.Errorf("got problems %s", messages(w.d))
	}
	decoded := testutil.ToFloat64(w.s.metrics.decoded)
	w.key("keys.txt")
	if got := w.look(); got != sealedPassword || len(w.d.Quarantined)+len(w.d.Problems)+len(w.d.Absent) > 0 {
		t.Fatalf("got password %q, quarantined %v, %s", got, w.d.Quarantined, messages(w.d))
	}
	if n := testutil.ToFloat64(w.s.metrics.decoded) - decoded; n != 1 {
		t.Errorf("%v files were decoded again, want the one that was wrong", n)
	}
	w.key("other.txt") // what is open stays open
	if got := w.look(); got != sealedPassword {
		t.Errorf("got password %q", got)
	}
}

// What cannot be opened leaves the last good version in force, over a restart too, and what
// is kept for that is encrypted as it came.
func TestTheLastGoodSecretStays(t *testing.T) {
	t.Parallel()
	w := newSealedWorld(t, "keys.txt")
	good := sealedFile(t, "bmcsecret.yaml")
	w.commit(map[string]string{"a.yaml": good})
	if got := w.look(); got != sealedPassword {
		t.Fatalf("got password %q, %s", got, messages(w.d))
	}
	for name, bad := range map[string]string{
		"for another key":     sealedFile(t, "stranger.yaml"),
		"with a changed name": strings.Replace(good, "name: rack7", "name: rack8", 1),
		"in plain text":       sealedFile(t, "plain/bmcsecret.yaml"),
		"half of it":          sealedFile(t, "half.yaml"),
		"broken":              good[:len(good)/2],
	} {
		w.commit(map[string]string{"a.yaml": bad})
		if got := w.look(); got != sealedPassword || len(w.d.Problems) == 0 {
			t.Errorf("%s: got password %q, problems %s", name, got, messages(w.d))
		}
		w.restart()
		if got := w.look(); got != sealedPassword || len(w.d.Problems) == 0 {
			t.Errorf("%s, after a restart: got password %q, problems %s", name, got, messages(w.d))
		}
		if strings.Contains(messages(w.d), "12345") {
			t.Errorf("%s: the password is shown: %s", name, messages(w.d))
		}
	}
	w.commit(map[string]string{"a.yaml": sealedFile(t, "stranger.yaml")})
	w.look()
	nowhere(t, w.opts.Dir, "pass: #word")
	state := must.Get(os.ReadFile(w.s.stateFile()))(t)
	if !strings.Contains(string(state), base64.StdEncoding.EncodeToString([]byte(good))) {
		t.Error("the state does not hold the encrypted file as it came")
	}
	w.key("other.txt")
	w.restart()
	if got := w.look(); got != sealedPassword { // of stranger.yaml, by its own key
		t.Errorf("got password %q, %s", got, messages(w.d))
	}
}

// nowhere fails the test if a text, or base64 of it, stands in a file below dir.
func nowhere(t *testing.T, dir, text string) {
	t.Helper()
	forms := []string{text}
	for shift := range 3 { // whatever comes before it
		padded := base64.RawStdEncoding.EncodeToString([]byte(strings.Repeat("x", shift) + text))
		forms = append(forms, padded[4:len(padded)-2])
	}
	must.Do(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		for _, form := range forms {
			if strings.Contains(string(content), form) {
				t.Errorf("%s holds %q", path, form)
			}
		}
		return err
	}))
}

// What SOPS seals of a file are its texts one after the other, not where each ends nor what it is
// called: whoever cannot decrypt a file can make one of it that defines another object.
func TestASecretMadeOfAnotherTenantsDoesNotCount(t *testing.T) {
	t.Parallel()
	ours := sealedFile(t, "bmcsecret.yaml")
	theirs := strings.Replace(ours, "name: rack7", "name: rack\n    labels: {x: \"7\"}", 1)
	bmcs := []model.Kind{model.KindBMC, model.KindBMCSecret}
	operator := model.Tenant{Path: "ops", Kinds: []model.Kind{"*"}, Namespaces: []string{"*"}}
	a, b := model.Tenant{Path: "a", Kinds: bmcs}, model.Tenant{Path: "b", Kinds: bmcs}
	type step struct {
		put    map[string]string
		take   string
		again  func(*sealedWorld)
		want   []string // "name of tenant"
		accuse string
	}
	restart := func(w *sealedWorld) { w.restart() }
	lost := func(w *sealedWorld) {
		if err := os.RemoveAll(w.opts.Dir); err != nil {
			w.Fatal(err)
		}
		w.restart()
	}
	for name, tc := range map[string]struct {
		tenants model.Tenants
		steps   []step
	}{
		"of whoever had it first": {model.Tenants{a, b}, []step{
			{put: map[string]string{"a/x.yaml": ours}, want: []string{"rack7 of a"}},
			{put: map[string]string{"b/y.yaml": theirs}, want: []string{"rack7 of a"}, accuse: "b/y.yaml: is encrypted with the key of a file of a"},
			{put: map[string]string{"README.md": "x"}, want: []string{"rack7 of a"}, accuse: "b/y.yaml: is"},
			{again: restart, want: []string{"rack7 of a"}, accuse: "b/y.yaml: is"},
			{take: "b/y.yaml", want: []string{"rack7 of a"}},
			{again: restart, want: []string{"rack7 of a"}},
		}},
		"of nobody where that is not known": {model.Tenants{a, b}, []step{
			{put: map[string]string{"a/x.yaml": ours, "b/y.yaml": theirs}, accuse: "a/x.yaml: is encrypted with the same key as a file of another tenant"},
			{take: "b/y.yaml", want: []string{"rack7 of a"}},
		}},
		"of the operator where that is not known": {model.Tenants{operator, b}, []step{
			{put: map[string]string{"ops/x.yaml": ours, "b/y.yaml": theirs}, want: []string{"rack7 of ops"}, accuse: "b/y.yaml: is"},
			{again: lost, want: []string{"rack7 of ops"}, accuse: "b/y.yaml: is"},
		}},
		"a tenant may have several": {model.Tenants{a, b}, []step{
			{put: map[string]string{"a/x.yaml": ours, "a/y.yaml": theirs}, want: []string{"rack of a", "rack7 of a"}},
		}},
		"a file may be handed over": {model.Tenants{a, b}, []step{
			{put: map[string]string{"a/x.yaml": ours}, want: []string{"rack7 of a"}},
			{put: map[string]string{"b/x.yaml": ours}, take: "a/x.yaml", want: []string{"rack7 of b"}},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newSealedWorld(t, "keys.txt")
			w.opts.Tenants = tc.tenants
			w.s.close()
			w.s = newSource(t, w.opts)
			for i, step := range tc.steps {
				if step.take != "" && step.put == nil {
					ok[string](t)(w.repo.Remove("take", step.take))
				}
				if step.put != nil {
					w.move(step.put, step.take)
				}
				if step.again != nil {
					step.again(w)
				}
				w.look()
				var got []string
				for n, s := range w.d.BMCSecrets {
					got = append(got, string(n)+" of "+s.Tenant)
				}
				slices.Sort(got)
				if diff := cmp.Diff(step.want, got); diff != "" {
					t.Errorf("step %d: secrets (-want +got):\n%s", i, diff)
				}
				if says := messages(w.d); !strings.Contains(says, step.accuse) || step.accuse == "" && strings.Contains(says, "key") {
					t.Errorf("step %d: got problems %q, want %q", i, says, step.accuse)
				}
			}
		})
	}
}
