package gitserver

import (
	"bytes"
	"crypto/sha1" //nolint:gosec // the format of packs has it
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/pktline"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/sideband"
)

// maxPack is how many bytes all objects of one pack have at most.
const maxPack = 256 << 20

type set map[plumbing.Hash]bool

// uploadRequest is a request for objects, see gitprotocol-pack(5).
type uploadRequest struct {
	wants, haves, shallows []plumbing.Hash
	depth                  int
	since                  int64 // instead of depth; 0 = unset
	filtered, noTrees      bool
	blobs                  int64 // with filtered: size of the smallest blob that is left out
	sideband               bool
}

// parseUpload reads a request. It fails on what is not supported here.
func parseUpload(body []byte, s settings) (req uploadRequest, err error) {
	scanner := pktline.NewScanner(bytes.NewReader(body))
	flushes, done := 0, false
	for scanner.Scan() {
		keyword, value, _ := strings.Cut(strings.TrimSuffix(string(scanner.Bytes()), "\n"), " ")
		if flushes == 1 != (keyword == "have" || keyword == "done") && keyword != "" || done {
			return req, errRealGit
		}
		switch keyword {
		case "":
			flushes++
		case "want":
			hash, capabilities, _ := strings.Cut(value, " ")
			if len(req.wants) > 0 && capabilities != "" || !req.accept(capabilities) {
				return req, errRealGit
			}
			req.wants, err = appendHash(req.wants, hash)
		case "have":
			req.haves, err = appendHash(req.haves, value)
		case "shallow":
			req.shallows, err = appendHash(req.shallows, value)
		case "deepen":
			req.depth, err = strconv.Atoi(value)
		case "deepen-since":
			req.since, err = strconv.ParseInt(value, 10, 64)
		case "filter":
			err = req.filter(value)
		case "done":
			done = true
		default:
			err = errRealGit
		}
		if err != nil {
			return req, err
		}
	}
	if scanner.Err() != nil || !done || flushes != 1 || len(req.wants) == 0 || req.depth < 0 || req.depth >= math.MaxInt32 ||
		req.since < 0 || req.since > 0 && req.depth > 0 || req.filtered && !s["uploadpack.allowfilter"] {
		return req, errRealGit
	}
	return req, nil
}

func appendHash(to []plumbing.Hash, hash string) ([]plumbing.Hash, error) {
	if !isHash(hash) {
		return nil, errRealGit
	}
	return append(to, plumbing.NewHash(hash)), nil
}

// accept notes the client's capabilities. It reports whether all of them are supported.
func (req *uploadRequest) accept(capabilities string) bool {
	for c := range strings.FieldsSeq(capabilities) {
		switch name, _, _ := strings.Cut(c, "="); name {
		case "side-band-64k":
			req.sideband = true
		case "ofs-delta", "thin-pack", "shallow", "deepen-since", "no-progress", "filter", "object-format", "agent":
		default:
			return false
		}
	}
	return true
}

func (req *uploadRequest) filter(spec string) (err error) {
	req.filtered, req.blobs = true, math.MaxInt64
	if limit, ok := strings.CutPrefix(spec, "blob:limit="); ok {
		req.blobs, err = strconv.ParseInt(limit, 10, 64)
		return err
	}
	switch spec {
	case "blob:none":
		req.blobs = 0
	case "tree:0":
		req.noTrees = true
	default:
		return errRealGit
	}
	return nil
}

type packed struct {
	kind    plumbing.ObjectType
	content []byte
}

// selection is the answer to an uploadRequest.
type selection struct {
	objects             *objects
	request             uploadRequest
	shallow, unshallow  []plumbing.Hash
	ack                 string
	cut                 set // commits whose parents the client does not have, or will not have
	seen                set // objects that are in the pack, or that the client has
	pack                []packed
	size                int64
	starts, edges, tags []plumbing.Hash
}

// upload returns the response to a request for objects.
func (r smart) upload(body []byte, s settings) (func(io.Writer) error, error) {
	req, err := parseUpload(body, s)
	if err != nil {
		return nil, err
	}
	if err := r.allowed(req.wants); err != nil {
		return nil, err
	}
	sel := &selection{objects: &r.objects, request: req, cut: make(set), seen: make(set), ack: "NAK\n"}
	for _, step := range []func() error{sel.start, sel.boundary, sel.choose} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return sel.write, nil
}

