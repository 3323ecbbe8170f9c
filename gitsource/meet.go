package gitsource

import (
	"slices"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
)

// meeting is where the histories of two commits meet.
type meeting struct {
	// common are the newest commits that both come from, as a rule one.
	common []plumbing.Hash
	// between are the commits that the second has and the first has not; where clocks were wrong,
	// some that both have may be among them.
	between []*object.Commit
	// truncated is set when history was missing on the way.
	truncated bool
}

// at reports whether the histories meet at a commit alone: one of the two, if it comes before
// the other.
func (m meeting) at(h plumbing.Hash) bool { return len(m.common) == 1 && m.common[0] == h }

// Whose ancestor a commit is known to be; stale is one of a common ancestor.
const (
	ofFirst = 1 << iota
	ofSecond
	stale
)

// meet walks back from two commits, the newest first, until all that is left is behind a
// common one: of a long history only the part since then is read.
func (s *store) meet(first, second plumbing.Hash) meeting {
	var m meeting
	flags := make(map[plumbing.Hash]int)
	var queue []*object.Commit // the newest last
	paint := func(h plumbing.Hash, with int) {
		if flags[h]&with == with {
			return
		}
		flags[h] |= with
		c, err := s.commit(h)
		if err != nil {
			m.truncated = true
			return
		}
		i, _ := slices.BinarySearchFunc(queue, c, func(a, b *object.Commit) int { return a.Committer.When.Compare(b.Committer.When) })
		queue = slices.Insert(queue, i, c)
	}
	paint(first, ofFirst)
	paint(second, ofSecond)
	var seen []*object.Commit
	for slices.ContainsFunc(queue, func(c *object.Commit) bool { return flags[c.Hash]&stale == 0 }) {
		c := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		f := flags[c.Hash]
		if f == ofFirst|ofSecond {
			if !slices.Contains(m.common, c.Hash) {
				m.common = append(m.common, c.Hash)
			}
			f |= stale // and so is what it comes from
		}
		seen = append(seen, c)
		for _, parent := range c.ParentHashes {
			paint(parent, f)
		}
	}
	m.common = slices.DeleteFunc(m.common, func(h plumbing.Hash) bool { return flags[h]&stale != 0 })
	told := make(map[plumbing.Hash]bool)
	for _, c := range seen {
		if flags[c.Hash] == ofSecond && !told[c.Hash] {
			told[c.Hash] = true
			m.between = append(m.between, c)
		}
	}
	return m
}
