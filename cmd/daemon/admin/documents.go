package admin

import (
	"bufio"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"

	"ingot/model"
	"ingot/reconcile/report"
)

// Index numbers the documents of a fleet, and remembers which of them changed. It is safe for
// concurrent use.
type Index struct {
	fleet   Fleet
	process string // distinguishes generations of this process from those of others

	mu         sync.Mutex // guards the fields below
	docs       *report.Documents
	generation uint64     // 0 before the first documents
	history    [][]change // of the newest generations, oldest first
}

// maxHistory is how many generations a client may miss without loading everything again, and
// maxChanges how many changes one of them may have for that.
const (
	maxHistory = 64
	maxChanges = 500
)

type change struct {
	Path string `json:"path"`           // on the status branch: servers/s1.yaml
	ETag string `json:"etag,omitempty"` // of the document in the API, empty if it is gone
}

// NewIndex returns the index of a fleet.
func NewIndex(fleet Fleet) *Index { return &Index{fleet: fleet, process: rand.Text()[:8]} }

// Now returns the newest documents and their generation.
func (x *Index) Now() (*report.Documents, uint64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	now := x.fleet.Documents()
	if now == x.docs {
		return now, x.generation
	}
	x.history = append(x.history, changesOf(x.docs, now))
	if len(x.history) > maxHistory {
		x.history = slices.Delete(x.history, 0, 1)
	}
	x.docs = now
	x.generation++
	return now, x.generation
}

// since returns the changes from one generation to another, each document once; false if they are
// too many, or unknown.
func (x *Index) since(from, to uint64) ([]change, bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	first := x.generation - uint64(len(x.history)) // before the oldest of the history
	if from < max(first, 1) || from > to || to > x.generation {
		return nil, false
	}
	newest := make(map[string]int)
	all := []change{}
	for _, changes := range x.history[from-first : to-first] {
		if changes == nil {
			return nil, false
		}
		for _, c := range changes {
			if at, met := newest[c.Path]; met {
				all[at] = c
				continue
			}
			newest[c.Path] = len(all)
			all = append(all, c)
		}
	}
	return all, len(all) <= maxChanges
}

// changesOf compares two sets of documents; nil stands for too many changes.
func changesOf(was, now *report.Documents) []change {
	if was == nil {
		return nil
	}
	all := []change{}
	for _, f := range report.Folders() {
		before := make(map[string]*report.Document, len(was.List(f)))
		for _, d := range was.List(f) {
			before[d.Name()] = d
		}
		for _, d := range now.List(f) {
			if before[d.Name()] != d {
				all = append(all, change{d.Path(), etagOf(d)})
			}
			delete(before, d.Name())
			if len(all) > maxChanges {
				return nil
			}
		}
		for _, d := range was.List(f) {
			if before[d.Name()] != nil {
				all = append(all, change{Path: d.Path()})
			}
		}
	}
	if was.Fleet != now.Fleet {
		all = append(all, change{model.ReportFleet, etagOf(now.Fleet)})
	}
	return all
}

// etagOf is the ETag of one document in the API.
func etagOf(doc any) string {
	data, err := json.MarshalIndent(doc, "", "  ")
	if err != nil {
		return "" // the API answers with the error
	}
	return tagOf(data)
}

func (x *Index) tag(generation uint64) string {
	return `"` + x.process + "-" + strconv.FormatUint(generation, 10) + `"`
}

// serveDocuments serves the fleet, the lists of documents, and each document by its name.
func (h *handler) serveDocuments(mux *http.ServeMux, x *Index) {
	mux.HandleFunc("GET /api/v1/fleet", func(w http.ResponseWriter, r *http.Request) {
		docs, _ := x.Now()
		h.answer(w, r, docs.Fleet)
	})
	for _, f := range report.Folders() {
		mux.HandleFunc("GET /api/v1/"+string(f), func(w http.ResponseWriter, r *http.Request) { h.list(w, r, x, f) })
		mux.HandleFunc("GET /api/v1/"+string(f)+"/{name...}", func(w http.ResponseWriter, r *http.Request) {
			docs, _ := x.Now()
			doc, err := docs.Find(f, r.PathValue("name"))
			switch {
			case errors.Is(err, report.ErrUnknownObject):
				writeText(w, http.StatusNotFound, err.Error()+"\n")
			case err != nil:
				writeText(w, http.StatusBadRequest, err.Error()+"\n")
			default:
				h.answer(w, r, doc)
			}
		})
	}
}

func (h *handler) list(w http.ResponseWriter, r *http.Request, x *Index, f report.Folder) {
	selects, err := selection(r.URL.RawQuery)
	if err != nil {
		writeText(w, http.StatusBadRequest, err.Error()+"\n")
		return
	}
	docs, generation := x.Now()
	if unchanged(w, r, x.tag(generation)) {
		return
	}
	writeList(h, w, docs.List(f), selects)
}

// maxQuery is how long a query may be, in bytes.
const maxQuery = 4 << 10

func selection(query string) (selects func(*report.Document) bool, err error) {
	if len(query) > maxQuery {
		return nil, fmt.Errorf("the query has %d bytes: at most %d are read", len(query), maxQuery)
	}
	values, err := url.ParseQuery(query)
	if err != nil {
		return nil, fmt.Errorf("read the query: %w", err)
	}
	for key := range values {
		if key != "labelSelector" && key != "q" {
			return nil, fmt.Errorf("unknown parameter %q: use labelSelector (rack=7,!gpu) or q (a part of a name, label or address)", key[:min(len(key), 64)])
		}
	}
	labels, err := model.ParseLabelSelector(strings.Join(values["labelSelector"], ","))
	if err != nil {
		return nil, fmt.Errorf("labelSelector: %w", err)
	}
	part := values.Get("q")
	return func(d *report.Document) bool {
		return labels.Matches(d.Metadata.Labels) && (part == "" || d.Matches(part))
	}, nil
}

// serveRows serves a list that is not on the status branch, because only this process knows it.
func serveRows[R any](h *handler, mux *http.ServeMux, name string, rows func() []R) {
	mux.HandleFunc("GET /api/v1/"+name, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.RawQuery != "" {
			writeText(w, http.StatusBadRequest, name+" have no parameters: select with jq\n")
			return
		}
		w.Header().Set("Cache-Control", "no-store")
		writeList(h, w, rows(), func(R) bool { return true })
	})
}

// writeList writes the selected entries as JSON, one a line: {"items": […]}.
func writeList[E any](h *handler, w http.ResponseWriter, all []E, selects func(E) bool) {
	w.Header().Set("Content-Type", "application/json")
	b := bufio.NewWriterSize(w, 64<<10)
	separator := "{\"items\": [\n"
	for _, e := range all {
		if !selects(e) {
			continue
		}
		data, err := json.Marshal(e)
		if err != nil {
			h.log.Error("list not encoded as JSON", "err", err)
			return // the client sees that the list is not complete
		}
		_, _ = b.WriteString(separator)
		_, _ = b.Write(data)
		separator = ",\n"
	}
	if separator == ",\n" {
		separator = ""
	}
	_, _ = b.WriteString(separator + "\n]}\n")
	_ = b.Flush() // the client may be gone
}