// allowed fails if a wanted object is neither a ref nor a commit that refs lead to.
func (r smart) allowed(wants []plumbing.Hash) error {
	refs, err := r.refs().all()
	if err != nil {
		return err
	}
	tips := make(set)
	for _, hash := range refs {
		tips[plumbing.NewHash(hash)] = true
	}
	if !slices.ContainsFunc(wants, func(h plumbing.Hash) bool { return !tips[h] }) {
		return nil
	}
	var commits []plumbing.Hash
	for tip := range tips {
		if _, target, err := r.objects.peel(tip); err == nil {
			commits = append(commits, target)
		}
	}
	reached, err := r.objects.reach(commits, nil, nil)
	if err != nil || slices.ContainsFunc(wants, func(h plumbing.Hash) bool { return !tips[h] && !reached[h] }) {
		return errRealGit
	}
	return nil
}

// reach returns all commits that some lead to, without the parents of those in cut, and
// without those in not and all behind them.
func (o *objects) reach(from []plumbing.Hash, cut, not set) (set, error) {
	reached := make(set)
	for queue := slices.Clone(from); len(queue) > 0; {
		h := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		if reached[h] || not[h] {
			continue
		}
		c, err := o.commit(h)
		if err != nil {
			return nil, err
		}
		reached[h] = true
		if !cut[h] {
			queue = append(queue, c.ParentHashes...)
		}
	}
	return reached, nil
}

// start finds the wanted commits, and those that the client has. As in git, unknown ones
// are skipped.
func (sel *selection) start() error {
	for _, h := range sel.request.wants {
		tags, commit, err := sel.objects.peel(h)
		if err != nil {
			return err
		}
		sel.tags, sel.starts = append(sel.tags, tags...), append(sel.starts, commit)
	}
	for _, h := range sel.request.haves {
		if !sel.objects.has(h) {
			continue
		}
		if sel.ack == "NAK\n" {
			sel.ack = fmt.Sprintf("ACK %s\n", h)
		}
		sel.edges = append(sel.edges, h)
	}
	for _, h := range sel.request.shallows {
		if sel.objects.has(h) {
			sel.cut[h] = true
		}
	}
	return nil
}

// boundary decides where the client's history ends from now on.
func (sel *selection) boundary() (err error) {
	var inside, border set
	switch req := sel.request; {
	case req.depth > 0:
		inside, border, err = sel.byDepth(req.depth)
	case req.since > 0:
		inside, border, err = sel.bySince(req.since)
	}
	if err != nil {
		return err
	}
	for h := range sel.cut {
		if !inside[h] {
			continue
		}
		c, err := sel.objects.commit(h)
		if err != nil {
			return err
		}
		// The client has this commit, and nothing behind it.
		sel.unshallow, sel.edges = append(sel.unshallow, h), append(sel.edges, h)
		sel.starts = append(sel.starts, c.ParentHashes...)
	}
	for h := range border {
		if !sel.cut[h] && !inside[h] {
			sel.shallow = append(sel.shallow, h)
		}
	}
	for _, h := range sel.shallow {
		sel.cut[h] = true
	}
	plumbing.HashesSort(sel.shallow)
	plumbing.HashesSort(sel.unshallow)
	return nil
}

// byDepth returns the commits nearer to the wanted ones than depth, and those at it.
func (sel *selection) byDepth(depth int) (inside, border set, err error) {
	inside, border = make(set), make(set)
	level := sel.starts
	for d := 1; len(level) > 0; d++ {
		var next []plumbing.Hash
		for _, h := range level {
			switch {
			case inside[h] || border[h]:
			case d >= depth:
				border[h] = true
			default:
				c, err := sel.objects.commit(h)
				if err != nil {
					return nil, nil, err
				}
				inside[h] = true
				next = append(next, c.ParentHashes...)
			}
		}
		level = next
	}
	return inside, border, nil
}

// bySince returns the commits since a time that newer ones lead to. Those with a parent
// that is not among them are the border.
func (sel *selection) bySince(since int64) (inside, border set, err error) {
	young := make(map[plumbing.Hash]*object.Commit)
	for queue := slices.Clone(sel.starts); len(queue) > 0; queue = queue[1:] {
		if young[queue[0]] != nil {
			continue
		}
		c, err := sel.objects.commit(queue[0])
		if err != nil {
			return nil, nil, err
		}
		if c.Committer.When.Unix() >= since {
			young[c.Hash] = c
			queue = append(queue, c.ParentHashes...)
		}
	}
	if len(young) == 0 {
		return nil, nil, errRealGit // it refuses the request
	}
	inside, border = make(set), make(set)
	for h, c := range young {
		if slices.ContainsFunc(c.ParentHashes, func(p plumbing.Hash) bool { return young[p] == nil }) {
			border[h] = true
		} else {
			inside[h] = true
		}
	}
	return inside, border, nil
}

