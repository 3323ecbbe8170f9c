package gitsource

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"ingot/model"
	"ingot/model/must"
)

// growth is what a folder holds at most, while it is looked at again and again.
type growth struct {
	packs, loose, files int
	bytes               int64
}

func (g growth) look(t *testing.T, dir string) growth {
	t.Helper()
	var now growth
	must.Do(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		now.files++
		now.bytes += info.Size()
		switch folder := filepath.Base(filepath.Dir(path)); {
		case strings.HasSuffix(path, ".pack"):
			now.packs++
		case len(folder) == 2 && strings.Contains(path, "objects"):
			now.loose++
		}
		return nil
	}))
	return growth{max(g.packs, now.packs), max(g.loose, now.loose), max(g.files, now.files), max(g.bytes, now.bytes)}
}

func (g growth) String() string {
	return fmt.Sprintf("%d packs, %d loose objects, %d files, %d KiB", g.packs, g.loose, g.files, g.bytes>>10)
}

func manyCommits(t *testing.T, few int) int {
	text := os.Getenv("COMMITS")
	if text == "" {
		return few
	}
	return ok[int](t)(strconv.Atoi(text))
}

// commitRange adds commits to a branch of their own, each of which changes one of some claims,
// and returns their hashes.
func commitRange(t *testing.T, repo *servedRepo, n int) []string {
	t.Helper()
	const claims = 200
	var in bytes.Buffer
	for i := range n {
		fmt.Fprintf(&in, "commit refs/heads/all\nmark :%d\ncommitter A <a@example.com> %d +0000\ndata 3\none\n", i+1, 1_700_000_000+i)
		for k := range claims {
			if i == 0 || k == i%claims {
				content := claimYAML(fmt.Sprint("c", k), fmt.Sprint("image", i))
				fmt.Fprintf(&in, "M 100644 inline c/%d.yaml\ndata %d\n%s\n", k, len(content), content)
			}
		}
	}
	marks := filepath.Join(t.TempDir(), "marks")
	git(t, &in, repo.Dir, "fast-import", "--quiet", "--date-format=raw", "--export-marks="+marks)
	hashes := make([]string, n)
	for line := range strings.Lines(string(ok[[]byte](t)(os.ReadFile(marks)))) {
		var mark int
		var hash string
		_ = ok[int](t)(fmt.Sscanf(line, ":%d %s", &mark, &hash))
		hashes[mark-1] = hash
	}
	return hashes
}

// What the watched branch leaves on disk does not grow with its history. COMMITS is how many
// there are, ten of them between two looks.
func TestTheSourceIsBoundedOverManyCommits(t *testing.T) {
	onlyLong(t)
	const each = 10
	repo := newGitRepo(t)
	hashes := commitRange(t, repo, manyCommits(t, 500))
	opts := testOptions(t, repo.URL())
	s := newSource(t, opts)
	if len(hashes) < 10_000 {
		s.keep = 10
	}
	var first, later growth
	began, looks := time.Now(), len(hashes)/each
	for i := range looks {
		must.Do(t, repo.SetBranch("main", hashes[(i+1)*each-1]))
		d := mustSync(t, s)
		if len(d.Claims) != 200 || d.Source.Reason != "" {
			t.Fatalf("look %d: %d claims, %+v", i, len(d.Claims), d.Source)
		}
		if i < 3*s.keep {
			first = first.look(t, opts.Dir)
		} else {
			later = later.look(t, opts.Dir)
		}
		if i%1000 == 999 {
			t.Logf("after %d commits, %v: at first at most %v, later %v", (i+1)*each, time.Since(began).Round(time.Second), first, later)
		}
	}
	t.Logf("%d commits: at first at most %v, later %v", looks*each, first, later)
	if later.packs > s.keep || later.loose > first.loose || later.files > first.files || later.bytes > first.bytes*5/4 {
		t.Errorf("at first it holds at most %v, later %v", first, later)
	}
}

// What the status branch leaves on disk is nothing. What it leaves in its repository Git's own
// housekeeping folds, which a server does after pushes.
func TestTheStatusBranchIsBoundedOverManyCommits(t *testing.T) {
	onlyLong(t)
	repo := newGitRepo(t)
	for _, setting := range [][]string{{"receive.autogc", "true"}, {"gc.auto", "100"}, {"gc.autoDetach", "false"}, {"gc.pruneExpire", "now"}} {
		ok[string](t)(repo.Git("config", setting[0], setting[1]))
	}
	b := newStatus(t, repo.URL(), Auth{})
	var most growth
	n := min(manyCommits(t, 20), 1000) // each is a push
	docs := make(map[string]*model.Document)
	for i := range 200 {
		docs[benchPath(i)] = &model.Document{Text: benchDoc(i, 0)}
	}
	r := &model.Report{Documents: docs}
	for i := range n {
		docs[benchPath(i%200)] = &model.Document{Text: benchDoc(i%200, i+1)}
		r.Subject = fmt.Sprint("round ", i)
		if p := ok[Published](t)(b.Publish(t.Context(), r)); !p.New {
			t.Fatalf("published %+v", p)
		}
		most = most.look(t, repo.Dir)
		if left := ok[[]os.DirEntry](t)(os.ReadDir(b.opts.Dir)); len(left) > 0 {
			t.Fatalf("round %d: %v is left", i, left)
		}
	}
	t.Logf("%d commits: the repository held at most %v", n, most)
	// Git folds packs once there are more than 50 (gc.autoPackLimit), and loose objects by a
	// guess from one folder of 256.
	if most.packs > 51 || most.loose > 2500 {
		t.Errorf("the repository held at most %v", most)
	}
	ok[string](t)(repo.Git("gc", "--quiet", "--prune=now"))
	if now := (growth{}).look(t, repo.Dir); now.packs != 1 || now.loose != 0 {
		t.Errorf("once git gc ran it holds %v", now)
	}
}
