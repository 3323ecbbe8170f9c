package gitsource

import (
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"

	"ingot/model/must"
)

func TestHistoriesMeetWhereGitSays(t *testing.T) {
	onlyLong(t)
	t.Parallel()
	t.Run("clocks that are right", func(t *testing.T) { compareMeetings(t, 1) })
	t.Run("clocks that are wrong", func(t *testing.T) { compareMeetings(t, 3600) })
}

// compareMeetings compares a history of commits one minute apart, by clocks that are up to so
// many seconds wrong.
func compareMeetings(t *testing.T, wrong int) {
	dir := filepath.Join(t.TempDir(), "r")
	runGit(t, ".", "init", "--quiet", "--bare", dir)
	git := func(env []string, args ...string) string {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-C", dir}, args...)...)
		cmd.Env = append(cmd.Environ(), env...)
		out, err := cmd.Output()
		if err != nil && len(out) > 0 {
			t.Fatalf("git %v: %v", args, err)
		}
		return strings.TrimSpace(string(out))
	}
	const emptyTree = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
	git(nil, "hash-object", "-t", "tree", "-w", "/dev/null")
	rnd := rand.New(rand.NewPCG(1, 2))
	var all []string
	for i := range sample(60, 25) {
		args := []string{"commit-tree", emptyTree, "-m", fmt.Sprint(i)}
		for _, p := range rnd.Perm(len(all))[:min(len(all), rnd.IntN(3))] {
			args = append(args, "-p", all[max(p, len(all)-6)])
		}
		at := fmt.Sprintf("%d +0000", 1_700_000_000+60*i+rnd.IntN(wrong))
		env := []string{
			"GIT_AUTHOR_DATE=" + at, "GIT_COMMITTER_DATE=" + at,
			"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b",
		}
		all = append(all, git(env, args...))
	}
	c := must.Get(OpenClone(dir))(t)
	defer c.Close()
	met := 0
	for range sample(120, 40) {
		a, b := all[rnd.IntN(len(all))], all[rnd.IntN(len(all))]
		m := c.store.meet(plumbing.NewHash(a), plumbing.NewHash(b))
		common, between := []string{}, []string{}
		for _, h := range m.common {
			common = append(common, h.String())
		}
		for _, c := range m.between {
			between = append(between, c.Hash.String())
		}
		wantCommon, wantBetween := strings.Fields(git(nil, "merge-base", "--all", a, b)), strings.Fields(git(nil, "rev-list", b, "^"+a))
		for _, list := range [][]string{common, between, wantCommon, wantBetween} {
			slices.Sort(list)
		}
		if !slices.Equal(common, wantCommon) || wrong == 1 && !slices.Equal(between, wantBetween) || m.truncated {
			t.Errorf("%s and %s meet at %v with %d between, want %v with %d", a, b, common, len(between), wantCommon, len(wantBetween))
		}
		met += len(wantCommon)
	}
	if met == 0 {
		t.Error("no histories met: the test proves nothing")
	}
}
