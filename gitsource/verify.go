package gitsource

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"

	"ingot/gitsource/signing"
	"ingot/model"
)

// VerifyMode says which signatures a revision must carry.
type VerifyMode string

// The modes. What is signed vouches for all that it descends from.
const (
	VerifyNone VerifyMode = "none"
	VerifyHead VerifyMode = "head" // that of the commit
	VerifyTag  VerifyMode = "tag"  // that of the annotated tag
	VerifyBoth VerifyMode = "both"
)

// VerifyModes are all modes.
var VerifyModes = []VerifyMode{VerifyNone, VerifyHead, VerifyTag, VerifyBoth}

// Verify says which signatures a revision must carry before anything of it is read.
type Verify struct {
	Mode VerifyMode // "" is VerifyNone
	Keys string     // the folder of the keys that may sign, read anew for each look
}

func (v Verify) on() bool       { return v.Mode != VerifyNone && v.Mode != "" }
func (v Verify) ofCommit() bool { return v.Mode == VerifyHead || v.Mode == VerifyBoth }
func (v Verify) ofTag() bool    { return v.Mode == VerifyTag || v.Mode == VerifyBoth }

// Check returns why signatures cannot be asked for of a Ref, or with those keys. That keys
// which cannot be read verify nothing is no error of the Ref's.
func (v Verify) Check(r Ref) error {
	switch {
	case !slices.Contains(VerifyModes, v.Mode):
		return fmt.Errorf("verify mode %q is not known: none, head, tag and both are", v.Mode)
	case v.ofTag() && r.Tag == "" && r.Semver == "":
		return fmt.Errorf("verify mode %s asks for signed tags, but %s is followed", v.Mode, r)
	case v.on() && v.Keys == "":
		return fmt.Errorf("verify mode %s needs a folder of keys that may sign", v.Mode)
	}
	return nil
}

// trust is what came of looking at the signatures of a revision.
type trust struct {
	signer  string // who signed
	problem string // why the revision may not be used, "" if it may
}

// verify looks at the signatures of what is followed. It says the same as long as neither
// that, nor the keys, nor their expiry change.
func (v Verify) trust(st *store, t target, now time.Time) trust {
	if !v.on() {
		return trust{}
	}
	keys, err := signing.Load(v.Keys)
	if err != nil {
		return trust{problem: fmt.Sprintf("no signature can be verified: %s; correct git.verify.keys", message(err))}
	}
	var signers []string
	check := func(what string, verify func(*signing.Keys) (signing.Signer, error)) string {
		by, err := verify(keys)
		if err != nil {
			return fmt.Sprintf("%s %s; allowed are %s: sign anew with one of them, or add the key to git.verify.keys",
				what, message(err), listed(keys.Names()))
		}
		if who := shorten(by.String()); !slices.Contains(signers, who) {
			signers = append(signers, who)
		}
		return ""
	}
	if v.ofTag() {
		if problem := check("tag "+t.name, func(k *signing.Keys) (signing.Signer, error) { return verifyTag(k, st, t, now) }); problem != "" {
			return trust{problem: problem}
		}
	}
	if v.ofCommit() {
		what := "commit " + t.commit.String()
		if problem := check(what, func(k *signing.Keys) (signing.Signer, error) { return verifyCommit(k, st, t.commit, now) }); problem != "" {
			return trust{problem: problem}
		}
	}
	return trust{signer: strings.Join(signers, ", ")}
}

// verifiedCommit returns a check of the signatures of commits that came into force along with the head.
func (v Verify) verifiedCommit(st *store, now time.Time) func(plumbing.Hash) bool {
	keys, err := signing.Load(v.Keys)
	return func(h plumbing.Hash) bool {
		if err != nil {
			return false
		}
		_, err := verifyCommit(keys, st, h, now)
		return err == nil
	}
}

// verifyCommit verifies the bytes of the very commit object that is read afterwards.
func verifyCommit(keys *signing.Keys, st *store, h plumbing.Hash, now time.Time) (signing.Signer, error) {
	raw, err := st.content(plumbing.CommitObject, h)
	if err != nil {
		return signing.Signer{}, err
	}
	payload, signature := signing.SplitCommit(raw)
	c, err := st.commit(h)
	if err != nil {
		return signing.Signer{}, err
	}
	if !bytes.HasPrefix(payload, headersOf(c)) || !bytes.HasSuffix(payload, []byte("\n\n"+c.Message)) {
		return signing.Signer{}, errors.New("is not written as git writes commits")
	}
	return keys.Verify(payload, signature, now)
}

// headersOf are the headers that say what a commit holds and descends from.
func headersOf(c *object.Commit) []byte {
	b := fmt.Appendf(nil, "tree %s\n", c.TreeHash)
	for _, p := range c.ParentHashes {
		b = fmt.Appendf(b, "parent %s\n", p)
	}
	return append(b, "author "...)
}

