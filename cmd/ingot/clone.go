package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"
)

// clone is a repository on this machine. It is worked on by the git program of its user, so
// that identity, signing, hooks and credentials are the user's own.
type clone struct {
	c      *console
	dir    string
	remote string // its name, origin
}

func openClone(ctx context.Context, c *console, dir, remote string) (*clone, error) {
	if _, err := exec.LookPath("git"); err != nil {
		return nil, errors.New("the program git is needed for this, and is not in PATH: install it")
	}
	g := &clone{c: c, dir: dir, remote: remote}
	if _, err := g.git(ctx, "rev-parse", "--git-dir"); err != nil {
		return nil, fmt.Errorf("%s is no clone of a repository: %w", dir, err)
	}
	return g, nil
}

// git runs git and returns what it printed, without the last line end.
func (g *clone) git(ctx context.Context, args ...string) (string, error) {
	var out, errs bytes.Buffer
	cmd := g.command(ctx, args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		says := strings.TrimSpace(errs.String())
		return "", fmt.Errorf("git %s: %s", args[0], cmp.Or(says, err.Error()))
	}
	return strings.TrimRight(out.String(), "\r\n"), nil
}

// show runs git and passes on what it says: what hooks and servers answer is for its user.
func (g *clone) show(ctx context.Context, args ...string) error {
	cmd := g.command(ctx, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = g.c.in, g.c.err, g.c.err
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("git %s: %w", args[0], err)
	}
	return nil
}

func (g *clone) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "git", append([]string{"-C", g.dir}, args...)...)
	cmd.Env = g.c.env
	return cmd
}

// has reports whether git can say what a revision is.
func (g *clone) has(ctx context.Context, revision string) bool {
	_, err := g.git(ctx, "rev-parse", "--quiet", "--verify", revision)
	return err == nil
}

type localBranch struct {
	ref, commit string
	written     time.Time
}

// branch returns the newer of a branch of the clone's own and what was fetched of it.
func (g *clone) branch(ctx context.Context, name string) (localBranch, error) {
	candidates := []string{"refs/heads/" + name, "refs/remotes/" + g.remote + "/" + name}
	out, err := g.git(ctx, append([]string{"for-each-ref", "--format=%(refname) %(objectname) %(committerdate:unix)"}, candidates...)...)
	if err != nil {
		return localBranch{}, err
	}
	var newest localBranch
	for line := range strings.Lines(out) {
		f := strings.Fields(line)
		if len(f) != 3 || !slices.Contains(candidates, f[0]) {
			continue
		}
		seconds, _ := strconv.ParseInt(f[2], 10, 64)
		if at := time.Unix(seconds, 0); newest.ref == "" || !at.Before(newest.written) {
			newest = localBranch{f[0], f[1], at}
		}
	}
	if newest.ref == "" {
		return newest, fmt.Errorf("this clone has no branch %s, neither of its own nor of %s: %s", name, g.remote, g.fetchAdvice(name))
	}
	return newest, nil
}

// fetch brings a branch up to date, if there is a remote.
func (g *clone) fetch(ctx context.Context, name string) error {
	if _, err := g.git(ctx, "remote", "get-url", g.remote); err != nil {
		return nil
	}
	_, err := g.git(ctx, "fetch", "--quiet", "--no-write-fetch-head", g.remote, "+refs/heads/"+name+":refs/remotes/"+g.remote+"/"+name)
	return err
}

// fetchAdvice is the command that brings a branch up to date, also in a clone of one branch.
func (g *clone) fetchAdvice(name string) string {
	return fmt.Sprintf("git fetch %s +refs/heads/%s:refs/remotes/%s/%s", g.remote, name, g.remote, name)
}

// remoteHead is the commit that the remote has of a branch, "" if there is no remote, or it
// lacks the branch.
func (g *clone) remoteHead(ctx context.Context, name string) (string, error) {
	if _, err := g.git(ctx, "remote", "get-url", g.remote); err != nil {
		return "", nil
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	out, err := g.git(ctx, "ls-remote", g.remote, "refs/heads/"+name)
	if err != nil {
		return "", err
	}
	commit, _, _ := strings.Cut(out, "\t")
	return commit, nil
}

func (g *clone) files(ctx context.Context, b localBranch) (map[string][]byte, error) {
	dir, err := g.git(ctx, "rev-parse", "--path-format=absolute", "--git-common-dir")
	if err != nil {
		return nil, err
	}
	return readBranch(ctx, g.c, dir, strings.TrimPrefix(b.ref, "refs/heads/"), gitAuthFlags{})
}
