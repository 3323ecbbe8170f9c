package gitsource

import (
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
)

// lineage is how a new head relates to the revision in force.
type lineage int

const (
	lineageFirst    lineage = iota // nothing was in force before
	lineageSame                    // it is the revision in force
	lineageDescends                // the revision in force is among its ancestors
	lineageOlder                   // it is among the ancestors of the revision in force
	rewritten                      // neither
)

// ancestry is what the store knows of the way from one commit to another.
type ancestry struct {
	lineage lineage
	// truncated is set when the lineage is rewritten only as far as the store's
	// history reaches.
	truncated bool
	// unclear is set when the lineage is rewritten only as far as the stored history of the
	// old commit reaches: the new one may be older.
	unclear bool
	// approved is what the commits approve that the new head has and the old one has not, newest
	// last. The commits are not kept: each may have a message of a megabyte.
	approved []string
}

func (s *store) relate(old, head plumbing.Hash) ancestry { return relate(s, old, s, head) }

// relate finds out how head, with its history in fetched, relates to old, with its history in
// known.
func relate(known *store, old plumbing.Hash, fetched *store, head plumbing.Hash) ancestry {
	switch {
	case old.IsZero():
		return ancestry{lineage: lineageFirst}
	case old == head:
		return ancestry{lineage: lineageSame}
	}
	behind, knownWhole := known.ancestors(old)
	if behind[head] {
		return ancestry{lineage: lineageOlder}
	}
	a := ancestry{lineage: rewritten}
	var approved tokens
	met, whole := fetched.visit(head, behind, func(c *object.Commit) bool {
		approved.addOlder(c)
		if slices.Contains(c.ParentHashes, old) {
			a.lineage = lineageDescends
		}
		return true
	})
	a.truncated = a.lineage == rewritten && !whole
	a.unclear = a.lineage == rewritten && !met && !knownWhole
	a.approved = approved.newestLast()
	return a
}

// approvals returns what is approved by head's new commits, and at least by head and its
// parents, newest last.
func (s *store) approvals(head *object.Commit, approved []string) []string {
	var own, parents tokens
	own.addOlder(head)
	for _, parent := range head.ParentHashes {
		if c, err := s.commit(parent); err == nil {
			parents.addOlder(c)
		}
	}
	return slices.Concat(parents.newestLast(), approved, own.newestLast())
}

// tokens are what commits approve, the newest first and no more than are kept.
type tokens []string

// addOlder adds what a commit approves that is older than those before.
func (t *tokens) addOlder(c *object.Commit) {
	for _, token := range slices.Backward(Trailers(c.Message)[approveTrailer]) {
		if len(token) <= maxToken && len(*t) < maxApprovals {
			*t = append(*t, strings.Clone(token)) // or the whole message would stay in memory
		}
	}
}

func (t tokens) newestLast() []string {
	out := slices.Clone([]string(t))
	slices.Reverse(out)
	return out
}

// approvedIn is what commits approve, of which the newest is the first.
func approvedIn(commits []*object.Commit) []string {
	var all tokens
	for _, c := range commits {
		all.addOlder(c)
	}
	return all.newestLast()
}

// Limits of what is kept of approvals.
const (
	maxApprovals = 200
	maxToken     = 128 // bytes; ours are shorter
)

// newest joins lists of approvals, newest last, each once, and keeps the newest.
func newest(lists ...[]string) []string {
	var out []string
	seen := make(map[string]bool)
	for _, token := range slices.Backward(slices.Concat(lists...)) {
		if !seen[token] && len(out) < maxApprovals {
			seen[token] = true
			out = append(out, token)
		}
	}
	slices.Reverse(out)
	return out
}

// Trailers that Ingot reads and writes, in lower case.
const (
	approveTrailer = "ingot-approve"
)

// Trailers returns the "Key: value" lines of the last paragraph of a commit
// message, by key in lower case, values in order. The first paragraph is the
// subject and holds none.
func Trailers(message string) map[string][]string {
	message = strings.TrimSpace(strings.ReplaceAll(message, "\r\n", "\n"))
	paragraphs := strings.Split(message, "\n\n")
	out := make(map[string][]string)
	if len(paragraphs) < 2 {
		return out
	}
	for line := range strings.Lines(paragraphs[len(paragraphs)-1]) {
		key, value, ok := strings.Cut(line, ":")
		if ok && trailerKey(key) {
			key = strings.ToLower(key)
			out[key] = append(out[key], strings.TrimSpace(value))
		}
	}
	return out
}

func trailerKey(key string) bool {
	for _, c := range key {
		if c != '-' && (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') {
			return false
		}
	}
	return key != ""
}
