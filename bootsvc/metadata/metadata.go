// Package metadata tells a bound server about itself over HTTP: its name, what its
// labels say, and the user data of its claim.
//
// A server is known by the address that it asks from, so there is no secret to
// leak, and nothing is said to an address that is not a bound server's. There are
// three forms of the same facts: metal-operator's under /v1/, and those that
// cloud-init reads, EC2's under /latest/ and NoCloud's under /nocloud/.
package metadata

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"strings"

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
	// At returns the bound server that has an address.
	At(a netip.Addr) (Machine, bool)
}

// Options are what a handler needs.
type Options struct {
	Machines   Machines
	Log        *slog.Logger          // nil = no log
	Registerer prometheus.Registerer // nil = no metrics
}

// service answers servers.
type service struct {
	machines Machines
	log      *slog.Logger
	requests *prometheus.CounterVec
}

// NewHandler returns the handler of all paths. It answers GET and HEAD only.
func NewHandler(o Options) http.Handler {
	s := &service{machines: o.Machines, log: o.Log, requests: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "ingot_metadata_requests_total",
		Help: "Requests to the metadata service, by form (v1, ec2, nocloud, other) and HTTP status code.",
	}, []string{"form", "code"})}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if o.Registerer != nil {
		o.Registerer.MustRegister(s.requests)
	}
	return s
}

// answer is what a request is answered with.
type answer struct {
	code        int
	contentType string
	body        string
}

// The content types.
const (
	typeText = "text/plain; charset=utf-8"
	typeJSON = "application/json"
)

func text(body string) answer { return answer{http.StatusOK, typeText, body} }

func refuse(code int, why string) answer { return answer{code, typeText, why + "\n"} }

func notFound(what string) answer { return refuse(http.StatusNotFound, "there is no "+what+" here") }

// ServeHTTP implements http.Handler.
func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	form, a := s.answer(r)
	s.requests.WithLabelValues(form, fmt.Sprint(a.code)).Inc()
	h := w.Header()
	h.Set("Content-Type", a.contentType)
	h.Set("Content-Length", fmt.Sprint(len(a.body)))
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	if a.code == http.StatusMethodNotAllowed {
		h.Set("Allow", "GET, HEAD")
	}
	w.WriteHeader(a.code)
	if r.Method != http.MethodHead {
		_, _ = w.Write([]byte(a.body)) // a server that went away is no matter of ours
	}
}

// answer decides what a request is answered with, and which form it asked for.
func (s *service) answer(r *http.Request) (form string, a answer) {
	form, rest := formOf(r.URL.Path)
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return form, refuse(http.StatusMethodNotAllowed, "only GET and HEAD are served here")
	}
	if form == formV1 && r.Header.Get("Metadata-Flavor") != Flavor {
		return form, refuse(http.StatusForbidden, "missing required header: Metadata-Flavor: "+Flavor)
	}
	client, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return form, refuse(http.StatusBadRequest, "the address of the client cannot be read")
	}
	m, ok := s.machines.At(client.Addr().Unmap().WithZone(""))
	if !ok {
		return form, refuse(http.StatusNotFound, "no bound server has the address that this request came from")
	}
	if m.UserDataWrong != "" {
		s.log.Warn("user data of a server cannot be served", "server", m.Name, "reason", m.UserDataWrong)
	}
	switch form {
	case formV1:
		return form, m.v1(rest)
	case formEC2:
		return form, m.ec2(rest)
	case formNoCloud:
		return form, m.noCloud(rest)
	}
	return form, refuse(http.StatusNotFound, "there is nothing here; /v1/ is where it begins")
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

// all are all facts in one map.
func (m *Machine) all() map[string]any {
	all := make(map[string]any, len(m.Metadata)+2)
	for key, value := range m.Metadata {
		all[key] = value
	}
	all[keyServerName] = m.Name
	delete(all, keyUserData)
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
	return answer{http.StatusOK, "application/octet-stream", value.Reveal()}
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
	data, err := json.Marshal(v)
	if err != nil { // maps of strings always can be
		return refuse(http.StatusInternalServerError, "this cannot be written as JSON")
	}
	return answer{http.StatusOK, typeJSON, string(data) + "\n"}
}
