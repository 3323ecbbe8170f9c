package daemon

import (
	"net/http"
	"net/netip"
	"path"

	"ingot/bootsvc/conversation"
	"ingot/model"
	"ingot/reconcile/report"
)

// followAddress remembers what was asked from an address, of the card that evidence shows there: mac
// if that was judged already. What no evidence shows to be of a card is of none.
func (c *clients) followAddress(client netip.Addr, mac string, e model.CardEvent) {
	if mac == "" {
		mac = c.addressRulesAtOnce().Card(client)
	}
	c.cards.Add(mac, e)
}

func (c *clients) followTFTP(client netip.Addr, events []model.CardEvent) {
	mac := c.addressRulesAtOnce().Card(client)
	for _, e := range events {
		c.cards.Add(mac, e)
	}
}

// reports are what probes send, by the end of the path. What stands before it may be a token.
var reports = map[string]string{
	"register": "report", "bootstate": "boot state", "wipe": "wipe result", "wipe-progress": "wipe progress",
}

func (c *clients) followReports(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		what, known := reports[path.Base(r.URL.Path)]
		if !known {
			next.ServeHTTP(w, r)
			return
		}
		from, _ := netip.ParseAddrPort(r.RemoteAddr)
		start, s := c.clock(), &statusWriter{ResponseWriter: w, code: http.StatusOK}
		next.ServeHTTP(s, r)
		e := model.CardEvent{
			At: start, Protocol: model.CardHTTP, Asked: what, From: from.Addr().Unmap().String(), Result: model.CardServed,
			Seconds: c.clock().Sub(start).Seconds(), Bytes: max(r.ContentLength, 0),
		}
		if s.code >= http.StatusBadRequest {
			e.Result, e.Answer, e.Routine = model.CardRefused, http.StatusText(s.code), true
		}
		c.followAddress(from.Addr(), "", e)
	})
}

// statusWriter remembers the status of an answer.
type statusWriter struct {
	http.ResponseWriter
	code int
}

// WriteHeader implements http.ResponseWriter.
func (w *statusWriter) WriteHeader(code int) {
	w.code = code
	w.ResponseWriter.WriteHeader(code)
}

// Unwrap is for http.ResponseController.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Card implements admin.Fleet.
func (f *fleet) Card(mac string) (report.Card, bool) {
	d := f.daemon
	c := report.Card{MAC: mac, Server: string(d.clients.ownerOf(mac)), Since: f.since, Events: d.clients.cards.Of(mac)}
	if e, limited := conversation.Limited(c.Events, d.clock()); limited {
		c.Limited = report.LimitText(e)
	}
	c.TicketUses = f.TicketUses(model.ServerName(c.Server))
	known := len(c.Events) > 0 || c.Server != ""
	if c.Events == nil {
		c.Events = []model.CardEvent{}
	}
	return c, known
}

// TicketUses are the uses of the newest boot ticket of a server.
func (f *fleet) TicketUses(server model.ServerName) []string {
	r := f.daemon.reporter.Report()
	if r == nil {
		return nil
	}
	return report.TicketUses(r.Input.Observed.Progress[server])
}
