package gitsource

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/transport"
	"github.com/prometheus/client_golang/prometheus"

	"ingot/model"
)

// Defaults of StatusOptions.
const (
	DefaultStatusBranch = "status"
	DefaultAuthorName   = "Ingot"
	DefaultAuthorEmail  = "ingot@localhost"
)

const (
	// pushAttempts is how often a push is tried against a branch that moves.
	pushAttempts = 5
	// recheckAfter is how long the server is believed to hold what it was given,
	// while there is nothing new to write.
	recheckAfter = 5 * time.Minute

	// believeFor is how long after a push the next one goes without a look at the branch.
	believeFor = time.Minute
)

// ErrRejected is returned when the server refuses the commit by a rule of its own,
// a protected branch or a hook: trying again at once is of no use.
var ErrRejected = errors.New("the server refused the status commit")

// StatusOptions configure a StatusBranch.
type StatusOptions struct {
	URL     string
	Branch  string // "" is DefaultStatusBranch; refs/remotes/… is what a clone has fetched, to be read
	Auth    Auth
	Timeout time.Duration // of one operation; 0 is DefaultTimeout

	AuthorName  string // "" is DefaultAuthorName
	AuthorEmail string // "" is DefaultAuthorEmail

	// SigningKeyFile is the key that each commit is signed with: an SSH private key or an
	// armored OpenPGP one. "" signs none. It is read anew when it changes.
	SigningKeyFile string

	// Keep is how much of the history is kept: what is older is cut off; 0 = all of it.
	Keep time.Duration

	// Dir is where the branch is unpacked while it is read; "" is the system's
	// directory for temporary files. Nothing is kept in it.
	Dir string

	// Watch is asked about each head that this process neither read by Read nor pushed: an error
	// keeps it from being overwritten. Pushing notes a push before it is sent, and returns its mark.
	// nil = neither is needed.
	Watch   func(context.Context, model.BranchHead) error
	Pushing func(context.Context, model.Mark) (model.Mark, error)

	Log        *slog.Logger
	Registerer prometheus.Registerer
	Clock      func() time.Time
}

// StatusBranch writes reports as commits. Its methods may be called concurrently;
// they wait for one another.
type StatusBranch struct {
	opts    StatusOptions
	log     *slog.Logger
	remote  *remote
	metrics *statusMetrics

	mu   sync.Mutex
	tree *statusTree
	remoteHead
	offer   offer
	asked   int      // how often it was asked
	foreign *Foreign // met and not yet reported

	last     plumbing.Hash // the commit that the newest report is in
	squashAt time.Time     // when to check next whether to cut the history

	signer    signer
	bare      refusals
	chronicle chronicle
}

// remoteHead is the branch as the server last showed it.
type remoteHead struct {
	known    bool          // whether head is what the server held when last looked at
	head     plumbing.Hash // of the branch; zero if there is no branch
	headAt   time.Time     // when head was made
	seen     lookedAt      // the newest head that was read
	accepted plumbing.Hash // the head that this process may put a commit on
	checked  time.Time     // when the server last answered
}

// Published is what came of a report.
type Published struct {
	// Commit is the branch's head, which holds the report.
	Commit string
	// New is false if the branch held it already.
	New bool
	// Files is how many files the commit changed, Bytes how much was sent.
	Files, Bytes int
	// Skipped are the documents that could not be written, with why: a name that is
	// not allowed, a value that YAML cannot hold, a size. Their files stay as they
	// were, but for one that is too large: of it the record at least is written, if
	// that is possible.
	Skipped map[string]error
	// Mark is the mark in the commit's trailers.
	Mark model.Mark
	// Bare is set when the server would not take the report, and took it without the
	// texts that people wrote.
	Bare bool
	// Foreign is the commit of somebody else that was overwritten, nil if there was
	// none.
	Foreign *Foreign
}

// Foreign is a commit on the status branch that Ingot did not write.
type Foreign struct {
	Author string // "Name <email>"
	Commit string
}

