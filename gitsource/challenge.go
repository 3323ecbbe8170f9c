package gitsource

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"

	"ingot/model"
)

// challengeRefs are where an Ingot asks whether another is alive: a ref that no clone
// fetches, or a branch on servers that take or show no others.
var challengeRefs = []plumbing.ReferenceName{
	"refs/ingot/challenge",
	plumbing.NewBranchReferenceName("ingot-challenge"),
}

// Trailers of the commits that those refs point to, in lower case.
const (
	challengerTrailer = "challenger"
	answeredTrailer   = "answered-by"
	hostTrailer       = "host"
)

// challenge is what is known of the challenges on the server.
type challenge struct {
	self string // our ID while we are the challenger
	// rival is the branch's head when we challenged: one who moves it is alive.
	rival plumbing.Hash
	// left are the commits that were there before: what they say is no answer to us.
	left map[plumbing.Hash]bool
	seen map[plumbing.ReferenceName]question
}

// question is what one of the challengeRefs says.
type question struct {
	commit     plumbing.Hash
	challenger string
	answer     model.Holder // without an ID there is none
}

// unknown returns the commits of challenges that were not read yet, and forgets the
// challenges that are gone.
func (c *challenge) unknown(adv *packp.AdvRefs) []plumbing.Hash {
	var want []plumbing.Hash
	for _, ref := range challengeRefs {
		commit, there := adv.References[ref.String()]
		switch {
		case !there:
			delete(c.seen, ref)
		case c.seen[ref].commit != commit && (len(want) == 0 || want[0] != commit):
			want = append(want, commit)
		}
	}
	return want
}

// learn notes what the challenges say.
func (c *challenge) learn(adv *packp.AdvRefs, commits map[plumbing.Hash]*object.Commit) {
	for _, ref := range challengeRefs {
		hash := adv.References[ref.String()]
		commit := commits[hash]
		if commit == nil {
			continue
		}
		if c.seen == nil {
			c.seen = make(map[plumbing.ReferenceName]question)
		}
		c.seen[ref] = readQuestion(hash, commit.Message)
	}
}

func readQuestion(hash plumbing.Hash, message string) question {
	last := func(values []string) string {
		if len(values) == 0 {
			return ""
		}
		return clipped(values[len(values)-1])
	}
	t := Trailers(message)
	return question{
		commit: hash, challenger: last(t[challengerTrailer]),
		answer: model.Holder{ID: last(t[answeredTrailer]), Host: last(t[hostTrailer])},
	}
}

// open returns the challenger that has no answer yet, "" if there is none but us.
func (c *challenge) open() string {
	for _, ref := range challengeRefs {
		if q := c.seen[ref]; q.answer.ID == "" && q.challenger != "" && q.challenger != c.self {
			return q.challenger
		}
	}
	return ""
}

// answer returns who answered since we are the challenger.
func (c *challenge) answer() (model.Holder, bool) {
	for _, ref := range challengeRefs {
		if q := c.seen[ref]; q.answer.ID != "" && !c.left[q.commit] {
			return q.answer, true
		}
	}
	return model.Holder{}, false
}

// begin makes us the challenger of whoever wrote head.
func (c *challenge) begin(self string, head plumbing.Hash) {
	c.self, c.rival, c.left = self, head, make(map[plumbing.Hash]bool)
	for _, q := range c.seen {
		c.left[q.commit] = true
	}
}

// Challenge asks whether the Ingot that writes the status branch is alive; id is that
// of the one who asks. Whoever lives finds the question by Look, and gives an Answer.
func (b *StatusBranch) Challenge(ctx context.Context, id string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	ctx, cancel := b.remote.within(ctx)
	defer cancel()
	head, _, err := b.newCommits(ctx)
	if err == nil {
		b.challenge.begin(clipped(id), head)
		err = b.ask(ctx)
	}
	if err != nil {
		return b.postponed(fmt.Errorf("challenge the holder of branch %s: %w", b.opts.Branch, err))
	}
	return nil
}

// ask pushes the question to the first ref that the server takes and shows.
func (b *StatusBranch) ask(ctx context.Context) error {
	text := fmt.Sprintf("Is the holder of branch %s alive?\n\nAsked by an Ingot that is about to start.\n\nChallenger: %s\n", b.opts.Branch, b.challenge.self)
	var err error
	for _, ref := range challengeRefs {
		if err = b.move(ctx, ref, text); err == nil {
			err = b.shows(ctx, ref)
		}
		if err == nil || !errors.Is(err, ErrRejected) {
			return err
		}
		b.log.InfoContext(ctx, "the server does not accept a challenge", "ref", ref.String(), "err", message(err))
	}
	return err
}

// shows fails if the ref is kept from those who fetch.
func (b *StatusBranch) shows(ctx context.Context, ref plumbing.ReferenceName) error {
	if _, _, err := b.newCommits(ctx); err != nil {
		return err
	}
	if _, shown := b.challenge.seen[ref]; !shown {
		return &failure{failureRejected, fmt.Errorf("%w: ref %s is not shown", ErrRejected, ref)}
	}
	return nil
}