// verifyTag also compares the tag's own name, which is signed, with the one it was found
// under: a signed tag may be pushed under any.
func verifyTag(keys *signing.Keys, st *store, t target, now time.Time) (signing.Signer, error) {
	if t.tag.IsZero() {
		return signing.Signer{}, errors.New("is not annotated, so it cannot be signed: make it by git tag -s")
	}
	raw, err := st.content(plumbing.TagObject, t.tag)
	if err != nil {
		return signing.Signer{}, err
	}
	payload, signature := signing.SplitTag(raw)
	if want := fmt.Sprintf("object %s\ntype commit\ntag %s\ntagger ", t.commit, t.name); !bytes.HasPrefix(payload, []byte(want)) {
		return signing.Signer{}, errors.New("is a tag object of another name, or of something else than a commit")
	}
	return keys.Verify(payload, signature, now)
}

func (s *store) content(kind plumbing.ObjectType, h plumbing.Hash) ([]byte, error) {
	o, err := s.storage.EncodedObject(kind, h)
	if err != nil {
		return nil, fmt.Errorf("cannot be read: %w", err)
	}
	r, err := o.Reader()
	if err != nil {
		return nil, fmt.Errorf("cannot be read: %w", err)
	}
	defer r.Close()
	return io.ReadAll(r)
}

// reverify looks anew at the signatures of the revision that was judged last: keys may have
// come, gone or expired since. What is in force stays so; what was refused is judged again.
func (s *Source) reverify() {
	if s.evaluated.IsZero() || !s.opts.Verify.on() {
		return
	}
	now := s.opts.Verify.trust(s.store, s.target, s.clock())
	if now == s.trust {
		return
	}
	s.trust = now
	s.metrics.noteTrust(s.opts.Verify, now)
	if s.evaluated != s.head {
		s.evaluated = plumbing.ZeroHash
	}
}

// shown is the state of the source: the verdict, unless what is in force would not be
// taken any more.
func (s *Source) shown() model.SourceState {
	if s.trust.problem == "" || s.evaluated != s.head {
		return s.verdict
	}
	return model.SourceState{
		Observed: s.verdict.Observed, Reason: model.SourceNotVerified, Message: s.trust.problem + "; " + s.stays(),
	}
}

// vouched decides whether the revision applied may come into force at a start, before a
// newer one is judged: it is verified, or was when it came into force as far as the folder
// remembers, or a newer one is verified that descends from it. named is set when the newer
// one does not, but says that it replaces it. Otherwise nothing begins, and the state says
// why.
func (s *Source) vouched(b *Beginning, t target, way ancestry) (vouched, named bool) {
	if s.trustApplied(b.Applied).problem == "" {
		return true, false
	}
	newer := s.opts.Verify.trust(s.store, t, s.clock())
	c, err := s.store.commit(t.commit)
	if err == nil && newer.problem == "" {
		if way.lineage == lineageDescends || way.lineage == lineageSame {
			return true, false
		}
		if s.store.replaces(c, way, b.appliedHash()) {
			return true, true
		}
		newer.problem = replacing(t.revision(), b.Applied.Revision())
	}
	if newer != s.trust {
		s.log.Warn("nothing is in force, because no revision is verified", "revision", t.revision(), "reason", newer.problem)
	}
	s.target, s.trust = t, newer
	s.verdict = model.SourceState{Observed: t.revision(), Reason: model.SourceNotVerified, Message: newer.problem + "; " + s.stays()}
	s.metrics.noteTrust(s.opts.Verify, newer)
	s.announce(s.verdict)
	return false, false
}

func (s *Source) trustApplied(a model.Applied) trust {
	if !s.opts.Verify.on() {
		return trust{}
	}
	known, remembered := s.state.verified(a)
	t := target{name: a.Revision().Name(), commit: plumbing.NewHash(a.Commit), tag: plumbing.NewHash(known.Tag)}
	if now := s.opts.Verify.trust(s.store, t, s.clock()); now.problem == "" || !remembered {
		return now
	}
	return trust{signer: known.Signer}
}

// follows reports whether a verified revision may take the place of the one in force. A
// signature does not say when, and who may push but not sign can push any commit that was
// ever signed: only one that descends from what is in force, or names it, is certainly
// newer.
func (s *Source) follows(c *object.Commit, way ancestry) bool {
	switch {
	case !s.opts.Verify.on(), s.anchor.Commit == "":
		return true
	case s.anchor.URL != s.source().URL, s.anchor.Branch != s.source().Branch:
		return true // the configuration says so, which is not theirs to push
	case s.opts.excludes(s.anchor):
		return true // so does this
	case way.lineage == lineageSame, way.lineage == lineageDescends:
		return true
	}
	return s.store.replaces(c, way, plumbing.NewHash(s.anchor.Commit))
}

// replaces reports whether a commit of the revision says that it replaces another one: what
// is older cannot name its hash.
func (s *store) replaces(c *object.Commit, way ancestry, other plumbing.Hash) bool {
	return slices.ContainsFunc(s.approvals(c, way.approved), func(token string) bool {
		return strings.HasSuffix(token, "@sha1:"+other.String())
	})
}

func replacing(revision, other model.Revision) string {
	return fmt.Sprintf("%s is signed, but does not descend from %s, and signatures do not say which is newer: "+
		"merge that one, or sign a commit with the line Ingot-Approve: %s", revision, other, other)
}

// related is what a new head is to be related to: what is in force, or was applied before.
func (s *Source) related(b *Beginning) plumbing.Hash {
	switch {
	case !s.begun:
		return b.appliedHash()
	case s.head.IsZero() && s.opts.Verify.on():
		return plumbing.NewHash(s.anchor.Commit)
	}
	return s.head
}