// NewStatusBranch returns a StatusBranch. It does not touch the network.
func NewStatusBranch(opts StatusOptions) (*StatusBranch, error) {
	if opts.Branch == "" {
		opts.Branch = DefaultStatusBranch
	}
	if opts.AuthorName = headerText(opts.AuthorName); opts.AuthorName == "" {
		opts.AuthorName = DefaultAuthorName
	}
	if opts.AuthorEmail = headerText(opts.AuthorEmail); opts.AuthorEmail == "" {
		opts.AuthorEmail = DefaultAuthorEmail
	}
	if opts.Timeout <= 0 {
		opts.Timeout = DefaultTimeout
	}
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	if opts.Clock == nil {
		opts.Clock = time.Now
	}
	r, err := newRemote(opts.URL, Ref{Branch: opts.Branch}, opts.Auth, opts.Timeout)
	if err != nil {
		return nil, fmt.Errorf("status branch: %w", err)
	}
	b := &StatusBranch{opts: opts, log: opts.Log, remote: r, tree: newStatusTree(), signer: signer{file: opts.SigningKeyFile}}
	if err := b.signer.read(); err != nil {
		return nil, fmt.Errorf("status branch: %w", err)
	}
	b.metrics = newStatusMetrics(opts.Registerer)
	return b, nil
}

// Close gives up kept connections.
func (b *StatusBranch) Close() { b.remote.close() }

// Publish makes the branch hold the report and nothing else, in one commit on top
// of whatever is there; it makes no commit if the branch holds it already, written by
// the same process. It fails with the error of StatusOptions.Watch, with ErrRejected, or an error that says what
// to look at.
func (b *StatusBranch) Publish(ctx context.Context, report *model.Report) (Published, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return Published{}, err
	}
	began, asked := time.Now(), b.asked
	p, err := b.publishOrBare(ctx, report, b.opts.Clock())
	switch {
	case ctx.Err() != nil:
		return Published{}, ctx.Err()
	case b.asked == asked:
		return p, err
	}
	b.metrics.duration.Observe(time.Since(began).Seconds())
	switch {
	case err != nil:
		b.metrics.pushes.WithLabelValues(string(kindOf(err))).Inc()
		return Published{}, b.postponed(fmt.Errorf("push %s: %w", b.opts.Branch, err))
	case !p.New:
		b.metrics.pushes.WithLabelValues(resultUnchanged).Inc()
	default:
		b.metrics.pushes.WithLabelValues(resultChanged).Inc()
		b.metrics.files.Add(float64(p.Files))
	}
	p.Foreign, b.foreign = b.foreign, nil
	b.last = b.head
	return p, nil
}

func (b *StatusBranch) write(ctx context.Context, report *model.Report) (Published, error) {
	changed, skipped := b.tree.update(report.Documents)
	for path, err := range skipped {
		b.log.ErrorContext(ctx, "document, or a part of it, is omitted from the status branch", "path", path, "err", err)
	}
	if b.settled(report) && b.opts.Clock().Sub(b.checked) < recheckAfter {
		return Published{Commit: b.head.String(), Mark: b.seen.says.Mark, Skipped: skipped}, nil
	}
	b.squashWhenDue(ctx)
	p, err := b.publish(ctx, report)
	if p.New {
		p.Files = changed
	}
	p.Skipped = skipped
	return p, err
}

// settled reports whether the branch, as it is known, holds the tree, and says who
// writes it.
func (b *StatusBranch) settled(report *model.Report) bool {
	shown := b.seen.says
	named := shown.Process == report.Mark.Process && shown.Fence == report.Fence && shown.Clean == report.Clean
	return named && b.known && !b.head.IsZero() && b.tree.root.hash == b.tree.root.pushed
}

// publish pushes until the branch holds the tree. Somebody else may move it at the
// same time; then it is looked at and tried again.
func (b *StatusBranch) publish(ctx context.Context, report *model.Report) (Published, error) {
	var err error
	for attempt := range pushAttempts {
		if attempt > 0 && !sleep(ctx, backoff(b.opts.URL, attempt), nil) {
			return Published{}, ctx.Err()
		}
		var p Published
		var again bool
		p, again, err = b.attempt(ctx, report)
		if err == nil || !again {
			return p, err
		}
		b.log.InfoContext(ctx, "status push is repeated", "attempt", attempt+1, "err", message(err))
	}
	return Published{}, fmt.Errorf("the branch moved or was locked %d times: %w", pushAttempts, err)
}

// backoff doubles from a tenth of a second, give or take half by name.
func backoff(name string, attempt int) time.Duration {
	h := fnv.New32a()
	fmt.Fprintf(h, "%s#%d", name, attempt)
	d := 100 * time.Millisecond << attempt
	return d/2 + time.Duration(h.Sum32()%1000)*d/1000
}

