package gitsource

import (
	"cmp"
	"encoding/json"
	"strconv"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
	"sigs.k8s.io/yaml"

	"ingot/model"
)

// Trailers of a status commit beside the fence, in lower case.
const (
	holderTrailer   = "holder"
	sequenceTrailer = "sequence"
)

const (
	// maxFence is the highest fencing number that is believed: what counts beyond it
	// was made up, and the next one could not be written by every store.
	maxFence = 1<<53 - 1
	// maxHolderText bounds what is taken of a holder's ID and host, in bytes.
	maxHolderText = 253
)

// writer is the Ingot that wrote a status commit: what the commit's trailers and its
// revision.yaml say of it.
type writer struct {
	fence   uint64
	holder  model.Holder
	version model.Version
}

// outranks reports whether w keeps an Ingot from writing: it has a higher fencing
// number, or the same and is another one. Of two that began with one number at the
// same time only the first to push may go on.
func (w writer) outranks(fence uint64, holder string) bool {
	return w.fence > fence || w.fence == fence && w.fence > 0 && w.holder.ID != holder
}

// name is the holder for an error.
func (w writer) name() string {
	switch {
	case w.holder.ID == "":
		return "one without a name"
	case w.holder.Host == "":
		return w.holder.ID
	}
	return w.holder.ID + " on " + w.holder.Host
}

// later returns the one of both that has the higher fencing number, w if it is the same.
func (w writer) later(other writer) writer {
	if other.fence > w.fence {
		return other
	}
	return w
}

// trailerWriter reads the trailers of a commit. One that a person made has none.
func trailerWriter(message string) writer {
	var w writer
	trailers := Trailers(message)
	for _, v := range trailers[fenceTrailer] {
		if n, err := strconv.ParseUint(v, 10, 64); err == nil && n <= maxFence {
			w.fence = max(w.fence, n)
		}
	}
	for _, v := range trailers[holderTrailer] {
		w.holder.ID = clipped(v)
	}
	for _, v := range trailers[sequenceTrailer] {
		var version model.Version
		if version.UnmarshalText([]byte(v)) == nil && version.After(w.version) {
			w.version = version
		}
	}
	return w
}

// revisionWriter reads revision.yaml. Whatever of it cannot be read is left out.
func revisionWriter(content []byte) writer {
	var doc struct {
		Fence    json.RawMessage `json:"fence"`
		Holder   json.RawMessage `json:"holder"`
		Sequence json.RawMessage `json:"sequence"`
	}
	if yaml.Unmarshal(content, &doc) != nil {
		return writer{}
	}
	var w writer
	if json.Unmarshal(doc.Fence, &w.fence) != nil || w.fence > maxFence {
		w.fence = 0
	}
	if json.Unmarshal(doc.Holder, &w.holder) != nil {
		w.holder = model.Holder{}
	}
	for _, text := range []*string{&w.holder.ID, &w.holder.Host, &w.holder.Machine, &w.holder.Boot, &w.holder.Namespace} {
		*text = clipped(*text)
	}
	if json.Unmarshal(doc.Sequence, &w.version) != nil {
		w.version = model.Version{}
	}
	return w
}

// writerOf joins what a commit's trailers and its revision.yaml say: the higher
// fencing number counts, so that a commit of a person's, which has no trailers or old
// ones, hides nothing. The trailers of a holder are its ID alone.
func writerOf(message string, revision []byte) writer {
	trailers, file := trailerWriter(message), revisionWriter(revision)
	w := trailers.later(file)
	if w.fence == file.fence && cmp.Or(w.holder.ID, file.holder.ID) == file.holder.ID {
		w.holder = file.holder
	}
	if file.version.After(w.version) {
		w.version = file.version
	}
	return w
}

func clipped(text string) string {
	text = oneLine(text[:min(len(text), 4*maxHolderText)])
	return headerText(text[:min(len(text), maxHolderText)])
}

// writerOf reads who wrote the commit c, of whose tree it knows the files.
func (s *store) writerOf(c *object.Commit, files map[string]plumbing.Hash) writer {
	var revision []byte
	if h, ok := files[model.ReportRevision]; ok {
		if size, err := s.size(h); err == nil && size <= maxStatusFile {
			revision, _ = s.blob(h) // without it the trailers count
		}
	}
	return writerOf(c.Message, revision)
}

// formerWriter returns the highest of those who wrote the ancestors of head that are
// in the store, for a head that no Ingot wrote.
func (s *store) formerWriter(head plumbing.Hash) writer {
	var w writer
	s.visit(head, func(c *object.Commit) bool {
		w = w.later(trailerWriter(c.Message))
		return true
	})
	return w
}
