package admin

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
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
	commits := h.fleet.CommitStatus()
	if unchanged(w, r, h.statusTag(rows.Generation, commits)) {
		return
	}
	body, err := h.statusBody.of(rows, commits)
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
	commits    *report.Trouble
	body       []byte
	servers    statusList[*query.Server]
	claims     statusList[*query.Claim]
	bmcs       statusList[*query.BMC]
}

// of returns the summary of rows, with what is wrong with commit statuses. It is shared:
// nobody changes it.
func (s *statusBody) of(rows *query.Rows, commits *report.Trouble) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.body != nil && s.generation == rows.Generation && same(s.commits, commits) {
		return s.body, nil
	}
	head, err := headOf(rows, commits)
	if err != nil {
		return nil, err
	}
	var body bytes.Buffer
	body.Grow(len(s.body) + len(s.body)/16)
	for _, list := range []struct {
		key   string
		write func() ([]byte, error)
	}{
		{"servers", func() ([]byte, error) { return s.servers.of(rows.Servers, query.Servers) }},
		{"claims", func() ([]byte, error) { return s.claims.of(rows.Claims, query.Claims) }},
		{"bmcs", func() ([]byte, error) { return s.bmcs.of(rows.BMCs, query.BMCs) }},
	} {
		text, err := list.write()
		if err != nil {
			return nil, err
		}
		before, after, _ := bytes.Cut(head, []byte("\n  \""+list.key+"\": []"))
		body.Write(before)
		body.WriteString("\n  \"" + list.key + "\": ")
		body.Write(text)
		head = after
	}
	body.Write(head)
	body.WriteByte('\n')
	s.generation, s.commits, s.body = rows.Generation, commits, body.Bytes()
	return s.body, nil
}

// same reports whether two say the same.
func same(a, b *report.Trouble) bool { return a == b || a != nil && b != nil && *a == *b }

// headOf is the summary with empty lists of objects, as json.MarshalIndent writes it.
func headOf(rows *query.Rows, commits *report.Trouble) ([]byte, error) {
	head := report.Summary{CommitStatus: commits}
	if rows.Revision != nil {
		head.Add(rows.Revision)
	}
	if rows.ProblemsDocument != nil {
		head.Add(rows.ProblemsDocument)
	}
	return json.MarshalIndent(head.WithLists(), "", "  ")
}

// statusList keeps one list of the summary.
type statusList[R comparable] struct {
	rows  []R
	parts [][]byte // what the summary says of each
	text  []byte
}

// of returns the list of rows as JSON.
func (s *statusList[R]) of(rows []R, l query.List[R]) ([]byte, error) {
	if s.text != nil && slices.Equal(s.rows, rows) {
		return s.text, nil
	}
	parts, err := s.partsOf(rows, l)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	b.Grow(len(s.text) + len(s.text)/16)
	for i, part := range parts {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString("\n    ")
		b.Write(part)
	}
	s.rows, s.parts, s.text = rows, parts, []byte("[]")
	if len(parts) > 0 {
		s.text = slices.Concat([]byte("["), b.Bytes(), []byte("\n  ]"))
	}
	return s.text, nil
}

// partsOf returns what the summary says of each row. Most rows are where they were.
func (s *statusList[R]) partsOf(rows []R, l query.List[R]) ([][]byte, error) {
	parts := make([][]byte, len(rows))
	var elsewhere map[R][]byte // made when first needed
	for i, row := range rows {
		if i < len(s.rows) && s.rows[i] == row {
			parts[i] = s.parts[i]
			continue
		}
		if elsewhere == nil {
			elsewhere = make(map[R][]byte, len(s.rows))
			for at, old := range s.rows {
				elsewhere[old] = s.parts[at]
			}
		}
		if parts[i] = elsewhere[row]; parts[i] != nil {
			continue
		}
		var err error
		if parts[i], err = partOf(l.Common(row).Document()); err != nil {
			return nil, err
		}
	}
	return parts, nil
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
