// Package metadata tells a bound server about itself over HTTP: its name, what its
// labels say, and the user data of its claim.
//
// A server is known by the address that its connection comes from, whatever headers
// say, so there is no secret to leak, and nothing is said to an address that is not a
// bound server's. There are three forms of the same facts: metal-operator's under
// /v1/, and those that cloud-init reads, EC2's under /latest/ and NoCloud's under
// /nocloud/.
package metadata

import (
	"encoding/json"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"ingot/model"
)

// Flavor is the value that the header Metadata-Flavor of a request to /v1/ must
// have. A browser or a proxy that was tricked into asking does not send it.
const Flavor = "IronCore Metal"

// The reserved keys of /v1/.
const (
	keyServerName = "server-name"
	keyUserData   = "user-data"
)

func reserved(key string) bool { return key == keyServerName || key == keyUserData }

// Machine is what one bound server may know of itself.
type Machine struct {
	Name     string
	UUID     string
	Metadata map[string]string
	// UserData is nil when the claim hands over none, and UserDataWrong says why what
	// it names cannot be used.
	UserData      map[string]model.Sensitive
	UserDataWrong string
}

// Machines is where servers are found.
type Machines interface {
	// At returns the bound server that has an address. A link-local one has its zone.
	At(a netip.Addr) (Machine, bool)
}

// Options are what a handler needs.
type Options struct {
	Machines   Machines
	Log        *slog.Logger          // nil = no log
	Registerer prometheus.Registerer // nil = no metrics
	Clock      func() time.Time      // nil = time.Now
}

type service struct {
	machines Machines
	tokens   tokens
	answers  *answers
	log      *slog.Logger
	clock    func() time.Time
	requests *prometheus.CounterVec // by form and code
}

// NewHandler returns the handler of all paths. It answers GET and HEAD, and PUT where
// EC2 gives tokens.
func NewHandler(o Options) http.Handler {
	s := &service{
		machines: o.Machines, tokens: newTokens(), answers: newAnswers(), log: o.Log, clock: o.Clock,
		requests: newRequests(o.Registerer),
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if s.clock == nil {
		s.clock = time.Now
	}
	return s
}

func newRequests(reg prometheus.Registerer) *prometheus.CounterVec {
	requests := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "ingot_metadata_requests_total",
		Help: "Requests to the metadata service, by form (v1, ec2, nocloud, other) and HTTP status code.",
	}, []string{"form", "code"})
	if reg != nil {
		reg.MustRegister(requests)
	}
	return requests
}

type answer struct {
	code        int
	contentType string
	body        string
	header      [2]string // a further one: its name and value; "" = none
}

const (
	typeText = "text/plain; charset=utf-8"
	typeJSON = "application/json"
)

func text(body string) answer {
	return answer{code: http.StatusOK, contentType: typeText, body: body}
}

func refuse(code int, why string) answer {
	return answer{code: code, contentType: typeText, body: why + "\n"}
}

func notFound(what string) answer { return refuse(http.StatusNotFound, "there is no "+what+" here") }

// ServeHTTP implements http.Handler.
func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	form, path := formOf(r.URL.Path)
	m, a, ok := s.asker(r, form, path)
	if ok {
		done, free := s.answers.begin(m.Name)
		if !free {
			a = busy()
		} else {
			defer done()
			a = m.answer(form, path)
		}
	}
	s.write(w, r, form, a)
}

func (s *service) write(w http.ResponseWriter, r *http.Request, form string, a answer) {
	s.requests.WithLabelValues(form, strconv.Itoa(a.code)).Inc()
	h := w.Header()
	h.Set("Content-Type", a.contentType)
	h.Set("Content-Length", strconv.Itoa(len(a.body)))
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	if name, value := a.header[0], a.header[1]; name != "" {
		h.Set(name, value)
	}
	w.WriteHeader(a.code)
	if r.Method != http.MethodHead {
		_, _ = io.WriteString(w, a.body) // a server that went away is no matter of ours
	}
}

