package gitsource

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
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

// Limits of the status branch as it is read.
const (
	maxStatusFiles = 200_000
	maxStatusFile  = 1 << 20 // bytes
	maxStatusTotal = 1 << 30 // bytes
)

const (
	// pushAttempts is how often a push is tried against a branch that moves.
	pushAttempts = 5
	// recheckAfter is how long the server is believed to hold what it was given,
	// while there is nothing new to write.
	recheckAfter = 5 * time.Minute
)

// ErrFenced is returned when the status branch was written by somebody with a
// higher fencing number: another Ingot has taken over.
var ErrFenced = errors.New("the status branch is written by somebody with a newer fencing number")

// ErrRejected is returned when the server refuses the commit by a rule of its own,
// a protected branch or a hook: trying again at once is of no use.
var ErrRejected = errors.New("the server refused the status commit")

// StatusOptions configure a StatusBranch.
type StatusOptions struct {
	URL     string
	Branch  string // "" is DefaultStatusBranch
	Auth    Auth
	Timeout time.Duration // of one operation; 0 is DefaultTimeout

	AuthorName  string // "" is DefaultAuthorName
	AuthorEmail string // "" is DefaultAuthorEmail

	// Dir is where the branch is unpacked while it is read; "" is the system's
	// directory for temporary files. Nothing is kept in it.
	Dir string

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

	mu      sync.Mutex
	tree    *statusTree
	known   bool          // whether head is what the server held when last looked at
	head    plumbing.Hash // of the branch; zero if there is no branch
	fence   uint64        // the highest that is known to have written the branch
	checked time.Time     // when the server was last heard of
	foreign *Foreign      // met and not yet reported
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
	// not allowed, a value that YAML cannot hold. Their files stay as they were.
	Skipped map[string]error
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
	r, err := newRemote(opts.URL, opts.Branch, opts.Auth, opts.Timeout)
	if err != nil {
		return nil, fmt.Errorf("status branch: %w", err)
	}
	return &StatusBranch{
		opts: opts, log: opts.Log, remote: r, metrics: newStatusMetrics(opts.Registerer), tree: newStatusTree(),
	}, nil
}

// Close gives up kept connections.
func (b *StatusBranch) Close() { b.remote.close() }

// Publish makes the branch hold the report and nothing else, in one commit on top
// of whatever is there; it makes no commit if the branch holds it already. It
// fails with ErrFenced or ErrRejected, or an error that says what to look at.
func (b *StatusBranch) Publish(ctx context.Context, report *model.Report) (Published, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return Published{}, err
	}
	changed, skipped := b.tree.update(report.Documents)
	for path, err := range skipped {
		b.log.ErrorContext(ctx, "document is left out of the status branch", "path", path, "err", err)
	}
	if b.settled() && b.opts.Clock().Sub(b.checked) < recheckAfter {
		return Published{Commit: b.head.String(), Skipped: skipped}, nil
	}
	began := time.Now()
	p, err := b.publish(ctx, report)
	if ctx.Err() != nil {
		return Published{}, ctx.Err()
	}
	b.metrics.duration.Observe(time.Since(began).Seconds())
	switch {
	case err != nil:
		b.metrics.pushes.WithLabelValues(string(kindOf(err))).Inc()
		return Published{}, fmt.Errorf("push %s: %w", b.opts.Branch, err)
	case !p.New:
		b.metrics.pushes.WithLabelValues(resultUnchanged).Inc()
	default:
		p.Files = changed
		b.metrics.pushes.WithLabelValues(resultChanged).Inc()
		b.metrics.files.Add(float64(changed))
	}
	p.Foreign, b.foreign = b.foreign, nil
	p.Skipped = skipped
	return p, nil
}

