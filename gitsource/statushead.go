package gitsource

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
	"sigs.k8s.io/yaml"

	"ingot/model"
)

// Trailers of a status commit, in lower case.
const (
	lineTrailer       = "line"
	deploymentTrailer = "deployment"
	processTrailer    = "process"
	sequenceTrailer   = "sequence"
	pushTrailer       = "push"
	continuesTrailer  = "continues"
	treeTrailer       = "tree"
	cleanTrailer      = "clean"
	fenceTrailer      = "fence"
)

const (
	// maxNumber is the highest valid number of a trailer: not every store can count beyond it.
	maxNumber = 1<<53 - 1
	// maxHolderText bounds what is taken of a writer's ID and host, in bytes.
	maxHolderText = 253
)

// trailersOf returns the trailers of a status commit with this tree.
func trailersOf(r *model.Report, tree plumbing.Hash) string {
	text := fmt.Sprintf("Revision: %s\nFence: %d\n", oneLine(string(r.Revision)), r.Fence)
	if r.Mark == (model.Mark{}) {
		return text
	}
	text += fmt.Sprintf("Line: %s\nDeployment: %s\nProcess: %s\nSequence: %d\nPush: %s\nContinues: %d\nTree: %s\n",
		clipped(r.Mark.Line), clipped(r.Mark.Deployment), clipped(r.Mark.Process), r.Mark.Sequence, clipped(r.Mark.Push), r.Continues, tree)
	if r.Clean {
		text += "Clean: true\n"
	}
	return text
}

// headOf reads the trailers of a commit, false if no Ingot made it. The tree of a
// commit that a person changed is not the one that its trailers name.
func headOf(c *object.Commit) (model.BranchHead, bool) {
	trailers := Trailers(c.Message)
	last := func(key string) string {
		if values := trailers[key]; len(values) > 0 {
			return clipped(values[len(values)-1])
		}
		return ""
	}
	number := func(key string) uint64 {
		n, err := strconv.ParseUint(last(key), 10, 64)
		if err != nil || n > maxNumber {
			return 0
		}
		return n
	}
	h := model.BranchHead{
		Kind: model.HeadOurs,
		Mark: model.Mark{
			Line: last(lineTrailer), Deployment: last(deploymentTrailer), Process: last(processTrailer), Sequence: number(sequenceTrailer),
			Push: last(pushTrailer),
		},
		Continues: number(continuesTrailer), Fence: number(fenceTrailer),
		Clean: last(cleanTrailer) == "true", At: c.Committer.When, Intact: last(treeTrailer) == c.TreeHash.String(),
	}
	h.Writer.ID = h.Process
	if h.Line == "" || h.Deployment == "" || h.Process == "" || h.Sequence == 0 {
		return model.BranchHead{Kind: model.HeadForeign}, false
	}
	return h, true
}

// newestHead finds the newest commit of an Ingot at or below head, as far as commits are there;
// nil if there is none.
func (s *store) newestHead(head plumbing.Hash) (*object.Commit, model.BranchHead) {
	for range fetchDepth {
		c, err := s.commit(head)
		if err != nil {
			break
		}
		if h, ours := headOf(c); ours {
			return c, h
		}
		if len(c.ParentHashes) == 0 {
			break
		}
		head = c.ParentHashes[0]
	}
	return nil, model.BranchHead{Kind: model.HeadForeign}
}

// headBelow is what the newest commit of an Ingot says, c being the branch's head.
func (b *StatusBranch) headBelow(ctx context.Context, c *object.Commit) (h model.BranchHead, err error) {
	h, ours := headOf(c)
	if ours {
		return h, nil
	}
	err = b.fetched(ctx, fetchPlan{depth: fetchDepth, filter: filterTrees}, func(s *store, at plumbing.Hash) error {
		if at != c.Hash {
			return errMoved
		}
		_, h = s.newestHead(at)
		return nil
	})
	return h, err
}

// writerIn reads the writer from fleet.yaml, as far as it can be read.
func writerIn(content []byte) model.Holder {
	var doc struct {
		Holder model.Holder `json:"holder"`
	}
	if yaml.Unmarshal(content, &doc) != nil {
		return model.Holder{}
	}
	w := doc.Holder
	for _, text := range []*string{&w.ID, &w.Host, &w.Machine, &w.Boot, &w.Namespace} {
		*text = clipped(*text)
	}
	return w
}

func clipped(text string) string {
	text = oneLine(text[:min(len(text), 4*maxHolderText)])
	return headerText(text[:min(len(text), maxHolderText)])
}

// lookedAt is a head of the branch, and the newest commit of an Ingot at or below it.
type lookedAt struct {
	head plumbing.Hash
	says model.BranchHead
}

// Look sees who writes the branch now, and has StatusOptions.Watch check a head that is not known.
// It is one request for the list of refs, and more only when there is something new.
func (b *StatusBranch) Look(ctx context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	ctx, cancel := b.remote.within(ctx)
	defer cancel()
	head, err := b.look(ctx)
	if err != nil {
		return b.postponed(fmt.Errorf("look at branch %s: %w", b.opts.Branch, err))
	}
	b.known = b.known && head == b.head
	return b.checkHead(ctx, head)
}

func (b *StatusBranch) look(ctx context.Context) (plumbing.Hash, error) {
	session, err := b.remote.uploadSession(ctx)
	if err != nil {
		return plumbing.ZeroHash, err
	}
	defer closeSession(session)
	adv, head, err := b.advertised(ctx, session)
	switch {
	case err != nil:
		return plumbing.ZeroHash, err
	case head.IsZero():
		b.seen = lookedAt{}
		return head, nil
	case head == b.seen.head:
		return head, nil
	}
	var c *object.Commit
	err = b.unpacked(ctx, session, adv, shallow(filterTrees), []plumbing.Hash{head}, func(s *store) (err error) {
		c, err = s.commit(head)
		return err
	})
	if err != nil {
		return plumbing.ZeroHash, fmt.Errorf("read commit %s: %w", head, err)
	}
	says, err := b.headBelow(ctx, c)
	if err != nil {
		return plumbing.ZeroHash, err
	}
	b.seen = lookedAt{head, says}
	return head, nil
}

// checkHead has the owner of the branch decide whether it goes on with a head that it neither pushed
// nor read. b.seen is of the head.
func (b *StatusBranch) checkHead(ctx context.Context, head plumbing.Hash) error {
	if head == b.accepted || b.opts.Watch == nil {
		return nil
	}
	if err := b.opts.Watch(ctx, b.seen.says); err != nil {
		return &failure{failureFenced, err}
	}
	b.accepted = head
	return nil
}

// errBelow is a head that no Ingot made.
var errBelow = errors.New("the newest commit is not an Ingot's")
