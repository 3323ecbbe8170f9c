package gitsource

import (
	"errors"
	"fmt"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"

	"ingot/model"
)

// judge decides whether what is followed comes into force. It fails only if that cannot be
// read.
func (s *Source) judge(t target, way ancestry) error {
	head := t.commit
	s.target = t
	c, err := s.store.commit(head)
	if err != nil {
		return fmt.Errorf("%w: read commit %s: %w", errNotReadable, head, err)
	}
	s.metrics.head.Set(float64(c.Committer.When.Unix()))
	s.trust = s.opts.Verify.trust(s.store, t, s.clock())
	s.metrics.noteTrust(s.opts.Verify, s.trust)
	if !s.head.IsZero() {
		way = s.news(head, way)
	}
	switch {
	case s.trust.problem != "":
		s.refuse(head, model.SourceNotVerified, s.trust.problem+"; "+s.stays())
		return nil
	case !s.follows(c, way):
		s.refuse(head, model.SourceNotVerified, replacing(t.revision(), s.anchor.Revision())+"; "+s.stays())
		return nil
	case !s.head.IsZero() && s.replays(c, way, s.anchor):
		s.refuse(head, model.SourceOlder, s.olderText(way, s.anchor.Revision()))
		return nil
	}
	line, step := s.line(c, way)
	out, step, err := s.walker().walk(s.effective, line, step)
	s.store.forget()
	switch {
	case errors.Is(err, errPathMissing):
		s.refuse(head, model.SourcePathMissing, fmt.Sprintf("folder %s (git.path) is not in %s: %v; %s", s.opts.Path, s.target.revision(), err, s.stays()))
		return nil
	case errors.Is(err, errTooManyManifests), errors.Is(err, errTooMuchToRead):
		s.refuse(head, model.SourceRejected, fmt.Sprintf("%s holds %s, which is the limit; %s", s.target.revision(), err, s.stays()))
		return nil
	case errors.Is(err, errTreeTooLarge), errors.Is(err, errTreeMalformed):
		s.refuse(head, model.SourceRejected, fmt.Sprintf("%s cannot be read: %s; %s", s.target.revision(), err, s.stays()))
		return nil
	case errors.Is(err, errNoManifest):
		s.refuse(head, model.SourceEmpty, fmt.Sprintf("%s holds no manifest; %s", s.target.revision(), s.stays()))
		return nil
	case err != nil:
		return err
	}
	s.tips = s.remember(head, way)
	s.cause, s.approvals = "", step.approvals
	s.head, s.effective, s.at = head, out.effective, s.source()
	s.at.Commit = head.String()
	if s.opts.Branch == "" {
		s.at.Ref = t.name
	}
	s.anchor, s.signer = s.at, s.trust.signer
	s.evaluated, s.verdict = head, model.SourceState{Observed: s.target.revision()}
	// Written down before anybody acts upon it: what is held has to survive a restart.
	s.save()
	s.takeOver(out, false)
	return nil
}

// line returns the commits to apply, and how they follow on the revision in force: one by one if all of
// them are on its first-parent line, and otherwise the head alone.
func (s *Source) line(c *object.Commit, way ancestry) ([]lineCommit, step) {
	next := step{lineage: way.lineage, at: s.opts.Clock(), approvals: s.approvals}
	if s.cause != "" {
		next.lineage, next.cause = rewritten, s.cause
	} else if way.lineage == rewritten || way.lineage == lineageOlder {
		next.lineage, next.cause = rewritten, model.AbsentHistoryRewritten
	}
	if next.lineage == lineageDescends {
		line := s.store.line(s.head, c.Hash)
		if len(line) > 0 {
			return line, next
		}
		next.joined = true
	}
	if s.head.IsZero() && s.cause != "" {
		var recent tokens
		for _, h := range s.store.newest(c.Hash, fetchDepth) {
			if c, err := s.store.commit(h); err == nil {
				recent.addOlder(c)
			}
		}
		way.approved = slices.Concat(recent.newestLast(), way.approved)
	}
	return []lineCommit{{c.Hash, c.TreeHash, s.store.approvals(c, way.approved)}}, next
}

// walker applies commits of the watched branch.
func (s *Source) walker() walker {
	w := walker{
		rules: rules{s.opts.Validate, s.opts.CrossCheck, s.opts.StillFit, newToken, s.opts.Tenants},
		files: func(c lineCommit, in effective) ([]manifest, error) {
			return s.reader.read(s.store, c.tree, s.opts.Path, in)
		},
		revision: func(h plumbing.Hash) model.Revision {
			if h != s.target.commit && s.opts.Branch == "" {
				return target{name: commitName, commit: h}.revision() // a tag names its own commit alone
			}
			return target{name: s.target.name, commit: h}.revision()
		},
	}
	if s.opts.Verify.ofCommit() {
		w.usable = s.opts.Verify.verifiedCommit(s.store, s.clock())
	}
	return w
}

// stays says what is in force instead of a revision that is not taken.
func (s *Source) stays() string {
	if s.head.IsZero() {
		return "nothing is in force yet"
	}
	return string(s.at.Revision()) + " stays in force"
}

// refuse leaves what is in force and says why head is not.
func (s *Source) refuse(head plumbing.Hash, reason, text string) {
	s.log.Warn("revision is not applied", "revision", s.target.revision(), "reason", reason)
	s.evaluated = head
	s.verdict = model.SourceState{Observed: s.target.revision(), Reason: reason, Message: text}
	s.announce(s.verdict)
}

// takeOver shows what came into force. Restored says that the branch was not looked
// at since.
func (s *Source) takeOver(out outcome, restored bool) {
	now, files := s.opts.Clock(), len(out.effective.files)
	if len(out.effective.absent) > 0 {
		s.verdict.Reason, s.verdict.Message = model.SourceHistoryRewritten, out.effective.rewriteText()
	}
	s.verdict.Since = since(s.status.Load(), s.verdict.Reason, now)
	d := withBoots(out.desired(), s.opts.Boots)
	d.Revision, d.URL, d.Path, d.NoBranch, d.VerifiedBy = s.at.Revision(), s.at.URL, s.at.Path, s.at.Ref != "", s.signer
	d.Time, d.Approvals, d.KeptOverRestart, d.Source = now, s.approvals, restored, s.verdict
	for _, tip := range s.tips {
		d.Tips = append(d.Tips, tip.String())
	}
	s.metrics.revision.Set(float64(now.Unix()))
	if c, err := s.store.commit(s.head); err == nil {
		s.metrics.inForce.Set(float64(c.Committer.When.Unix()))
		if restored { // which is all that was seen
			s.metrics.head.Set(float64(c.Committer.When.Unix()))
		}
	}
	s.metrics.files.Set(float64(files))
	s.showProblems(d.Problems)
	s.status.Store(&d.Source)
	s.desired.Store(d)
	signal(s.changed)
	s.log.Info("revision in force", "revision", d.Revision, "manifests", files, "objects", len(out.effective.objects), "problems", len(d.Problems), "absent", len(out.effective.absent))
}

func (s *Source) showProblems(problems []model.Problem) {
	counts := map[model.Severity]int{model.SeverityError: 0, model.SeverityWarning: 0}
	for _, p := range problems {
		counts[p.Severity]++
	}
	for severity, n := range counts {
		s.metrics.problems.WithLabelValues(string(severity)).Set(float64(n))
	}
}