// settled reports whether the branch, as it is known, holds the tree.
func (b *StatusBranch) settled() bool {
	return b.known && !b.head.IsZero() && b.tree.root.hash == b.tree.root.pushed
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

// attempt makes one push. again is set if the branch was not as expected.
func (b *StatusBranch) attempt(ctx context.Context, report *model.Report) (p Published, again bool, err error) {
	ctx, cancel := b.remote.within(ctx)
	defer cancel()
	session, err := b.remote.receiveSession(ctx)
	if err != nil {
		return Published{}, false, err
	}
	defer closeSession(session)
	adv, head, err := b.advertised(ctx, session)
	if err != nil {
		return Published{}, false, err
	}
	if !b.known || head != b.head {
		if err := b.learn(ctx, head); err != nil {
			return Published{}, errors.Is(err, errMoved), err
		}
	}
	if b.fence > report.Fence {
		return Published{}, false, &failure{failureFenced, fmt.Errorf("%w: %d there, %d here", ErrFenced, b.fence, report.Fence)}
	}
	b.checked = b.opts.Clock()
	if b.settled() {
		return Published{Commit: b.head.String()}, false, nil
	}
	return b.push(ctx, session, adv, report)
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

// push sends what the server lacks, and makes it move the branch if that is where
// we believe it to be.
func (b *StatusBranch) push(ctx context.Context, s transport.ReceivePackSession, adv *packp.AdvRefs, report *model.Report) (p Published, again bool, err error) {
	pack := newPackWriter()
	content := encodeCommit(b.tree.root.hash, b.head, signature{b.opts.AuthorName, b.opts.AuthorEmail}, b.opts.Clock(), commitMessage(report))
	commit := hashObject("commit", content)
	pack.add(packCommit, content)
	if err := b.tree.pack(pack, !adv.Capabilities.Supports("no-thin")); err != nil {
		return Published{}, false, err
	}
	packed := pack.bytes()
	said, err := b.send(ctx, s, adv, commit, packed)
	if err != nil {
		return b.refused(ctx, commit, said, err)
	}
	b.landed(commit, report.Fence)
	return Published{Commit: commit.String(), New: true, Bytes: len(packed)}, false, nil
}

// landed notes that the branch holds the tree in commit.
func (b *StatusBranch) landed(commit plumbing.Hash, fence uint64) {
	b.tree.acknowledge()
	b.known, b.head, b.fence, b.checked = true, commit, fence, b.opts.Clock()
}

// send returns what the server said beside its verdict.
func (b *StatusBranch) send(ctx context.Context, s transport.ReceivePackSession, adv *packp.AdvRefs, commit plumbing.Hash, pack []byte) (string, error) {
	req := packp.NewReferenceUpdateRequestFromCapabilities(adv.Capabilities)
	var said excerpt
	if adv.Capabilities.Supports(capability.Sideband64k) {
		if err := req.Capabilities.Set(capability.Sideband64k); err != nil {
			return "", err
		}
		req.Progress = &said
	}
	req.Commands = []*packp.Command{{Name: b.remote.ref(), Old: b.head, New: commit}}
	req.Packfile = io.NopCloser(bytes.NewReader(pack))
	status, err := s.ReceivePack(ctx, req)
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
	switch kindOf(why) {
	case failureAuth, failureHostKey, failureTLS, failureNetwork, failureBusy, failureRepository:
		// The next attempt looks at the branch anew, and knows our commit by its
		// author and tree if it got there.
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
	case head != b.head, strings.Contains(err.Error(), "lock"), strings.Contains(err.Error(), "failed to update ref"):
		return Published{}, true, why
	}
	text := message(err)
	if said != "" {
		text += ": " + said
	}
	if strings.Contains(text, "unpack") || strings.Contains(text, "missing") {
		b.tree.assume(nil, nil) // the server lacks objects that it is believed to hold
	}
	return Published{}, false, &failure{failureRejected, fmt.Errorf("%w: %s", ErrRejected, shorten(text))}
}

// learn reads what the branch holds, so that the difference can be sent.
func (b *StatusBranch) learn(ctx context.Context, head plumbing.Hash) error {
	b.known = false
	if head.IsZero() {
		b.tree.assume(nil, nil)
		b.known, b.head = true, head
		return nil
	}
	var c *object.Commit
	var files, folders map[string]plumbing.Hash
	err := b.fetched(ctx, func(s *store, at plumbing.Hash) error {
		if at != head {
			return errMoved
		}
		var err error
		if c, err = s.commit(head); err != nil {
			return fmt.Errorf("read commit %s: %w", head, err)
		}
		files, folders, err = listing(s, c.TreeHash)
		return err
	})
	if err != nil {
		return fmt.Errorf("look at the branch: %w", err)
	}
	b.tree.assume(files, folders)
	b.known, b.head, b.fence = true, head, fenceOf(c.Message)
	if c.Author.Email != b.opts.AuthorEmail {
		b.foreign = &Foreign{Author: c.Author.Name + " <" + c.Author.Email + ">", Commit: head.String()}
		b.log.WarnContext(ctx, "status branch was written by somebody else", "author", b.foreign.Author, "revision", b.foreign.Commit)
	}
	return nil
}

// errMoved is a branch that moved while it was looked at.
var errMoved = errors.New("the branch moved meanwhile")

func fenceOf(commitMessage string) uint64 {
	var highest uint64
	for _, v := range Trailers(commitMessage)[fenceTrailer] {
		if n, err := strconv.ParseUint(v, 10, 64); err == nil {
			highest = max(highest, n)
		}
	}
	return highest
}

// Read returns the files of the branch's head by path, nil if there is no branch.
func (b *StatusBranch) Read(ctx context.Context) (map[string][]byte, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	ctx, cancel := b.remote.within(ctx)
	defer cancel()
	var out map[string][]byte
	err := b.fetched(ctx, func(s *store, head plumbing.Hash) error {
		c, err := s.commit(head)
		if err != nil {
			return fmt.Errorf("read commit %s: %w", head, err)
		}
		files, _, err := listing(s, c.TreeHash)
		if err != nil {
			return err
		}
		out, err = contents(s, files)
		return err
	})
	if kind := kindOf(err); kind == failureBranch || kind == failureEmpty {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read branch %s: %w", b.opts.Branch, err)
	}
	return out, nil
}

// fetched brings the branch's head, without its history, into a store that lasts
// as long as fn.
func (b *StatusBranch) fetched(ctx context.Context, fn func(*store, plumbing.Hash) error) error {
	if b.opts.Dir != "" {
		if err := os.MkdirAll(b.opts.Dir, 0o700); err != nil {
			return fmt.Errorf("make directory: %w", err)
		}
	}
	dir, err := os.MkdirTemp(b.opts.Dir, "status-*")
	if err != nil {
		return fmt.Errorf("make directory: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	st, err := openStore(dir)
	if err != nil {
		return err
	}
	defer st.close()
	session, err := b.remote.uploadSession(ctx)
	if err != nil {
		return err
	}
	defer closeSession(session)
	adv, head, err := b.remote.advertised(ctx, session)
	if err != nil {
		return err
	}
	if err := fetchPack(ctx, session, adv, st.storage, head, nil, 1); err != nil {
		return b.remote.explain(ctx, err)
	}
	return fn(st, head)
}

// listing returns the hash of each file and of each folder by path, the root's
// being "".
func listing(s *store, root plumbing.Hash) (files, folders map[string]plumbing.Hash, err error) {
	files, folders = make(map[string]plumbing.Hash), make(map[string]plumbing.Hash)
	var walk func(path string, tree plumbing.Hash, depth int) error
	walk = func(path string, tree plumbing.Hash, depth int) error {
		if depth > maxFolders || len(files)+len(folders) > maxStatusFiles {
			return fmt.Errorf("the branch holds more than %d files", maxStatusFiles)
		}
		folders[path] = tree
		entries, err := s.tree(tree)
		if err != nil {
			return err
		}
		for _, e := range entries {
			name := strings.TrimPrefix(path+"/"+e.Name, "/")
			switch e.Mode {
			case filemode.Dir:
				if err := walk(name, e.Hash, depth+1); err != nil {
					return err
				}
			case filemode.Regular:
				files[name] = e.Hash
			default: // not ours, and gone with the next commit
			}
		}
		return nil
	}
	if err := walk("", root, 0); err != nil {
		return nil, nil, err
	}
	return files, folders, nil
}

func contents(s *store, files map[string]plumbing.Hash) (map[string][]byte, error) {
	out := make(map[string][]byte, len(files))
	var total int64
	for path, hash := range files {
		size, err := s.size(hash)
		if err != nil {
			return nil, err
		}
		total += size
		if size > maxStatusFile || total > maxStatusTotal {
			return nil, fmt.Errorf("%s has %d bytes, or all files together more than %d: not read", path, size, maxStatusTotal)
		}
		if out[path], err = s.blob(hash); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// commitMessage is subject, lines and trailers of a report.
func commitMessage(r *model.Report) string {
	var b strings.Builder
	subject := oneLine(r.Subject)
	if subject == "" {
		subject = "status of " + string(r.Revision)
	}
	b.WriteString(subject + "\n\n")
	for _, line := range r.Body {
		b.WriteString(oneLine(line) + "\n")
	}
	if len(r.Body) > 0 {
		b.WriteString("\n")
	}
	fmt.Fprintf(&b, "Revision: %s\nFence: %d\n", oneLine(string(r.Revision)), r.Fence)
	return b.String()
}

func oneLine(s string) string { return strings.ToValidUTF8(strings.Join(strings.Fields(s), " "), "") }

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
