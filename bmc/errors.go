package bmc

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode"

	"github.com/stmcginnis/gofish/schemas"
)

// What can go wrong, for those who decide what to do next. Errors of this package
// wrap at most one of these, found with errors.Is.
var (
	// ErrUnauthorized: the BMC refuses the credentials, or the account may not do this.
	ErrUnauthorized = errors.New("the BMC refuses the credentials; check its BMCSecret and the account's role")
	// ErrCircuitOpen: these credentials were refused a short while ago and are not
	// tried again until they change, so that the account is not locked.
	ErrCircuitOpen = errors.New("not tried: these credentials were refused; correct the BMCSecret")
	// ErrRefusedForNow: the BMC refuses the credentials that it accepted before, or did a short while ago.
	ErrRefusedForNow = errors.New("the BMC refuses the credentials that it accepted before: it is starting, or its account is locked")
	// ErrUnreachable: no answer, or none that is HTTP.
	ErrUnreachable = errors.New("the BMC does not answer")
	// ErrBusy: the BMC asks to come back later; see RetryAfter.
	ErrBusy = errors.New("the BMC is busy")
	// ErrSessionsFull is an ErrBusy: each session of the BMC is in use, and it does not accept HTTP Basic.
	ErrSessionsFull = fmt.Errorf("%w: each of its sessions is in use", ErrBusy)
	// ErrUpdating is an ErrBusy: a firmware update is in progress.
	ErrUpdating = fmt.Errorf("%w: a firmware update is in progress", ErrBusy)
	// ErrPasswordChange: the BMC accepts the password, and nothing else before it is changed.
	ErrPasswordChange = errors.New("the BMC demands a new password first")
	// ErrReadOnly: the account may read, and not change this.
	ErrReadOnly = errors.New("the account may not change this")
	// ErrTLS and ErrCertificate are ErrUnreachable: TLS failed, or the certificate is not accepted.
	ErrTLS         = fmt.Errorf("%w by TLS", ErrUnreachable)
	ErrCertificate = fmt.Errorf("%w with a certificate that is accepted", ErrUnreachable)
	// ErrUnsupported: the machine has no such thing.
	ErrUnsupported = errors.New("not supported by the BMC")
	// ErrNotRedfish is an ErrUnsupported: something else answers.
	ErrNotRedfish = fmt.Errorf("%w: no Redfish service answers", ErrUnsupported)
	// ErrNoNetworkBoot is an ErrUnsupported: the machine cannot be set to boot from the network.
	ErrNoNetworkBoot = fmt.Errorf("%w: one-time boot from the network", ErrUnsupported)
	// ErrPowerOnRefused: the BMC refused to power the machine on, or accepted that and then failed.
	ErrPowerOnRefused = errors.New("the BMC did not power the machine on")
	// ErrOverrideNotKept: the BMC took the boot override, every way of writing it
	// that is known, and then showed something else.
	ErrOverrideNotKept = errors.New("the BMC does not keep the boot override")
	// ErrSettingNotKept: the BMC refuses a setting of the machine, or took it and then
	// showed something else.
	ErrSettingNotKept = errors.New("the BMC does not keep the setting")
	// ErrBootOptionUnknown: a boot order names what the machine has not, or has twice.
	ErrBootOptionUnknown = errors.New("the boot order cannot be set")
	// ErrCertificateChanged: the BMC shows another certificate than the pinned one.
	ErrCertificateChanged = errors.New("the BMC's certificate has changed")
	// ErrNotAllowed: BMCs do not have such an address, says Options.Networks; nothing was
	// sent there.
	ErrNotAllowed = errors.New("the address is not allowed")
	// ErrHalfAnswer: what came with 200 is no resource, or a collection that lacks members.
	ErrHalfAnswer = errors.New("the BMC answers, but not with what was asked for")
	// ErrOtherMachine: another machine is there than the one that is meant. Nothing was
	// done to it.
	ErrOtherMachine = errors.New("the BMC shows another machine")
	// ErrNoIdentity: the BMC no longer says which machine is there. Nothing was done to it.
	ErrNoIdentity = errors.New("the BMC does not say which machine it shows")
	// ErrOtherPower: the machine is in another power state than the request is for. It was
	// not made.
	ErrOtherPower = errors.New("the machine's power has changed")
	// ErrNotFound: the BMC knows no such resource.
	ErrNotFound = errors.New("the BMC knows no such resource")
)

// An Error is a request to a BMC that failed.
type Error struct {
	BMC        string
	Method     string
	URI        string
	Status     int           // of the answer; 0 = there was none
	RetryAfter time.Duration // that the BMC asked for; 0 = it did not
	MessageIDs []string      // of the answer's messages (DSP0266 §8.6)
	Detail     string        // what the BMC or the network said
	Kind       error         // one of the sentinels, or nil
	Err        error         // what it came from, or nil
}

