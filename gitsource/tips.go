package gitsource

import (
	"fmt"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"

	"ingot/model"
)

// maxTips is the maximum number of revisions remembered in addition to the one in force.
const maxTips = 16

func tipsOf(recorded []string) []plumbing.Hash {
	var tips []plumbing.Hash
	for _, commit := range recorded {
		if plumbing.IsHash(commit) {
			tips = append(tips, plumbing.NewHash(commit))
		}
	}
	return tips
}

// news relates a head to every tip, not only to the revision in force. A host that lags behind
// and catches up shows old commits one by one, each a descendant of the one before, so the
// revision in force alone does not reveal that their removals are old.
func (s *Source) news(head plumbing.Hash, way ancestry) ancestry {
	if way.unclear { // what was missing may have been fetched since
		if now := s.store.relate(s.head, head); !now.unclear {
			way = now
		}
	}
	if slices.Contains(s.tips, head) {
		return ancestry{lineage: rewritten, approved: way.approved}
	}
	for _, tip := range s.tips {
		switch to := s.store.relate(tip, head); {
		case to.lineage == lineageOlder:
			return ancestry{lineage: lineageOlder}
		case way.lineage == rewritten:
			way.unclear = way.unclear || to.unclear
		}
	}
	// Older tips may have been dropped, so the ancestors of one can no longer be recognised.
	way.unclear = way.unclear || way.lineage == rewritten && len(s.tips) == maxTips
	return way
}

// replays reports whether a head only repeats what was in force before, or may do so. A
// configuration that selects another commit is not a replay, nor is a head that a commit
// approves by naming the revision it replaces.
func (s *Source) replays(c *object.Commit, way ancestry, applied model.Applied) bool {
	if !applied.SameSource(s.source()) || s.opts.excludes(applied) {
		return false
	}
	return way.lineage == lineageOlder || way.unclear && !s.store.replaces(c, way, plumbing.NewHash(applied.Commit))
}

// remember returns the tips once head is in force: the revisions that were in force and that
// head does not descend from, oldest first.
func (s *Source) remember(head plumbing.Hash, way ancestry) []plumbing.Hash {
	var tips []plumbing.Hash
	last := plumbing.NewHash(s.anchor.Commit)
	for _, tip := range append(slices.Clone(s.tips), last) {
		covered := tip == last && way.lineage == lineageDescends || s.store.relate(tip, head).lineage == lineageDescends
		if tip.IsZero() || tip == head || covered || slices.Contains(tips, tip) {
			continue
		}
		tips = append(tips, tip)
	}
	return tips[max(0, len(tips)-maxTips):]
}

// olderText explains why the target, which is older than the revision applied or may be, is
// not applied.
func (s *Source) olderText(way ancestry, applied model.Revision) string {
	if way.unclear {
		return fmt.Sprintf("the repository shows %s, which does not descend from %s and may be older; %s. If the Git host is catching "+
			"up, no action is needed. To use this history, push a commit whose message ends in Ingot-Approve: %s",
			s.target.revision(), applied, s.stays(), applied)
	}
	return fmt.Sprintf("the repository shows an older commit than the one in force: %s; %s. If the Git host is catching up, no action "+
		"is needed. To go back to this commit, push a new commit on top of it", s.target.revision(), s.stays())
}
