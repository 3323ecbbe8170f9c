package bootsvc

import (
	"cmp"
	"net/http"
	"strconv"
	"time"

	"ingot/model"
)

// follow tells what became of a request, for people who follow the card that asks.
func (s *Server) follow(r *request, code int, took time.Duration) {
	if s.told == nil || r.judged && r.by.MAC == "" { // nothing shows a card there
		return
	}
	mac := r.by.MAC
	if !r.by.Own || code >= http.StatusBadRequest {
		mac = "" // who asks is in doubt
	}
	s.told(r.client, mac, r.event(code, took))
}

// event is what is said of a request: what kind of thing was asked for, for a path holds
// tokens, and how it was answered.
func (r *request) event(code int, took time.Duration) model.CardEvent {
	e := model.CardEvent{
		At: r.since, Protocol: model.CardHTTP, Asked: r.at.thing, From: r.client.String(), Answer: r.said, Bytes: r.w.sent, Seconds: took.Seconds(),
	}
	if r.thing != "" {
		e.Asked = r.thing
	}
	switch {
	case code == codeAborted, r.cutOff(code):
		e.Result, e.Answer = model.CardFailed, "broken off"
	case code >= http.StatusInternalServerError:
		e.Result = model.CardFailed
	case code >= http.StatusBadRequest:
		e.Result, e.Routine, e.Bytes = model.CardRefused, true, 0
		e.Answer = cmp.Or(e.Answer, http.StatusText(code))
	case r.Method == http.MethodHead:
		e.Result, e.Answer = model.CardAnswered, "its size"
	case r.said != "":
		e.Result, e.Bytes = model.CardAnswered, 0
	default:
		e.Result = model.CardServed
	}
	return e
}

// cutOff reports whether the client was sent less than it was promised.
func (r *request) cutOff(code int) bool {
	length, err := strconv.ParseInt(r.w.Header().Get("Content-Length"), 10, 64)
	return err == nil && r.Method == http.MethodGet && (code == http.StatusOK || code == http.StatusPartialContent) && r.w.sent < length
}
