package bootsvc

import (
	"log/slog"
	"net/http"
	"strings"
	"time"
)

// route is one of the paths that machines ask for.
type route struct {
	pattern string
	serve   func(*Server, *request)
}

// The routes. Patterns are what logs and metrics show, so no token is seen.
var (
	routeChain       = route{"/ipxe/", (*Server).serveChain}
	routeScript      = route{"/ipxe/{uuid}", (*Server).serveScript}
	routeIgnition    = route{"/ignition/{uuid}/{token}", (*Server).serveIgnition}
	routeNoCloud     = route{"/nocloud/{uuid}/{token}/{file}", (*Server).serveNoCloud}
	routeNoToken     = route{"/ignition/{uuid}", (*Server).serveNoToken}
	routeImage       = route{"/image", (*Server).serveImage}
	routeUKI         = route{"/httpboot/{image}", (*Server).serveUKI}
	routeHTTPBoot    = route{"/httpboot", (*Server).serveHTTPBoot}
	routeLoader      = route{"/loader/{name}", (*Server).serveLoader}
	routeUnknownPath = route{"other", (*Server).serveNotFound}

	routes = []route{
		routeChain, routeScript, routeIgnition, routeNoCloud, routeNoToken, routeImage, routeUKI, routeHTTPBoot, routeLoader, routeUnknownPath,
	}
)

// find returns the route of a path, and its elements behind the first. Empty
// elements are passed over, for firmware and people join URLs with one slash too
// many, and firmware does not follow the redirect that would mend it.
func find(path string) (route, []string) {
	if len(path) > 2048 {
		return routeUnknownPath, nil
	}
	elements := make([]string, 0, 4)
	for element := range strings.SplitSeq(path, "/") {
		if element != "" {
			elements = append(elements, element)
		}
	}
	if len(elements) == 0 {
		return routeUnknownPath, nil
	}
	args := elements[1:]
	switch {
	case elements[0] == "ipxe" && len(args) == 0:
		return routeChain, nil
	case elements[0] == "ipxe" && len(args) == 1:
		return routeScript, args
	case elements[0] == "ignition" && len(args) == 2:
		return routeIgnition, args
	case elements[0] == "ignition" && len(args) == 1:
		return routeNoToken, args
	case elements[0] == "nocloud" && len(args) == 3:
		return routeNoCloud, args
	case elements[0] == "image" && len(args) == 0:
		return routeImage, nil
	case elements[0] == "httpboot" && len(args) >= 3:
		return routeUKI, args
	case elements[0] == "httpboot" && len(args) == 0:
		return routeHTTPBoot, nil
	case elements[0] == "loader" && len(args) == 1:
		return routeLoader, args
	}
	return routeUnknownPath, nil
}

// Handler returns the handler of all paths.
func (s *Server) Handler() http.Handler { return http.HandlerFunc(s.serve) }

// serve finds the route and sees to what all have in common: methods, deadline,
// metrics and log.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	start := s.clock()
	req := newRequest(w, r, s.stall)
	finished := false
	defer func() { s.done(req, start, finished) }()
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
func (s *Server) done(r *request, start time.Time, finished bool) {
	took := s.clock().Sub(start)
	code := r.w.code
	if !finished {
		code = codeAborted
	}
	s.metrics.served(r.at, code, took)
	if s.log.Enabled(r.Context(), slog.LevelDebug) {
		s.log.LogAttrs(r.Context(), slog.LevelDebug, "boot request",
			slog.String("route", r.at.pattern), slog.String("method", r.Method), slog.String("uuid", r.id),
			slog.String("client", r.client.String()), slog.String("code", codeText(code)), slog.Duration("took", took))
	}
}

func (s *Server) serveNotFound(r *request) {
	r.refuse(http.StatusNotFound, "there is nothing here; /ipxe is where a machine starts")
}