// Error implements error. It never holds a password or a token, and nothing that
// differs when the same fails again, for it is kept where changes are recorded.
func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "bmc %s: %s %s", e.BMC, e.Method, e.URI)
	if e.Status != 0 {
		fmt.Fprintf(&b, ": %d %s", e.Status, http.StatusText(e.Status))
	}
	if e.Kind != nil {
		fmt.Fprintf(&b, ": %v", e.Kind)
	}
	if e.Detail != "" {
		fmt.Fprintf(&b, ": %s", e.Detail)
	}
	return b.String()
}

// Unwrap returns the sentinel and the cause.
func (e *Error) Unwrap() []error {
	var errs []error
	for _, err := range []error{e.Kind, e.Err} {
		if err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}

// RetryAfter returns how long the BMC asked to be left alone, and whether it did.
func RetryAfter(err error) (time.Duration, bool) {
	if e := asError(err); e != nil && e.RetryAfter > 0 {
		return e.RetryAfter, true
	}
	return 0, false
}

// says reports whether one of the answer's message identifiers ends in one of
// keys, whatever registry and version it comes from: Base.1.8.ResourceInUse.
func (e *Error) says(keys ...string) bool {
	for _, id := range e.MessageIDs {
		for _, key := range keys {
			if strings.HasSuffix(id, key) {
				return true
			}
		}
	}
	return false
}

// statusOf returns the HTTP status of the answer that err comes from, or 0.
func statusOf(err error) int {
	if e := asError(err); e != nil {
		return e.Status
	}
	return 0
}

// noAnswer says why there was no answer. ctx is the caller's.
func (c *sender) noAnswer(ctx context.Context, method, uri string, err error) error {
	if ours := asError(err); ours != nil { // from transport: a login that failed, or none tried
		return ours
	}
	if outer, ok := errors.AsType[*url.Error](err); ok {
		err = outer.Err // its text repeats method and address
	}
	if op, ok := errors.AsType[*net.OpError](err); ok {
		same := *op
		same.Source = nil // our own port is another each time
		err = &same
	}
	e := &Error{BMC: c.name, Method: method, URI: uri, Detail: c.scrub(err.Error())}
	refused, notPermitted := errors.AsType[*notPermitted](err)
	elsewhere, notAllowed := errors.AsType[*notAllowed](err)
	switch {
	case notAllowed:
		e.Kind, e.Detail = ErrNotAllowed, elsewhere.Error()
	case notPermitted:
		e.Detail, e.Err = "not sent: "+c.scrub(refused.Error()), refused
	case errors.Is(err, ErrCertificateChanged):
		e.Err = err // its text says so and holds both fingerprints
	case errors.Is(err, errForeignRedirect):
		e.Kind = ErrNotRedfish
	case errors.Is(ctx.Err(), context.Canceled):
		e.Err = context.Canceled
	case ctx.Err() != nil:
		e.Kind, e.Err = ErrUnreachable, ctx.Err()
	case errors.Is(err, context.DeadlineExceeded): // not the caller's deadline, so not its error
		e.Kind, e.Err, e.Detail = ErrUnreachable, errTooSlow, fmt.Sprintf("no answer within %s", c.opts.Timeout)
	default:
		e.Kind = kindOfHandshake(err)
		if _, named := errors.AsType[x509.HostnameError](err); named {
			e.Detail += "; write the name that it is for as spec.hostname of the BMC"
		}
	}
	return e
}

// kindOfHandshake returns ErrTLS or ErrCertificate if a handshake failed for that reason, else ErrUnreachable.
func kindOfHandshake(err error) error {
	_, noTLS := errors.AsType[tls.RecordHeaderError](err)
	_, alert := errors.AsType[tls.AlertError](err)
	_, unknown := errors.AsType[x509.UnknownAuthorityError](err)
	_, named := errors.AsType[x509.HostnameError](err)
	_, invalid := errors.AsType[x509.CertificateInvalidError](err)
	switch {
	case unknown || named || invalid:
		return ErrCertificate
	case noTLS || alert || errors.Is(err, http.ErrSchemeMismatch) || strings.Contains(err.Error(), "tls: "):
		return ErrTLS
	}
	return ErrUnreachable
}

// errTooSlow: one request was given up, though its caller would have waited for longer.
var errTooSlow = errors.New("no answer in time")

// refusal turns an answer that is no success into an error.
func (c *sender) refusal(method, uri string, a *answer) *Error {
	e := &Error{BMC: c.name, Method: method, URI: uri, Status: a.status, RetryAfter: c.retryAfter(a.header)}
	ids, text := messages(a.status, a.body)
	e.MessageIDs, e.Detail = ids, c.detail(text)
	switch a.status {
	case http.StatusUnauthorized, http.StatusForbidden:
		e.Kind = ErrUnauthorized
	case http.StatusNotFound, http.StatusGone:
		e.Kind = ErrNotFound
	case http.StatusMethodNotAllowed, http.StatusNotImplemented:
		e.Kind = ErrUnsupported
	case http.StatusConflict, http.StatusServiceUnavailable, http.StatusTooManyRequests, http.StatusLocked:
		e.Kind = ErrBusy
	case http.StatusBadGateway, http.StatusGatewayTimeout:
		e.Kind = ErrUnreachable
	case http.StatusOK:
		e.Kind = ErrHalfAnswer
	}
	e.Kind = e.special()
	return e
}

// maxDetail bounds what of an answer's text goes into an error, in bytes.
const maxDetail = 300

// maxMessages bounds the message identifiers that are kept of an answer.
const maxMessages = 64

// messages returns the message identifiers and the text of an error answer, as the BMC wrote
// it. An answer without Redfish messages gives its own text.
func messages(status int, body []byte) (ids []string, text string) {
	body = oneToMany(body)
	e, ok := errors.AsType[*schemas.Error](schemas.ConstructError(status, body))
	if !ok {
		return nil, ""
	}
	text = e.Message
	if e.Code != "" {
		ids = append(ids, clip(e.Code))
	}
	for _, m := range e.ExtendedInfos[:min(len(e.ExtendedInfos), maxMessages)] {
		ids = append(ids, clip(m.MessageID))
		if m.Message != "" && m.Message != e.Message && len(text) < maxDetail {
			text = strings.TrimSpace(text + " " + m.Message)
		}
	}
	return ids, text
}

// halfAnswer is the error for an answer that says less than it should.
func (c *sender) halfAnswer(uri, detail string) error {
	return &Error{BMC: c.name, Method: http.MethodGet, URI: uri, Kind: ErrHalfAnswer, Detail: detail}
}

// isObject reports whether an answer looks like a resource, which is a JSON object
// (DSP0266 §9.1).
func isObject(body []byte) bool {
	body = bytes.TrimLeft(body, " \t\r\n\ufeff")
	return len(body) > 0 && body[0] == '{'
}

// isHTML reports whether an answer is a page for people, such as a login page.
func isHTML(body []byte) bool {
	return bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n\ufeff"), []byte("<"))
}

// isError reports whether an answer is an error (DSP0266 §8.6), whatever its status.
// Some BMCs serve errors with 200 while they start.
func isError(body []byte) bool {
	if !bytes.Contains(body, []byte(`"error"`)) { // or each large answer would be read twice
		return false
	}
	var answer map[string]json.RawMessage
	if json.Unmarshal(body, &answer) != nil {
		return false
	}
	var e struct {
		Code, Message *string
		Info          json.RawMessage `json:"@Message.ExtendedInfo"`
	}
	return isObject(answer["error"]) && json.Unmarshal(answer["error"], &e) == nil &&
		(e.Code != nil || e.Message != nil || e.Info != nil)
}

// oneToMany makes a list of an error's @Message.ExtendedInfo that is one object,
// as an iDRAC 8 sends it, for gofish does not read it otherwise.
func oneToMany(body []byte) []byte {
	var odd struct {
		Error struct {
			Code    string          `json:"code"`
			Message string          `json:"message"`
			Info    json.RawMessage `json:"@Message.ExtendedInfo"`
		} `json:"error"`
	}
	if json.Unmarshal(body, &odd) != nil || len(odd.Error.Info) == 0 || odd.Error.Info[0] != '{' {
		return body
	}
	odd.Error.Info = append(append([]byte{'['}, odd.Error.Info...), ']')
	repaired, err := json.Marshal(odd)
	if err != nil {
		return body
	}
	return repaired
}

// printable returns s on one line, in at most limit bytes.
func printable(s string, limit int) string {
	if len(s) > 4*limit {
		s = s[:4*limit]
	}
	s = strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, strings.ToValidUTF8(s, " "))), " ")
	if len(s) > limit {
		s = strings.ToValidUTF8(s[:limit], "") + "…"
	}
	return s
}

// detail returns a text as it goes into an error. What must not be seen is taken out before the
// text is cut, because a secret that is cut is no longer found.
func (c *sender) detail(s string) string { return printable(c.scrub(s), maxDetail) }

// scrub takes out of a text what must not be seen: some BMCs repeat in an error
// what they were sent.
func (c *sender) scrub(s string) string {
	secrets := []string{c.target.Password.Reveal()}
	if a := c.auth.Load(); a != nil {
		secrets = append(secrets, a.token)
	}
	for _, secret := range secrets {
		if len(secret) > 3 {
			s = strings.ReplaceAll(s, secret, "[redacted]")
		}
	}
	return s
}
