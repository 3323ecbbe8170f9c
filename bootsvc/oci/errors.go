package oci

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"ingot/bootsvc/internal/syntax"
	"ingot/model"
)

// Error says why an image cannot be used.
type Error struct {
	Ref     string // as the person wrote it
	Reason  model.Reason
	Message string // for a person
	Err     error  // what lies beneath, or nil
}

// Error implements error.
func (e *Error) Error() string {
	if e.Ref == "" {
		return e.Message
	}
	return fmt.Sprintf("image %s: %s", e.Ref, e.Message)
}

// Unwrap returns what lies beneath.
func (e *Error) Unwrap() error { return e.Err }

// invalid returns an Error for an image that is there but cannot be booted.
func invalid(format string, args ...any) *Error {
	return &Error{Reason: model.ReasonValidationFailed, Message: fmt.Sprintf(format, args...)}
}

// statusError is an answer of a registry that is not what was asked for.
type statusError struct {
	code  int           // 0 = not shown
	kind  string        // the registry's own word for it, or ""
	words string        // its own message, or ""
	plain bool          // it was asked without TLS
	away  time.Duration // it asks for no request for this time
}

// Error implements error.
func (e *statusError) Error() string {
	if e.code == 0 {
		return "the registry answered " + e.kind
	}
	text := fmt.Sprintf("the registry answered %d %s", e.code, http.StatusText(e.code))
	if e.kind != "" {
		text += " (" + e.kind + ")"
	}
	text = strings.TrimSuffix(text, " ")
	if e.words != "" {
		text += fmt.Sprintf(", %q", e.words)
	}
	if e.away > 0 {
		text += fmt.Sprintf(", retry after %s", e.away.Round(time.Second))
	}
	return text
}

// explain turns what went wrong with ref into an Error for people. URLs are
// left out: those that registries redirect to may carry signatures.
func (i *Images) explain(ref string, err error) *Error {
	var known *Error
	var answer *statusError
	e := &Error{Err: err}
	switch {
	case errors.As(err, &known):
		e.Reason, e.Message = known.Reason, err.Error()
	case errors.As(err, &answer):
		e.Reason, e.Message = answer.explain()
	case errors.Is(err, context.DeadlineExceeded):
		e.Reason, e.Message = model.ReasonRegistryUnreachable, fmt.Sprintf("the registry did not answer within %s", i.timeout)
	default:
		e = unreachable("the registry", err)
	}
	e.Ref = syntax.Printable(ref)
	return e
}

func (e *statusError) explain() (reason, message string) {
	switch e.code {
	case http.StatusUnauthorized, http.StatusForbidden:
		if e.words != "" {
			return model.ReasonUnauthorized, fmt.Sprintf("%v; check boot.credentialsFile, and that the image exists", e)
		}
		return model.ReasonUnauthorized, fmt.Sprintf("%v: the image does not exist, or the credentials are missing or wrong", e)
	case http.StatusTooManyRequests:
		return model.ReasonRegistryUnreachable, fmt.Sprintf("%v; credentials in boot.credentialsFile may have a higher limit, a registry of your own has none", e)
	case http.StatusNotFound:
		return model.ReasonNotFound, "the registry has no such repository, tag or digest"
	case http.StatusBadRequest:
		if e.plain {
			return model.ReasonRegistryUnreachable, fmt.Sprintf("%v: it was asked without TLS; if it wants TLS, list it in boot.registries without plain: true", e)
		}
	}
	return model.ReasonRegistryUnreachable, e.Error()
}

// unreachable says for people why who could not be asked.
func unreachable(who string, err error) *Error {
	var link *url.Error
	var unknown *net.DNSError
	e := &Error{Reason: model.ReasonRegistryUnreachable, Err: err}
	switch {
	case errors.As(err, &unknown) && unknown.IsNotFound:
		e.Message = fmt.Sprintf("%s: there is no host %s (DNS); check its spelling, and the resolver of this machine", who, syntax.Printable(unknown.Name))
	case errors.As(err, &unknown):
		e.Message = fmt.Sprintf("%s: the DNS server does not answer for %s; check the resolver of this machine", who, syntax.Printable(unknown.Name))
	case errors.Is(err, syscall.ECONNREFUSED):
		e.Message = who + " refuses connections: nothing listens at that port; check host and port, and that it runs"
	case errors.Is(err, errForbiddenAddress):
		e.Reason, e.Message = model.ReasonRegistryNotAllowed, who+": "+errForbiddenAddress.Error()
	case errors.Is(err, errInside):
		e.Reason, e.Message = model.ReasonRegistryNotAllowed, who+": "+errInside.Error()
	case errors.Is(err, http.ErrSchemeMismatch):
		e.Message = who + " answers without TLS: list it in boot.registries with plain: true, if the network on the way to it can be trusted"
	case isCertificate(err):
		e.Message = who + " has a certificate that is not trusted (" + withoutURLs(err) + "); add its authority to boot.caFile"
	case errors.As(err, &link):
		e.Message = who + " cannot be reached: " + withoutURLs(link.Err)
	default:
		e.Message = who + " cannot be used: " + withoutURLs(err)
	}
	return e
}

func isCertificate(err error) bool {
	_, is := errors.AsType[*tls.CertificateVerificationError](err)
	return is
}

var urls = regexp.MustCompile(`[A-Za-z][A-Za-z0-9+.-]*://[^\s"]+`)

// withoutURLs returns an error's text for people.
func withoutURLs(err error) string {
	return syntax.Printable(urls.ReplaceAllString(err.Error(), "(a URL)"))
}

// What a registry answers is told to the author of the claim. A registry that only a claim
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
// give.
func isRegistry(h http.Header, body []byte) bool {
	return h.Get("Docker-Distribution-Api-Version") != "" || hasKind(body)
}

func hasKind(body []byte) bool {
	kind, _ := registryError(body)
	return kind != ""
}

// named reports whether the configuration names a registry, or the folder of a layout.
func (i *Images) named(r model.ImageReference) bool {
	return i.egress.open || r.Layout != "" || slices.Contains(i.egress.named, r.Registry)
}

// told is what of an error the author of a reference is told. The log has all of it.
func (i *Images) told(ref string, e *Error) *Error {
	r, err := model.ParseImageReference(ref)
	if err != nil || i.named(r) {
		return e
	}
	q := quiet(e)
	if q != e {
		i.log.Warn("image not resolved; boot.registries does not list its registry, so the claim shows less", "image", e.Ref, "err", e)
	}
	return q
}

// quiet is what may be told of a registry that the configuration does not name.
func quiet(e *Error) *Error {
	var asked *askError
	var answer *statusError
	var login *loginError
	q := &Error{Ref: e.Ref, Err: e.Err}
	switch {
	case e.Reason == model.ReasonRegistryNotAllowed || !errors.As(e.Err, &asked):
		return e
	case errors.As(e.Err, &answer) && answer.kind != "":
		bare := *answer
		bare.code, bare.words = 0, ""
		q.Reason, _ = answer.explain()
		q.Message = bare.Error()
	case errors.As(e.Err, &login) && login.registry:
		q.Reason = model.ReasonUnauthorized
		q.Message = "the registry asks for credentials, and there are none that it takes"
	default:
		q.Reason = model.ReasonRegistryUnreachable
		q.Message = "no registry answered"
	}
	q.Message += "; Ingot's log says more"
	return q
}
