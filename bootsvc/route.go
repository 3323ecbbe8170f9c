package bootsvc

import (
	"log/slog"
	"net/http"
	"strings"
)

// route is one of the paths that machines ask for.
type route struct {
	// pattern is what logs and metrics show, so no token is seen.
	pattern string
	thing   string // what is asked for there, for people
	serve   func(*Server, *request)
	first   string // the first element of the path
	least   int    // how many follow it
	most    int
}

// newRoute returns the route of a pattern, each of whose names in braces stands for one
// element.
func newRoute(pattern, thing string, serve func(*Server, *request)) *route {
	elements := elementsOf(pattern, nil)
	more := len(elements) - 1
	return &route{pattern: pattern, thing: thing, serve: serve, first: elements[0], least: more, most: more}
}

// andMore returns a route whose last name stands for n elements or more.
func (r *route) andMore(n int) *route {
	r.least, r.most = r.least-1+n, maxPath
	return r
}

func (r *route) fits(elements []string) bool {
	more := len(elements) - 1
	return elements[0] == r.first && r.least <= more && more <= r.most
}

var routes = []*route{
	newRoute("/ipxe/", "chain script", (*Server).serveChain),
	newRoute("/ipxe/{uuid}", "boot script", (*Server).serveScript),
	newRoute("/ignition/{uuid}/{token}", "Ignition", (*Server).serveIgnition),
	newRoute("/ignition/{uuid}", "Ignition", (*Server).serveNoToken),
	newRoute("/nocloud/{uuid}/{token}/{file}", "cloud-init", (*Server).serveNoCloud),
	newRoute("/install/{uuid}/{token}/{part}", "disk image", (*Server).serveInstall),
	newRoute("/image", "image layer", (*Server).serveImage),
	newRoute("/httpboot", "boot document", (*Server).serveHTTPBoot),
	newRoute("/httpboot/{image}", "image layer", (*Server).serveUKI).andMore(3),
	newRoute("/loader/{name}", "boot loader", (*Server).serveLoader),
	newRoute("/files/{path}", "file", (*Server).serveFile).andMore(1),
}

var unknownPath = &route{pattern: "other", thing: "unknown path", serve: (*Server).serveNotFound}

// maxPath bounds the length of a path in bytes.
const maxPath = 2048

// find returns the route of a path, and its elements behind the first, which it writes to
// room.
func find(path string, room []string) (*route, []string) {
	if len(path) > maxPath {
		return unknownPath, nil
	}
	elements := elementsOf(path, room)
	if len(elements) == 0 {
		return unknownPath, nil
	}
	for _, r := range routes {
		if r.fits(elements) {
			return r, elements[1:]
		}
	}
	return unknownPath, nil
}

// elementsOf returns the elements of a path, written to room. Empty ones are passed over, for firmware and
// people join URLs with one slash too many, and firmware does not follow the redirect
// that would correct it.
func elementsOf(path string, room []string) []string {
	elements := room
	for element := range strings.SplitSeq(path, "/") {
		if element != "" {
			elements = append(elements, element)
		}
	}
	return elements
}

// Handler returns the handler of all paths.
func (s *Server) Handler() http.Handler { return http.HandlerFunc(s.serve) }

// serve finds the route and handles what all have in common: methods, deadline,
// metrics and log.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	req := newRequest(w, r, s.clock(), s.stall)
	finished := false
	defer func() {
		s.done(req, finished)
		req.release()
	}()
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		req.refuse(http.StatusMethodNotAllowed, "only GET and HEAD are served here")
	} else {
		req.at.serve(s, req)
	}
	finished = true
}

// done counts and logs a request. One that did not finish was cut off by a panic
// that goes on up.
func (s *Server) done(r *request, finished bool) {
	took := s.clock().Sub(r.since)
	code := r.w.code
	if !finished {
		code = codeAborted
	}
	s.metrics.served(r.at, code, took)
	s.follow(r, code, took)
	if s.log.Enabled(r.Context(), slog.LevelDebug) {
		s.log.LogAttrs(r.Context(), slog.LevelDebug, "boot request",
			slog.String("route", r.at.pattern), slog.String("method", r.Method), slog.String("uuid", r.id),
			slog.String("client", r.client.String()), slog.String("code", codeText(code)), slog.Duration("took", took))
	}
}

func (s *Server) serveNotFound(r *request) {
	r.refuse(http.StatusNotFound, "there is nothing here; /ipxe is where a machine starts")
}