// Answer tells all challengers that holder is alive.
func (b *StatusBranch) Answer(ctx context.Context, holder model.Holder) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	ctx, cancel := b.remote.within(ctx)
	defer cancel()
	text := fmt.Sprintf("The holder of branch %s is alive\n\nAnswered-By: %s\nHost: %s\n", b.opts.Branch, clipped(holder.ID), clipped(holder.Host))
	var errs []error
	for _, ref := range challengeRefs {
		if q, asked := b.challenge.seen[ref]; asked && q.answer.ID == "" {
			errs = append(errs, b.move(ctx, ref, text))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return b.postponed(fmt.Errorf("answer the challenge: %w", err))
	}
	return nil
}

// Answered returns who answered our Challenge, with ID and host, if anybody did. One
// that moved the status branch meanwhile counts too. A question that somebody took
// away is asked again.
func (b *StatusBranch) Answered(ctx context.Context) (model.Holder, bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	ctx, cancel := b.remote.within(ctx)
	defer cancel()
	holder, err := b.answered(ctx)
	if err != nil {
		return model.Holder{}, false, b.postponed(fmt.Errorf("look for an answer: %w", err))
	}
	return holder, holder.ID != "", nil
}

func (b *StatusBranch) answered(ctx context.Context) (model.Holder, error) {
	s, err := b.look(ctx)
	if err != nil {
		return model.Holder{}, err
	}
	if holder, answered := b.challenge.answer(); answered {
		return holder, nil
	}
	if s.Head != "" && s.Head != b.challenge.rival.String() && s.Holder.ID != b.challenge.self && b.sighted.ingot {
		return s.Holder, nil
	}
	if len(b.challenge.seen) == 0 && b.challenge.self != "" {
		return model.Holder{}, b.ask(ctx)
	}
	return model.Holder{}, nil
}

// Withdraw takes all challenges away, with their answers.
func (b *StatusBranch) Withdraw(ctx context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	ctx, cancel := b.remote.within(ctx)
	defer cancel()
	b.challenge = challenge{}
	var errs []error
	for _, ref := range challengeRefs {
		errs = append(errs, b.move(ctx, ref, ""))
	}
	if err := errors.Join(errs...); err != nil {
		return b.postponed(fmt.Errorf("withdraw the challenge: %w", err))
	}
	return nil
}

// move makes the ref point to a new commit, without files, that says text and follows
// the one before; without text it deletes the ref. Somebody else may move it at the
// same time; then it is tried again.
func (b *StatusBranch) move(ctx context.Context, ref plumbing.ReferenceName, text string) error {
	var before plumbing.Hash
	for attempt := range pushAttempts {
		if attempt > 0 && !sleep(ctx, backoff(b.opts.URL, attempt), nil) {
			return context.Cause(ctx)
		}
		old, said, err := b.moveOnce(ctx, ref, text)
		if err == nil {
			return nil
		}
		why := b.remote.explain(ctx, err)
		switch {
		case kindOf(why) != failureOther, unwell(err):
			return why
		case attempt > 0 && old == before && !locked(err):
			return &failure{failureRejected, fmt.Errorf("%w: %s", ErrRejected, shorten(oneLine(err.Error()+" "+said)))}
		}
		before = old
	}
	return &failure{failureRejected, fmt.Errorf("%w: ref %s moved %d times", ErrRejected, ref, pushAttempts)}
}

// moveOnce returns where the ref was, and what the server said.
func (b *StatusBranch) moveOnce(ctx context.Context, ref plumbing.ReferenceName, text string) (old plumbing.Hash, said string, err error) {
	session, err := b.remote.receiveSession(ctx)
	if err != nil {
		return old, "", err
	}
	defer closeSession(session)
	adv, _, err := b.advertised(ctx, session)
	if err != nil {
		return old, "", err
	}
	old = adv.References[ref.String()]
	cmd := &packp.Command{Name: ref, Old: old}
	if text == "" {
		if old.IsZero() {
			return old, "", nil
		}
		if !adv.Capabilities.Supports(capability.DeleteRefs) {
			return old, "", errors.New("the server deletes no refs")
		}
		said, err = b.send(ctx, session, adv.Capabilities, cmd, nil)
		return old, said, err
	}
	tree := hashObject("tree", nil)
	content, commit, err := b.signer.commit(encodeCommit(tree, old, signature{b.opts.AuthorName, b.opts.AuthorEmail}, b.opts.Clock(), text))
	if err != nil {
		return old, "", &failure{failureKey, err}
	}
	cmd.New = commit
	pack := newPackWriter()
	pack.add(packCommit, content)
	pack.add(packTree, nil)
	said, err = b.send(ctx, session, adv.Capabilities, cmd, pack.bytes())
	return old, said, err
}
