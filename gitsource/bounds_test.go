package gitsource

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"

	"ingot/model"
)

// manifestsOf decodes files as a reader would.
func manifestsOf(files map[string]string) []manifest {
	r := reader{decode: decode, count: func() {}}
	var out []manifest
	for path, content := range files {
		out = append(out, manifest{path, hashObject("blob", []byte(content)), r.parse(path, []byte(content))})
	}
	return out
}

func TestWhatHidesAllIsNamedOnce(t *testing.T) {
	const n = 2000
	tests := map[string]func(i int) (file, content string){
		"all files move and break": func(i int) (string, string) {
			return fmt.Sprintf("x/%d.yaml", i), fmt.Sprintf("%s# %d\n", broken, i)
		},
		"all files break alike":       func(i int) (string, string) { return fmt.Sprintf("%d.yaml", i), broken },
		"all files move into another": func(i int) (string, string) { return fmt.Sprintf("x/%d.yaml", i), broken },
	}
	for name, to := range tests {
		t.Run(name, func(t *testing.T) {
			good, bad := make(map[string]string), make(map[string]string)
			for i := range n {
				good[fmt.Sprintf("%d.yaml", i)] = claimYAML(fmt.Sprint("c", i), "a")
				file, content := to(i)
				bad[file] = content
			}
			r := rules{validate: validate, crossCheck: crossCheck, token: newToken}
			out := next(newEffective(), step{lineage: lineageFirst}, diffOf(nil, manifestsOf(good)), r)
			fixed := map[string]string{"other.yaml": claimYAML("other", "a")}
			for i, files := range []map[string]string{bad, bad, fixed} {
				out = next(out.effective, step{lineage: lineageDescends}, diffOf(out.effective.files, manifestsOf(files)), r)
				objects, removed := n, 0
				if i == 2 {
					objects, removed = 1, n
				}
				if len(out.effective.objects) != objects || len(out.effective.removed) != removed {
					t.Fatalf("revision %d: %d objects in force and %d removed, want %d and %d",
						i, len(out.effective.objects), len(out.effective.removed), objects, removed)
				}
				for id, p := range out.effective.objects {
					if len(p.rarely().behind) > maxBehind {
						t.Fatalf("%s is held behind %d files, want at most %d", id, len(p.rarely().behind), maxBehind)
					}
				}
			}
		})
	}
}

func TestFoldersThatHoldOneAnotherManyTimesAreListedOnce(t *testing.T) {
	st := ok[*store](t)(openStore(t.TempDir()))
	defer st.close()
	tree := func(content []byte) plumbing.Hash {
		o := st.storage.NewEncodedObject()
		o.SetType(plumbing.TreeObject)
		w := ok[io.WriteCloser](t)(o.Writer())
		_ = ok[int](t)(w.Write(content))
		return ok[plumbing.Hash](t)(st.storage.SetEncodedObject(o))
	}
	root := tree(nil)
	for range 5 {
		var content []byte
		for i := range 10 {
			content = fmt.Appendf(content, "%s%d\x00%s", modeDir, i, root[:])
		}
		root = tree(content)
	}
	r := reader{decode: decode, count: func() {}}
	if files, err := r.read(st, root, ".", newEffective()); err != nil || len(files) != 0 || len(r.folders) != 6 {
		t.Errorf("%d files, %v, and %d folders were listed, want the 6 that differ", len(files), err, len(r.folders))
	}
}

func TestTheNewestApprovalsAreKept(t *testing.T) {
	var many []string
	for i := range maxApprovals + 50 {
		many = append(many, fmt.Sprint(i))
	}
	want := append(slices.Clone(many[51:]), "0") // one that is given again is new
	if got := newest(many, []string{"0"}); !slices.Equal(got, want) {
		t.Errorf("%d approvals from %s to %s, want %d from %s to %s",
			len(got), got[0], got[len(got)-1], len(want), want[0], want[len(want)-1])
	}
}

func TestAnApprovalThatIsNoTokenIsNotKept(t *testing.T) {
	repo := newRepo(t)
	ok[string](t)(repo.Commit(map[string]string{"web.yaml": claimYAML("web", "a")},
		"x\n\nIngot-Approve: "+strings.Repeat("x", maxToken+1)+"\nIngot-Approve: "+strings.Repeat("y", maxToken)))
	s := newSource(t, testOptions(t, repo.URL()))
	if got := mustSync(t, s).Approvals; len(got) != 1 || got[0] != strings.Repeat("y", maxToken) {
		t.Errorf("approvals %q", got)
	}
}

func TestTheStateRemembersTheNewestRevisions(t *testing.T) {
	repo := newRepo(t)
	ok[string](t)(repo.Commit(map[string]string{"web.yaml": claimYAML("web", "a")}, "first"))
	opts := testOptions(t, repo.URL())
	s := newSource(t, opts)
	mustSync(t, s)
	for range maxHeads + 10 {
		s.state.Heads = append(s.state.Heads, model.Applied{Commit: "old"})
	}
	ok[string](t)(repo.Commit(nil, "second"))
	mustSync(t, s)
	if st := ok[*state](t)(readState(s.stateFile())); len(st.Heads) != maxHeads || st.head().Commit != repo.Head("main") {
		t.Errorf("%d revisions, the newest %+v", len(st.Heads), st.head())
	}
}

func TestWhatALaterRevisionHeldIsNotOfAnEarlierOne(t *testing.T) {
	a, b := model.Applied{Branch: "main", Commit: strings.Repeat("a", 40)}, model.Applied{Branch: "main", Commit: strings.Repeat("b", 40)}
	content := []byte(claimYAML("web", "a"))
	blob := hashObject("blob", content).String()
	st := &state{
		Heads: []model.Applied{a, b}, Blobs: map[string][]byte{blob: content},
		Held: []model.LastGood{{Identity: model.ClaimName("default/web").Identity(), Path: "web.yaml", Blob: blob, Since: b.Revision()}},
	}
	r := reader{decode: decode, count: func() {}}
	for at, want := range map[model.Applied]int{a: 0, b: 1, {Commit: "of another machine"}: 0} {
		if got := st.held(at, r.parse); len(got) != want {
			t.Errorf("at %s: %v, want %d held", at.Commit, got, want)
		}
	}
}
