package gitsource

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/transport"

	"ingot/model"
	"ingot/model/fault"
)

// push sends what the server lacks, and makes it move the branch if that is where
// we believe it to be.
func (b *StatusBranch) push(ctx context.Context, s transport.ReceivePackSession, can *capability.List, report *model.Report) (p Published, again bool, err error) {
	pack := newPackWriter()
	report = overwriting(report, b.foreign)
	if b.opts.Pushing != nil {
		own := *report
		if own.Mark, err = b.opts.Pushing(ctx, own.Mark); err != nil {
			return Published{}, false, err
		}
		report = &own
	}
	says := commitMessage(report, b.tree.root.hash)
	content, commit, err := b.signer.commit(
		encodeCommit(b.tree.root.hash, b.head, signature{b.opts.AuthorName, b.opts.AuthorEmail}, b.opts.Clock(), says))
	if err != nil {
		return Published{}, false, &failure{failureKey, err}
	}
	pack.add(packCommit, content)
	if err := b.tree.pack(pack, !can.Supports("no-thin")); err != nil {
		return Published{}, false, err
	}
	packed := pack.bytes()
	said, err := b.send(ctx, s, can, &packp.Command{Name: b.remote.ref(), Old: b.head, New: commit}, packed)
	if err != nil {
		return b.refused(ctx, commit, said, err)
	}
	b.landed(commit, report)
	b.chronicle.note(StatusCommit{commit.String(), b.headAt.UTC(), messageLines(says)})
	return Published{Commit: commit.String(), Mark: report.Mark, New: true, Bytes: len(packed)}, false, nil
}

// overwriting has a report say whose commit it is put on top of, if that is somebody else's.
func overwriting(r *model.Report, f *Foreign) *model.Report {
	if f == nil {
		return r
	}
	own := *r
	own.Body = append([]string{"overwritten: " + f.Commit + " of " + strings.ReplaceAll(f.Author, "@", " at ")}, r.Body...)
	return &own
}

func (b *StatusBranch) landed(commit plumbing.Hash, report *model.Report) {
	b.tree.acknowledge()
	b.seen = lookedAt{commit, model.BranchHead{
		Kind: model.HeadOurs, Mark: report.Mark, Continues: report.Continues, Intact: true, Clean: report.Clean, Fence: report.Fence, Writer: report.Holder, At: b.opts.Clock(),
	}}
	b.known, b.head, b.accepted, b.checked = true, commit, commit, b.opts.Clock()
	b.headAt = b.checked
}

// send asks for one ref to be moved, and returns what the server said beside its
// verdict.
func (b *StatusBranch) send(ctx context.Context, s transport.ReceivePackSession, can *capability.List, cmd *packp.Command, pack []byte) (string, error) {
	req := packp.NewReferenceUpdateRequestFromCapabilities(can)
	var said excerpt
	if can.Supports(capability.Sideband64k) {
		if err := req.Capabilities.Set(capability.Sideband64k); err != nil {
			return "", err
		}
		req.Progress = &said
	}
	req.Commands = []*packp.Command{cmd}
	if pack != nil {
		req.Packfile = io.NopCloser(bytes.NewReader(pack))
	}
	fault.Point(fault.BeforePush)
	status, err := s.ReceivePack(ctx, req)
	fault.Point(fault.AfterPush)
	if err == nil && status != nil {
		err = status.Error()
	}
	return said.String(), err
}

// refused decides by what the branch is now what to make of a push that failed:
// the text of an error says little, and a push whose answer was lost may have
// succeeded.
func (b *StatusBranch) refused(ctx context.Context, commit plumbing.Hash, said string, err error) (Published, bool, error) {
	why := b.remote.explain(ctx, err)
	b.offer = offer{} // the next attempt looks first
	if unwell(err) {
		b.known = false
		return Published{}, false, why
	}
	switch kindOf(why) {
	case failureAuth, failureHostKey, failureTLS, failureNetwork, failureLocal, failureBusy, failureRepository:
		// The next attempt looks at the branch, and StatusOptions.Watch knows our
		// commit by its mark if it got there.
		b.known = false
		return Published{}, false, why
	default:
	}
	session, openErr := b.remote.uploadSession(ctx)
	if openErr != nil {
		b.known = false
		return Published{}, false, why
	}
	defer closeSession(session)
	_, head, lookErr := b.advertised(ctx, session)
	switch {
	case lookErr != nil:
		b.known = false
		return Published{}, false, why
	case head == commit:
		b.known = false // read back what is there
		return Published{}, true, why
	case head != b.head, locked(err):
		return Published{}, true, why
	}
	text := b.remote.tell(err.Error())
	if said != "" {
		text += ": " + b.remote.tell(said)
	}
	if strings.Contains(text, "unpack") || strings.Contains(text, "missing") {
		b.tree.assume(nil, nil) // the server lacks objects that it is believed to hold
		b.bare.until, b.bare.notBefore = time.Time{}, b.opts.Clock().Add(recheckAfter)
	}
	return Published{}, false, b.rejected(text)
}

// protectedText is how servers say that a rule protects the branch.
var protectedText = regexp.MustCompile(`(?i)\bprotected\b|not allowed to push`)

// rejected is the refusal of a push by a rule, in the words of the server.
func (b *StatusBranch) rejected(text string) error {
	if text = shorten(text); protectedText.MatchString(text) {
		text += "; exempt the account of git.auth from the protection of branch " + b.opts.Branch + ", see docs/forges.md"
	}
	return &failure{failureRejected, fmt.Errorf("%w: %s", ErrRejected, text)}
}

// unwell reports whether the server had trouble of its own, which is no verdict.
func unwell(err error) bool { return strings.Contains(err.Error(), "status code: 5") }

// lockedText is how servers say that a ref is locked. A push that is blocked, by a scanner
// for secrets for example, is none of it.
var lockedText = regexp.MustCompile(`\block(ed)?\b|failed to update ref`)

// locked reports whether somebody else was moving the ref at the same time.
func locked(err error) bool { return lockedText.MatchString(err.Error()) }

// excerpt keeps the beginning of what a server says.
type excerpt struct{ b strings.Builder }

// Write implements io.Writer.
func (e *excerpt) Write(p []byte) (int, error) {
	if room := 2*maxMessage - e.b.Len(); room > 0 {
		e.b.Write(p[:min(len(p), room)])
	}
	return len(p), nil
}

// String returns it in one line.
func (e *excerpt) String() string { return oneLine(e.b.String()) }
