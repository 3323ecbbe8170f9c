package gitsource

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
)

// Limits of what is kept in memory of the status branch's commits.
const (
	maxChronicle        = 2000     // commits
	maxChronicleBytes   = 4 << 20  // of all of their messages
	maxChronicleMessage = 64 << 10 // bytes of one message
	rememberDepth       = 500      // commits that are read of what was there before
)

// StatusCommit is a commit of the status branch, or what of it is about one object.
type StatusCommit struct {
	Hash  string
	At    time.Time
	Lines []string // of the message: its subject and what else happened, without trailers
}

// chronicle is what the newest commits of the branch say, the oldest first.
type chronicle struct {
	mu      sync.Mutex
	commits []StatusCommit
	size    int
}

// Remember reads what the newest commits of the branch say, for History to know of what
// happened before this process began. It does not hold up Publish.
func (b *StatusBranch) Remember(ctx context.Context) error {
	r, err := newRemote(b.opts.URL, Ref{Branch: b.opts.Branch}, b.opts.Auth, b.opts.Timeout)
	if err != nil {
		return fmt.Errorf("read the history of branch %s: %w", b.opts.Branch, err)
	}
	defer r.close()
	own := &StatusBranch{opts: b.opts, log: b.log, remote: r}
	ctx, cancel := r.within(ctx)
	defer cancel()
	var before []StatusCommit
	err = own.fetched(ctx, fetchPlan{depth: rememberDepth, filter: filterTrees}, func(s *store, head plumbing.Hash) error {
		s.visit(head, nil, func(c *object.Commit) bool { // as far as it was fetched
			before = append(before, StatusCommit{c.Hash.String(), c.Committer.When.UTC(), messageLines(c.Message)})
			return len(before) < rememberDepth
		})
		return nil
	})
	switch kind := kindOf(err); {
	case err == nil:
	case kind == failureBranch, kind == failureEmpty:
		return nil
	default:
		return fmt.Errorf("read the history of branch %s: %w", b.opts.Branch, err)
	}
	slices.Reverse(before)
	b.chronicle.precede(before)
	return nil
}

// History returns those of the newest commits that are known to be about an object, and
// what they say of it; the newest first, at most so many.
func (b *StatusBranch) History(name string, most int) []StatusCommit {
	return b.chronicle.about(name, most)
}

// Newest is the newest commit of the branch that is known, with its whole message; false if none is.
func (b *StatusBranch) Newest() (StatusCommit, bool) {
	b.chronicle.mu.Lock()
	defer b.chronicle.mu.Unlock()
	if len(b.chronicle.commits) == 0 {
		return StatusCommit{}, false
	}
	return b.chronicle.commits[len(b.chronicle.commits)-1], true
}

func (c *chronicle) note(commit StatusCommit) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.commits = append(c.commits, commit)
	c.size += commit.size()
	c.bound()
}

// precede puts those commits before what is known that are not known yet.
func (c *chronicle) precede(before []StatusCommit) {
	c.mu.Lock()
	defer c.mu.Unlock()
	known := make(map[string]bool, len(c.commits))
	for _, commit := range c.commits {
		known[commit.Hash] = true
	}
	before = slices.DeleteFunc(before, func(commit StatusCommit) bool { return known[commit.Hash] })
	for _, commit := range before {
		c.size += commit.size()
	}
	c.commits = append(before, c.commits...)
	c.bound()
}

// bound forgets the oldest commits that there is no room for.
func (c *chronicle) bound() {
	n := 0
	for len(c.commits)-n > 1 && (len(c.commits)-n > maxChronicle || c.size > maxChronicleBytes) {
		c.size -= c.commits[n].size()
		n++
	}
	c.commits = slices.Delete(c.commits, 0, n)
}

func (c *chronicle) about(name string, most int) (found []StatusCommit) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, commit := range slices.Backward(c.commits) {
		if len(found) == most {
			break
		}
		var lines []string
		for _, line := range commit.Lines {
			if mentions(line, name) {
				lines = append(lines, line)
			}
		}
		if len(lines) > 0 {
			found = append(found, StatusCommit{commit.Hash, commit.At, lines})
		}
	}
	return found
}

// size is about how many bytes a commit takes.
func (c StatusCommit) size() (n int) {
	const overhead = 100
	for _, line := range c.Lines {
		n += len(line)
	}
	return n + overhead
}

// messageLines are the lines of a status commit's message that say what happened. Where the
// body has all of it, the subject would say it twice.
func messageLines(message string) []string {
	if len(message) > maxChronicleMessage {
		message = message[:maxChronicleMessage]
	}
	subject, rest, _ := strings.Cut(message, "\n")
	var body []string
	for line := range strings.Lines(rest) {
		line = oneLine(line)
		if line == noBuild {
			break // what follows are trailers
		}
		if line != "" {
			body = append(body, line)
		}
	}
	if len(body) > 0 {
		return body
	}
	return []string{oneLine(subject)}
}

func mentions(line, name string) bool {
	for at := 0; name != ""; {
		i := strings.Index(line[at:], name)
		if i < 0 {
			return false
		}
		begin, end := at+i, at+i+len(name)
		if !endsName(line[:begin]) && !beginsName(line[end:]) {
			return true
		}
		at = end
	}
	return false
}

func endsName(s string) bool   { return s != "" && nameByte(s[len(s)-1]) }
func beginsName(s string) bool { return s != "" && nameByte(s[0]) }

// nameByte reports whether a byte may be a part of an object's name, or of a path to it.
func nameByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '.' || c == '_' || c == '/'
}
