package gitsource

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/sideband"
	"github.com/go-git/go-git/v5/plumbing/transport"
	"github.com/go-git/go-git/v5/storage"
)

// Depths of fetches, in commits. Every fetch is shallow and tells the server the
// whole shallow boundary, which makes any two depths mix well: it is fetching
// with a depth and then without that loses commits.
const (
	// fetchDepth reaches back over the merges between two polls. With less than
	// the new commits and one more, a server does not see what we have and sends
	// the whole tree again.
	fetchDepth = 20
	// searchDepth is how far back the revision in force is looked for when it is
	// not among the newest commits.
	searchDepth = 1000
	// commitDepth is how far back it is looked for after that, by commits alone, and
	// wholeDepth where the server gives none without its files.
	commitDepth = 50_000
	wholeDepth  = 5000
)

// wanted is what to fetch: commits and depth-1 generations behind them, less what have
// leads to. A filter leaves out files or folders, see git rev-list --filter.
type wanted struct {
	commits []plumbing.Hash
	have    []plumbing.Hash
	depth   int
	since   time.Time // instead of a depth: the commits made since then; zero = the depth counts
	filter  packp.Filter
}

// fetchWanted brings what is wanted into st, without what is too large to be read.
func fetchWanted(ctx context.Context, s transport.UploadPackSession, adv *packp.AdvRefs, st *store, w wanted) error {
	req, err := uploadRequest(adv, st.storage, w)
	if err != nil {
		return err
	}
	res, err := s.UploadPack(ctx, req)
	if errors.Is(err, transport.ErrEmptyUploadPackRequest) {
		return nil
	}
	if err != nil {
		return err
	}
	// The boundary is written before the objects: a boundary too many costs bytes,
	// one too few lets the server believe that we have what lies behind it.
	if err := moveBoundary(st.storage, res.Shallows, res.Unshallows); err != nil {
		return errors.Join(err, res.Close())
	}
	left, err := unpack(ctx, st.dir, &st.storage.ObjectStorage, &limited{in: demuxed(req.Capabilities, res), left: maxPack})
	if errors.Is(err, packfile.ErrEmptyPackfile) {
		err = nil
	}
	return errors.Join(err, st.leaveOut(left), res.Close())
}

func uploadRequest(adv *packp.AdvRefs, st storage.Storer, w wanted) (*packp.UploadPackRequest, error) {
	req := packp.NewUploadPackRequestFromCapabilities(adv.Capabilities)
	if !adv.Capabilities.Supports(capability.Shallow) {
		return nil, errors.New("the server cannot fetch a part of the history (it lacks the capability shallow)")
	}
	if err := req.Capabilities.Set(capability.Shallow); err != nil {
		return nil, err
	}
	if adv.Capabilities.Supports(capability.NoProgress) {
		if err := req.Capabilities.Set(capability.NoProgress); err != nil {
			return nil, err
		}
	}
	var err error
	if req.Shallows, err = st.Shallow(); err != nil {
		return nil, fmt.Errorf("read shallow boundary: %w", err)
	}
	if w.filter != "" {
		if err := req.Capabilities.Set(capability.Filter); err != nil {
			return nil, err
		}
		req.Filter = w.filter
	}
	req.Depth = packp.DepthCommits(w.depth)
	if !w.since.IsZero() {
		if !adv.Capabilities.Supports(capability.DeepenSince) {
			return nil, errors.New("the server cannot fetch the commits since a date (it lacks the capability deepen-since)")
		}
		if err := req.Capabilities.Set(capability.DeepenSince); err != nil {
			return nil, err
		}
		req.Depth = packp.DepthSince(w.since)
	}
	req.Wants = w.commits
	req.Haves = w.have
	return req, nil
}

// moveBoundary notes where the history that we hold ends now.
func moveBoundary(st storage.Storer, add, remove []plumbing.Hash) error {
	if len(add)+len(remove) == 0 {
		return nil
	}
	old, err := st.Shallow()
	if err != nil {
		return fmt.Errorf("read shallow boundary: %w", err)
	}
	boundary := make(map[plumbing.Hash]bool)
	for _, h := range slices.Concat(old, add) {
		boundary[h] = true
	}
	for _, h := range remove {
		delete(boundary, h)
	}
	list := make([]plumbing.Hash, 0, len(boundary))
	for h := range boundary {
		list = append(list, h)
	}
	plumbing.HashesSort(list)
	if err := st.SetShallow(list); err != nil {
		return fmt.Errorf("write shallow boundary: %w", err)
	}
	return nil
}

// demuxed takes the pack out of the channels that the server sends it in.
func demuxed(agreed *capability.List, in io.Reader) io.Reader {
	switch {
	case agreed.Supports(capability.Sideband64k):
		return sideband.NewDemuxer(sideband.Sideband64k, in)
	case agreed.Supports(capability.Sideband):
		return sideband.NewDemuxer(sideband.Sideband, in)
	}
	return in
}