func (b *StatusBranch) attempt(ctx context.Context, report *model.Report) (p Published, again bool, err error) {
	ctx, cancel := b.remote.within(ctx)
	defer cancel()
	b.asked++
	session, err := b.remote.receiveSession(ctx)
	if err != nil {
		return Published{}, false, err
	}
	defer closeSession(session)
	can, head, err := b.lookOrBelieve(ctx, session, report)
	if err != nil {
		return Published{}, false, err
	}
	if !b.known || head != b.head {
		if err := b.learn(ctx, head); err != nil {
			return Published{}, errors.Is(err, errMoved), err
		}
	}
	if err := b.checkHead(ctx, head); err != nil {
		return Published{}, false, err
	}
	b.checked = b.opts.Clock()
	if b.settled(report) {
		return Published{Commit: b.head.String(), Mark: b.seen.says.Mark}, false, nil
	}
	return b.push(ctx, session, can, report)
}

// offer is what the server said that it can do.
type offer struct {
	can *capability.List
	at  time.Time
}

// lookOrBelieve returns what the server can do, and the branch's head. Over HTTP each request
// stands alone, and a push names the head that it expects: while ours was the last one that
// moved the branch, the server is not asked for its head first, which is half of the work.
func (b *StatusBranch) lookOrBelieve(ctx context.Context, s transport.Session, report *model.Report) (*capability.List, plumbing.Hash, error) {
	now := b.opts.Clock()
	if last := b.offer; last.can != nil && now.Sub(last.at) < recheckAfter && now.Sub(b.checked) < believeFor &&
		b.known && !b.settled(report) && b.remote.standsAlone() {
		return last.can, b.head, nil
	}
	adv, head, err := b.advertised(ctx, s)
	if err != nil {
		return nil, head, err
	}
	b.offer = offer{}
	if !head.IsZero() {
		b.offer = offer{adv.Capabilities, now}
	}
	return adv.Capabilities, head, nil
}

// advertised reads the head; a branch or repository that is empty has head zero.
func (b *StatusBranch) advertised(ctx context.Context, s transport.Session) (*packp.AdvRefs, plumbing.Hash, error) {
	adv, head, err := b.remote.advertised(ctx, s)
	switch {
	case err == nil:
	case kindOf(err) == failureEmpty:
		return packp.NewAdvRefs(), plumbing.ZeroHash, nil
	case kindOf(err) == failureBranch:
		return adv, plumbing.ZeroHash, nil
	}
	return adv, head, err
}

// learn reads what the branch holds, so that the difference can be sent.
func (b *StatusBranch) learn(ctx context.Context, head plumbing.Hash) error {
	b.known = false
	if head.IsZero() {
		b.tree.assume(nil, nil)
		b.known, b.head, b.seen = true, head, lookedAt{}
		return nil
	}
	var c *object.Commit
	var files, folders map[string]plumbing.Hash
	err := b.fetched(ctx, shallow(filterLarge), func(s *store, at plumbing.Hash) error {
		if at != head {
			return errMoved
		}
		var err error
		if c, err = s.commit(head); err != nil {
			return fmt.Errorf("read commit %s: %w", head, err)
		}
		// What cannot be read is written anew.
		files, folders = listing(s, c.TreeHash, make(map[string]error))
		return nil
	})
	if err != nil {
		return fmt.Errorf("look at the branch: %w", err)
	}
	says, err := b.headBelow(ctx, c)
	if err != nil {
		return fmt.Errorf("look for the newest commit of an Ingot: %w", err)
	}
	b.tree.assume(files, folders)
	b.known, b.head, b.seen = true, head, lookedAt{head, says}
	b.headAt = c.Committer.When
	if c.Author.Email != b.opts.AuthorEmail {
		b.foreign = &Foreign{Author: c.Author.Name + " <" + c.Author.Email + ">", Commit: head.String()}
	}
	return nil
}

// errMoved is a branch that moved while it was looked at.
var errMoved = errors.New("the branch moved meanwhile")

// noBuild asks the forge not to build what is no code, for each commit of ours.
const noBuild = "[skip ci]"

// maxBody is how many lines of what changed a commit's message has.
const maxBody = 500

// commitMessage is subject, lines and trailers of a report.
func commitMessage(r *model.Report, tree plumbing.Hash) string {
	var b strings.Builder
	subject := oneLine(r.Subject)
	if subject == "" {
		subject = "status of " + oneLine(string(r.Revision))
	}
	b.WriteString(subject + "\n\n")
	for i, line := range r.Body {
		if i == maxBody {
			fmt.Fprintf(&b, "and %d more\n", len(r.Body)-maxBody)
			break
		}
		b.WriteString(shorten(oneLine(line)) + "\n")
	}
	b.WriteString(noBuild + "\n\n" + trailersOf(r, tree))
	return b.String()
}

func oneLine(s string) string { return strings.ToValidUTF8(strings.Join(strings.Fields(s), " "), "") }