// asker returns the server that asks, or else the answer to a request that does not get to
// see what a server is told.
func (s *service) asker(r *http.Request, form string, path []string) (m Machine, a answer, ok bool) {
	tokens := form == formEC2 && slices.Equal(path, tokenPath)
	if a, ok := admit(r, form, tokens); !ok {
		return Machine{}, a, false
	}
	client, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return Machine{}, refuse(http.StatusBadRequest, "the address of the client cannot be read"), false
	}
	from := client.Addr().Unmap()
	m, ok = s.machineAt(from)
	switch {
	case !ok:
		return Machine{}, refuse(http.StatusNotFound, "no bound server has the address that this request came from"), false
	case tokens:
		return Machine{}, s.tokens.issue(r.Header, from, s.clock()), false
	case form == formEC2 && !s.tokens.allow(r.Header, from, s.clock()):
		return Machine{}, refuse(http.StatusUnauthorized, "the token is not one of this address, or it has ended: ask for another"), false
	}
	return m, answer{}, true
}

func (m *Machine) answer(form string, path []string) answer {
	switch form {
	case formV1:
		return m.v1(path)
	case formEC2:
		return m.ec2(path)
	case formNoCloud:
		return m.noCloud(path)
	}
	return refuse(http.StatusNotFound, "there is nothing here; /v1/ is where it begins")
}

// admit says whether a request may be asked at all, by its method and headers, and
// what it is answered if not.
func admit(r *http.Request, form string, tokens bool) (answer, bool) {
	switch reads := r.Method == http.MethodGet || r.Method == http.MethodHead; {
	case tokens && r.Method != http.MethodPut:
		return notAllowed("PUT", "tokens are asked for by PUT"), false
	case !tokens && !reads:
		return notAllowed("GET, HEAD", "only GET and HEAD are served here"), false
	case form == formV1 && r.Header.Get("Metadata-Flavor") != Flavor:
		return refuse(http.StatusForbidden, "missing required header: Metadata-Flavor: "+Flavor), false
	}
	return answer{}, true
}

// notAllowed refuses a method where others are allowed.
func notAllowed(allowed, why string) answer {
	a := refuse(http.StatusMethodNotAllowed, why)
	a.header = [2]string{"Allow", allowed}
	return a
}

// machineAt returns the bound server that has an address, with its metadata,
// without the reserved keys.
func (s *service) machineAt(a netip.Addr) (Machine, bool) {
	m, ok := s.machines.At(a)
	if !ok {
		return Machine{}, false
	}
	all := maps.Clone(m.Metadata)
	maps.DeleteFunc(all, func(key, _ string) bool { return reserved(key) })
	m.Metadata = all
	if m.UserDataWrong != "" {
		s.log.Debug("user data of a server cannot be served", "server", m.Name, "reason", m.UserDataWrong)
	}
	return m, true
}

// The forms, as they stand in the metric.
const (
	formV1      = "v1"
	formEC2     = "ec2"
	formNoCloud = "nocloud"
	formOther   = "other"
)

// formOf returns the form that a path asks for and the elements behind its first.
func formOf(path string) (form string, rest []string) {
	elements := strings.FieldsFunc(path, func(r rune) bool { return r == '/' })
	if len(elements) == 0 || len(path) > 1024 {
		return formOther, nil
	}
	rest = elements[1:]
	switch elements[0] {
	case "v1":
		return formV1, rest
	case "latest", "2009-04-04", "2021-03-23":
		return formEC2, rest
	case "nocloud":
		return formNoCloud, rest
	}
	return formOther, nil
}

// v1 answers in metal-operator's form.
func (m *Machine) v1(path []string) answer {
	switch {
	case len(path) > 0 && path[0] == keyUserData:
		return m.v1UserData(path[1:])
	case len(path) == 0 && m.UserDataWrong != "":
		return m.wrongUserData()
	case len(path) == 0:
		return asJSON(m.all())
	case len(path) > 1:
		return notFound("such field")
	case path[0] == keyServerName:
		return text(m.Name)
	}
	value, ok := m.Metadata[path[0]]
	if !ok {
		return notFound("such field")
	}
	return text(value)
}

