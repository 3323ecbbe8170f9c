package gitserver

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/plumbing/format/pktline"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/sideband"
	"github.com/go-git/go-git/v5/plumbing/storer"
)

// receive handles a push of one ref that succeeds. It leaves all others to the real git,
// which names the reason of a refusal in its own words.
func (r smart) receive(body []byte, s settings) (func(io.Writer) error, error) {
	req := packp.NewReferenceUpdateRequest()
	if err := req.Decode(bytes.NewReader(body)); err != nil {
		return nil, err
	}
	muxed, reports := false, false
	for _, c := range req.Capabilities.All() {
		switch c {
		case "side-band-64k":
			muxed = true
		case "report-status":
			reports = true
		case "ofs-delta", "quiet", "object-format", "agent", "delete-refs":
		default:
			return nil, errRealGit
		}
	}
	if len(req.Commands) != 1 || req.Shallow != nil || len(req.Options) > 0 || !reports {
		return nil, errRealGit
	}
	cmd := req.Commands[0]
	if err := r.push(cmd, req.Packfile, s); err != nil {
		return nil, err
	}
	return func(w io.Writer) error {
		var report bytes.Buffer
		e := pktline.NewEncoder(&report)
		err := errors.Join(e.Encodef("unpack ok\n"), e.Encodef("ok %s\n", cmd.Name), e.Flush())
		if !muxed {
			_, sendErr := w.Write(report.Bytes())
			return errors.Join(err, sendErr)
		}
		_, sendErr := sideband.NewMuxer(sideband.Sideband64k, w).Write(report.Bytes())
		return errors.Join(err, sendErr, pktline.NewEncoder(w).Flush())
	}, nil
}

// push stores the objects of a push and moves its ref.
func (r smart) push(cmd *packp.Command, pack io.Reader, s settings) error {
	old := strings.Trim(cmd.Old.String(), "0")
	if old != "" {
		old = cmd.Old.String()
	}
	name := cmd.Name.String()
	if cmd.New.IsZero() || r.refs().hash(name) != old || !r.refs().isPlain(name, cmd.New.String()) {
		return errRealGit
	}
	q := &quarantine{objects: &r.objects, received: make(map[plumbing.Hash]plumbing.EncodedObject)}
	if err := q.unpack(pack); err != nil {
		return err
	}
	for _, obj := range q.received {
		if err := q.checkLinks(obj); err != nil {
			return err
		}
	}
	tip, err := q.EncodedObject(plumbing.AnyObject, cmd.New)
	if err != nil || cmd.Name.IsBranch() && tip.Type() != plumbing.CommitObject {
		return errRealGit
	}
	if err := q.release(); err != nil {
		return err
	}
	if s["receive.denynonfastforwards"] && old != "" && cmd.Name.IsBranch() {
		behind, err := r.objects.reach([]plumbing.Hash{cmd.New}, nil, nil)
		if err != nil || !behind[cmd.Old] {
			return errRealGit
		}
	}
	return r.updateRef(name, old, cmd.New.String())
}

// quarantine holds the objects of a push until all of them are known to be complete. It is
// the storage that go-git unpacks into.
type quarantine struct {
	storer.EncodedObjectStorer // nil: the parser calls no other method
	objects                    *objects
	received                   map[plumbing.Hash]plumbing.EncodedObject
	size                       int64
}

// SetEncodedObject implements storer.EncodedObjectStorer.
func (q *quarantine) SetEncodedObject(obj plumbing.EncodedObject) (plumbing.Hash, error) {
	if q.size += obj.Size(); q.size > maxPack {
		return plumbing.ZeroHash, errTooLarge
	}
	q.received[obj.Hash()] = obj
	return obj.Hash(), nil
}

// EncodedObject implements storer.EncodedObjectStorer.
func (q *quarantine) EncodedObject(_ plumbing.ObjectType, h plumbing.Hash) (plumbing.EncodedObject, error) {
	if obj := q.received[h]; obj != nil {
		return obj, nil
	}
	kind, content, err := q.objects.read(h)
	if err != nil {
		return nil, plumbing.ErrObjectNotFound
	}
	obj := new(plumbing.MemoryObject)
	obj.SetType(kind)
	_, err = obj.Write(content)
	return obj, err
}

// unpack reads a pack, which may be missing.
func (q *quarantine) unpack(r io.Reader) error {
	pack, err := io.ReadAll(r)
	if err != nil || len(pack) == 0 {
		return err
	}
	scanner := packfile.NewScanner(bytes.NewReader(pack))
	_, count, err := scanner.Header()
	var size int64
	for ; err == nil && count > 0; count-- {
		var h *packfile.ObjectHeader
		if h, err = scanner.NextObjectHeader(); err != nil {
			break
		}
		if size += h.Length; h.Length > maxObject || size > maxPack {
			return errTooLarge
		}
		_, _, err = scanner.NextObject(io.Discard)
	}
	if err != nil {
		return err
	}
	parser, err := packfile.NewParserWithStorage(packfile.NewScanner(bytes.NewReader(pack)), q)
	if err != nil {
		return err
	}
	_, err = parser.Parse()
	return err
}

// checkLinks fails if an object names one that does not exist.
func (q *quarantine) checkLinks(obj plumbing.EncodedObject) error {
	var links []plumbing.Hash
	switch obj.Type() { //nolint:exhaustive // a blob has no links
	case plumbing.CommitObject:
		var c object.Commit
		if err := c.Decode(obj); err != nil {
			return err
		}
		links = append(c.ParentHashes, c.TreeHash)
	case plumbing.TagObject:
		var t object.Tag
		if err := t.Decode(obj); err != nil {
			return err
		}
		links = append(links, t.Target)
	case plumbing.TreeObject:
		content, err := contentOf(obj)
		if err != nil {
			return err
		}
		entries, err := parseTree(content)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if e.mode != modeSubmodule {
				links = append(links, e.hash)
			}
		}
	}
	for _, h := range links {
		if q.received[h] == nil && !q.objects.has(h) {
			return fmt.Errorf("object %s is missing", h)
		}
	}
	return nil
}

func (q *quarantine) release() error {
	for _, obj := range q.received {
		content, err := contentOf(obj)
		if err != nil {
			return err
		}
		if _, err := q.objects.write(obj.Type(), content); err != nil {
			return err
		}
	}
	return nil
}

func contentOf(obj plumbing.EncodedObject) ([]byte, error) {
	r, err := obj.Reader()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(r)
}
