package bootsvc

import (
	"errors"
	"net/http"
	"slices"
)

// What a registry answers is told to who wrote the claim. A registry that only a claim
// names may be anything that Ingot can reach, and its status codes, its refused
// connections and the length of its answers would say what runs there. So of those it is
// told that they are no registry, and what registries alone say.

// askError is an error of asking a registry for something.
type askError struct{ error }

// Unwrap returns the error itself.
func (e *askError) Unwrap() error { return e.error }

// loginError is an error of logging in to a registry.
type loginError struct {
	error
	registry bool // that it is one is certain
}

// Unwrap returns the error itself.
func (e *loginError) Unwrap() error { return e.error }

// isRegistry reports whether an answer that is no success is one that registries alone
// give. It reads the body.
func isRegistry(resp *http.Response) bool {
	return resp.Header.Get("Docker-Distribution-Api-Version") != "" || errorKind(resp.Body) != ""
}

// named reports whether the configuration names a registry.
func (i *Images) named(r Reference) bool {
	return i.fence.open || slices.Contains(i.fence.named, r.Registry) || slices.Contains(i.plainHTTP, r.Registry)
}

// told is what of an error is told to who wrote a reference. The log has all of it.
func (i *Images) told(ref string, e *ImageError) *ImageError {
	r, err := ParseReference(ref)
	if err != nil || i.named(r) {
		return e
	}
	q := quiet(e)
	if q != e {
		i.log.Warn("image cannot be had from a registry that the configuration does not name", "image", e.Ref, "err", e)
	}
	return q
}

// quiet is what may be told of a registry that the configuration does not name.
func quiet(e *ImageError) *ImageError {
	var asked *askError
	var answer *statusError
	var login *loginError
	q := &ImageError{Ref: e.Ref, Err: e.Err}
	switch {
	case e.Reason == ReasonForbidden || !errors.As(e.Err, &asked):
		return e
	case errors.As(e.Err, &answer) && answer.kind != "":
		bare := *answer
		bare.code = 0
		q.Reason, _ = answer.explain()
		q.Message = bare.Error()
	case errors.As(e.Err, &login) && login.registry:
		q.Reason = ReasonUnauthorized
		q.Message = "the registry asks for credentials, and there are none that it takes"
	default:
		q.Reason = ReasonUnreachable
		q.Message = "no registry answered"
	}
	q.Message += "; Ingot's log says more"
	return q
}
