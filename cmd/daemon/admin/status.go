package admin

import (
	"bytes"
	"encoding/json"
	"net/http"
	"sync"

	"ingot/reconcile/report"
	"ingot/reconcile/report/query"
)

// status answers GET /api/v1/status.
func (h *handler) status(w http.ResponseWriter, r *http.Request) {
	rows := h.fleet.Rows()
	if rows.Generation == 0 {
		h.answer(w, r, "", h.fleet.Summary().WithLists())
		return
	}
	if unchanged(w, r, h.etagOf(rows.Generation)) {
		return
	}
	body, err := h.statusBody.of(rows)
	if err != nil {
		h.log.Error("status cannot be written as JSON", "err", err)
		http.Error(w, "internal error", http.StatusInternalServerError)
		return
	}
	h.answerJSON(w, body)
}

// statusBody keeps the summary of a fleet as JSON. Of a fleet in which little changed little
// is written out anew: what an object says is kept for as long as its row is the same.
type statusBody struct {
	mu         sync.Mutex // guards what is below
	generation uint64
	body       []byte
	parts      map[any][]byte // of objects, by their rows
}

// of returns the summary of rows. It is shared: nobody changes it.
func (s *statusBody) of(rows *query.Rows) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.body != nil && s.generation == rows.Generation {
		return s.body, nil
	}
	w := statusWriter{old: s.parts, parts: make(map[any][]byte, len(s.parts))}
	w.buf.Grow(len(s.body) + len(s.body)/16)
	if err := w.write(rows); err != nil {
		return nil, err
	}
	s.generation, s.body, s.parts = rows.Generation, w.buf.Bytes(), w.parts
	return s.body, nil
}

// statusWriter writes a summary as json.MarshalIndent does.
type statusWriter struct {
	buf        bytes.Buffer
	old, parts map[any][]byte
}

func (s *statusWriter) write(rows *query.Rows) error {
	var head report.Summary
	if rows.Revision != nil {
		head.Add(rows.Revision)
	}
	if rows.ProblemsDocument != nil {
		head.Add(rows.ProblemsDocument)
	}
	lists := head.WithLists()
	data, err := json.MarshalIndent(lists, "", "  ")
	if err != nil {
		return err
	}
	for _, list := range []struct {
		key   string
		write func() error
	}{
		{"servers", func() error { return writeParts(s, rows.Servers, query.Servers.Common) }},
		{"claims", func() error { return writeParts(s, rows.Claims, query.Claims.Common) }},
		{"bmcs", func() error { return writeParts(s, rows.BMCs, query.BMCs.Common) }},
	} {
		before, after, _ := bytes.Cut(data, []byte("\n  \""+list.key+"\": []"))
		s.buf.Write(before)
		s.buf.WriteString("\n  \"" + list.key + "\": ")
		if err := list.write(); err != nil {
			return err
		}
		data = after
	}
	s.buf.Write(data)
	s.buf.WriteByte('\n')
	return nil
}

// writeParts writes a list.
func writeParts[R comparable](s *statusWriter, rows []R, common func(R) *query.Common) error {
	if len(rows) == 0 {
		s.buf.WriteString("[]")
		return nil
	}
	s.buf.WriteByte('[')
	for i, row := range rows {
		part, kept := s.old[row]
		if !kept {
			var err error
			if part, err = partOf(common(row).Document()); err != nil {
				return err
			}
		}
		s.parts[row] = part
		if i > 0 {
			s.buf.WriteByte(',')
		}
		s.buf.WriteString("\n    ")
		s.buf.Write(part)
	}
	s.buf.WriteString("\n  ]")
	return nil
}

// partOf is what the summary says of one object.
func partOf(d *report.Document) ([]byte, error) {
	var s report.Summary
	s.Add(d)
	var part any
	switch {
	case len(s.Servers) > 0:
		part = s.Servers[0]
	case len(s.Claims) > 0:
		part = s.Claims[0]
	case len(s.BMCs) > 0:
		part = s.BMCs[0]
	}
	return json.MarshalIndent(part, "    ", "  ")
}