// choose reads the objects that the client lacks.
func (sel *selection) choose() error {
	had, err := sel.objects.reach(sel.edges, sel.cut, nil)
	if err != nil {
		return err
	}
	fresh, err := sel.objects.reach(sel.starts, sel.cut, had)
	if err != nil {
		return err
	}
	edges := slices.Clone(sel.edges)
	for h := range fresh {
		c, err := sel.objects.commit(h)
		if err != nil {
			return err
		}
		for _, p := range c.ParentHashes {
			if had[p] {
				edges = append(edges, p)
			}
		}
	}
	for _, h := range edges {
		if err := sel.trees(h, sel.skip); err != nil {
			return err
		}
	}
	for _, h := range slices.Concat(sel.tags, slices.Collect(maps.Keys(fresh))) {
		if err := sel.add(h); err != nil {
			return err
		}
	}
	for h := range fresh {
		if err := sel.trees(h, sel.add); err != nil {
			return err
		}
	}
	return nil
}

func (sel *selection) trees(commit plumbing.Hash, visit func(plumbing.Hash) error) error {
	if sel.request.noTrees {
		return nil
	}
	c, err := sel.objects.commit(commit)
	if err != nil {
		return err
	}
	return sel.tree(c.TreeHash, visit)
}

func (sel *selection) tree(tree plumbing.Hash, visit func(plumbing.Hash) error) error {
	if sel.seen[tree] {
		return nil
	}
	if err := visit(tree); err != nil {
		return err
	}
	entries, err := sel.objects.tree(tree)
	for _, e := range entries {
		switch {
		case err != nil:
			return err
		case e.mode == modeSubmodule || sel.seen[e.hash]:
		case e.mode == modeTree:
			err = sel.tree(e.hash, visit)
		default:
			err = visit(e.hash)
		}
	}
	return err
}

// skip notes an object that the client has.
func (sel *selection) skip(h plumbing.Hash) error {
	sel.seen[h] = true
	return nil
}

// add puts an object into the pack unless it is filtered.
func (sel *selection) add(h plumbing.Hash) error {
	if sel.seen[h] {
		return nil
	}
	sel.seen[h] = true
	if sel.request.filtered {
		kind, size, err := sel.objects.header(h)
		if err != nil || kind == plumbing.BlobObject && size >= sel.request.blobs {
			return err
		}
	}
	kind, content, err := sel.objects.read(h)
	if err != nil {
		return err
	}
	if sel.size += int64(len(content)); sel.size > maxPack {
		return errTooLarge
	}
	sel.pack = append(sel.pack, packed{kind, content})
	return nil
}

func (sel *selection) write(w io.Writer) error {
	e := pktline.NewEncoder(w)
	var err error
	for _, h := range sel.shallow {
		err = errors.Join(err, e.Encodef("shallow %s", h))
	}
	for _, h := range sel.unshallow {
		err = errors.Join(err, e.Encodef("unshallow %s", h))
	}
	if sel.request.depth > 0 || sel.request.since > 0 {
		err = errors.Join(err, e.Flush())
	}
	if err = errors.Join(err, e.EncodeString(sel.ack)); err != nil {
		return err
	}
	if !sel.request.sideband {
		return writePack(w, sel.pack)
	}
	return errors.Join(writePack(channel{sideband.NewMuxer(sideband.Sideband64k, w)}, sel.pack), e.Flush())
}

// channel splits data as the Muxer of go-git should, whose limit is more than a pkt-line
// can hold.
type channel struct{ *sideband.Muxer }

// Write implements io.Writer.
func (c channel) Write(p []byte) (n int, err error) {
	for part := range slices.Chunk(p, pktline.MaxPayloadSize-1) {
		if _, err := c.Muxer.Write(part); err != nil {
			return n, err
		}
		n += len(part)
	}
	return n, nil
}

// writePack writes a pack without deltas, see gitformat-pack(5).
func writePack(w io.Writer, pack []packed) error {
	sum := sha1.New() //nolint:gosec // the format has it
	var b bytes.Buffer
	b.WriteString("PACK")
	b.Write(binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, 2), uint32(len(pack)))) //nolint:gosec // at most maxPack
	send := func() error {
		sum.Write(b.Bytes())
		_, err := w.Write(b.Bytes())
		b.Reset()
		return err
	}
	for _, p := range pack {
		size := len(p.content)
		first := byte(p.kind)<<4 | byte(size&0xf) //nolint:gosec // four bits
		for size >>= 4; size > 0; size >>= 7 {
			b.WriteByte(first | 0x80)
			first = byte(size & 0x7f) //nolint:gosec // seven bits
		}
		b.WriteByte(first)
		if err := deflate(&b, p.content); err != nil {
			return err
		}
		if b.Len() > 1<<20 {
			if err := send(); err != nil {
				return err
			}
		}
	}
	if err := send(); err != nil {
		return err
	}
	_, err := w.Write(sum.Sum(nil))
	return err
}