func (m *Machine) all() map[string]any {
	all := make(map[string]any, len(m.Metadata)+2)
	for key, value := range m.Metadata {
		all[key] = value
	}
	all[keyServerName] = m.Name
	if m.UserData != nil {
		all[keyUserData] = revealed(m.UserData)
	}
	return all
}

func (m *Machine) v1UserData(path []string) answer {
	switch {
	case m.UserDataWrong != "":
		return m.wrongUserData()
	case m.UserData == nil || len(path) > 1:
		return notFound("user data")
	case len(path) == 0:
		return asJSON(revealed(m.UserData))
	}
	value, ok := m.UserData[path[0]]
	if !ok {
		return notFound("such user data")
	}
	return text(value.Reveal())
}

// wrongUserData says that something is amiss, and not what: that is for the
// claim's owner, who reads it in the status.
func (m *Machine) wrongUserData() answer {
	return refuse(http.StatusInternalServerError, "the user data of this server's claim cannot be used; its status says why")
}

// ec2Fields are the fields of /latest/meta-data.
func (m *Machine) ec2Fields() map[string]string {
	fields := map[string]string{"instance-id": m.instanceID(), "hostname": m.Name, "local-hostname": m.Name}
	for key, value := range m.Metadata {
		if _, taken := fields[key]; !taken {
			fields[key] = value
		}
	}
	return fields
}

// ec2 answers in the form that cloud-init's data source Ec2 reads.
func (m *Machine) ec2(path []string) answer {
	switch {
	case len(path) == 0:
		return text("meta-data\nuser-data\n")
	case path[0] == keyUserData && len(path) == 1:
		return m.cloudUserData()
	case path[0] != "meta-data" || len(path) > 2:
		return notFound("such path")
	}
	fields := m.ec2Fields()
	if len(path) == 1 {
		return text(strings.Join(slices.Sorted(maps.Keys(fields)), "\n") + "\n")
	}
	value, ok := fields[path[1]]
	if !ok {
		return notFound("such field")
	}
	return text(value)
}

// noCloud answers in the form that cloud-init's data source NoCloud reads: each
// file is YAML, and JSON is YAML.
func (m *Machine) noCloud(path []string) answer {
	if len(path) != 1 {
		return notFound("such path")
	}
	switch path[0] {
	case "meta-data":
		return asJSON(m.ec2Fields())
	case keyUserData:
		return m.cloudUserData()
	case "vendor-data":
		return text("")
	}
	return notFound("such path")
}

// cloudUserData is what cloud-init takes as the machine's user data: the key
// user-data of what the claim hands over.
func (m *Machine) cloudUserData() answer {
	if m.UserDataWrong != "" {
		return m.wrongUserData()
	}
	value, ok := m.UserData[keyUserData]
	if !ok {
		return notFound("user data")
	}
	return answer{code: http.StatusOK, contentType: "application/octet-stream", body: value.Reveal()}
}

// instanceID is another for each machine; cloud-init runs anew when it changes.
func (m *Machine) instanceID() string {
	if m.UUID != "" {
		return m.UUID
	}
	return m.Name
}

func revealed(values map[string]model.Sensitive) map[string]string {
	plain := make(map[string]string, len(values))
	for key, value := range values {
		plain[key] = value.Reveal()
	}
	return plain
}

func asJSON(v any) answer {
	var body strings.Builder
	enc := json.NewEncoder(&body)
	enc.SetEscapeHTML(false)              // no browser reads it, and < would take six bytes
	if err := enc.Encode(v); err != nil { // maps of strings always can be
		return refuse(http.StatusInternalServerError, "this cannot be written as JSON")
	}
	return answer{code: http.StatusOK, contentType: typeJSON, body: body.String()}
}
