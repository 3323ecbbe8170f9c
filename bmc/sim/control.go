package sim

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"

	"ingot/model"
)

// maxControlBody is the largest body of a control request, in bytes.
const maxControlBody = 64 << 10

// serverView is a server as GET /servers shows it.
type serverView struct {
	Name      model.ServerName `json:"name"`
	UUID      string           `json:"uuid"`
	BMC       model.BMCName    `json:"bmc"`
	Power     model.Power      `json:"power"`
	Running   string           `json:"running,omitempty"` // probe or os
	Override  bootOverride     `json:"override"`
	Indicator string           `json:"indicator"`
	Disk      *Disk            `json:"disk,omitempty"`
	PowerOns  int              `json:"powerOns"`
	Faults    []Fault          `json:"faults,omitempty"`
	LastBoot  *BootRecord      `json:"lastBoot,omitempty"`
}

// serverDetail is a server as GET /servers/{name} shows it.
type serverDetail struct {
	serverView
	Boots    []BootRecord  `json:"boots"`
	Resets   []ResetRecord `json:"resets"`
	Installs []Install     `json:"installs"`
	Events   []Event       `json:"events"`
	MACs     []string      `json:"macs"`
	Contents []Content     `json:"contents"` // of its disks
	// These are of virtual machines.
	Console string   `json:"console,omitempty"`
	Disks   []string `json:"disks,omitempty"`
	PID     int      `json:"pid,omitempty"`
}

// bmcView is a BMC as GET /bmcs shows it.
type bmcView struct {
	Name        model.BMCName      `json:"name"`
	Address     string             `json:"address"`
	MAC         string             `json:"mac"`
	Fingerprint string             `json:"fingerprint"`
	Servers     []model.ServerName `json:"servers"`
	Requests    int64              `json:"requests"`
	Connections int64              `json:"connections"`
	Sessions    int                `json:"sessions"`
	Faults      []Fault            `json:"faults,omitempty"`
}

// faultsView is what GET /faults shows.
type faultsView struct {
	Set   map[string][]Fault `json:"set"` // by BMC or server
	Known []FaultKind        `json:"known"`
}

// faultRequest is the body of POST /faults.
type faultRequest struct {
	Target   string `json:"target"` // a BMC or a server, or "" for every BMC
	Fault    Fault  `json:"fault"`
	Delay    string `json:"delay,omitempty"` // 2s
	Requests int    `json:"requests,omitempty"`
	Disk     int    `json:"disk,omitempty"`
	UUID     string `json:"uuid,omitempty"`
	Part     string `json:"part,omitempty"`
	Size     int    `json:"size,omitempty"`
}

// faulty is what faults can be set on.
type faulty interface {
	SetFault(Fault, ...FaultArgs) error
	ClearFault(Fault) error
	Faults() []Fault
}

// controlError is an error with the status that it is answered with.
type controlError struct {
	status int
	error
}

// ControlHandler serves what doc.go lists under Control. It has no
// authentication: it is for loopback, and refuses what a page of a browser sends.
func (r *Rack) ControlHandler() http.Handler {
	mux := http.NewServeMux()
	handle := func(pattern string, h func(*http.Request) (any, error)) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, req *http.Request) {
			req.Body = http.MaxBytesReader(w, req.Body, maxControlBody)
			v, err := h(req)
			answerControl(w, v, err)
		})
	}
	handle("GET /servers", func(*http.Request) (any, error) { return r.serverViews(), nil })
	handle("GET /servers/{name}", r.onServer(func(s *Server, _ *http.Request) (any, error) { return s.detail(), nil }))
	handle("POST /servers/{name}/power-cut", r.onServer(func(s *Server, _ *http.Request) (any, error) {
		s.PowerCut()
		return s.view(), nil
	}))
	handle("POST /servers/{name}/press-power", r.onServer(func(s *Server, _ *http.Request) (any, error) {
		s.PressPower()
		return s.view(), nil
	}))
	handle("POST /servers/{name}/running", r.onServer(setRunning))
	handle("GET /bmcs", func(*http.Request) (any, error) { return r.bmcViews(), nil })
	handle("POST /bmcs/{name}/unplug", r.onBMC((*BMC).Unplug))
	handle("POST /bmcs/{name}/plug", r.onBMC((*BMC).Plug))
	handle("GET /faults", func(*http.Request) (any, error) { return r.faultsView(), nil })
	handle("POST /faults", r.setFault)
	handle("DELETE /faults", r.clearFaults)
	return http.NewCrossOriginProtection().Handler(ownHost(mux))
}

// ownHost refuses requests to a name: those to an address, or to localhost, cannot have been
// led here by a page that has its own name resolve to loopback.
func ownHost(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		host := (&url.URL{Host: req.Host}).Hostname()
		if host != "localhost" && net.ParseIP(host) == nil {
			answerControl(w, nil, controlError{http.StatusForbidden, fmt.Errorf("host %q: use an IP address or localhost", host)})
			return
		}
		next.ServeHTTP(w, req)
	})
}

func answerControl(w http.ResponseWriter, v any, err error) {
	status := http.StatusOK
	if err != nil {
		status = http.StatusBadRequest
		if c, ok := errors.AsType[controlError](err); ok {
			status = c.status
		}
		v = map[string]string{"error": err.Error()}
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	_ = enc.Encode(v) // a client that has gone is no news
}

// onServer finds the server that the path names.
func (r *Rack) onServer(h func(*Server, *http.Request) (any, error)) func(*http.Request) (any, error) {
	return func(req *http.Request) (any, error) {
		name := req.PathValue("name")
		s := r.Server(model.ServerName(name))
		if s == nil {
			return nil, controlError{http.StatusNotFound, fmt.Errorf("there is no server %q; GET /servers lists them", name)}
		}
		return h(s, req)
	}
}

// onBMC finds the BMC that the path names, and shows what has become of it.
func (r *Rack) onBMC(do func(*BMC) error) func(*http.Request) (any, error) {
	return func(req *http.Request) (any, error) {
		name := req.PathValue("name")
		b := r.BMC(model.BMCName(name))
		if b == nil {
			return nil, controlError{http.StatusNotFound, fmt.Errorf("there is no BMC %q; GET /bmcs lists them", name)}
		}
		if err := do(b); err != nil {
			return nil, err
		}
		return b.view(), nil
	}
}

func setRunning(s *Server, req *http.Request) (any, error) {
	var body struct {
		Image string `json:"image"`
	}
	if err := decodeControl(req, &body); err != nil {
		return nil, err
	}
	if body.Image == "" {
		return nil, errors.New(`image is needed: {"image": "debian"}`)
	}
	if err := s.setRunning(body.Image); err != nil {
		return nil, err
	}
	return s.view(), nil
}

func decodeControl(req *http.Request, into any) error {
	dec := json.NewDecoder(req.Body)
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		return fmt.Errorf("body: %w", err)
	}
	return nil
}

func (r *Rack) serverViews() []serverView {
	views := make([]serverView, len(r.servers))
	for i, s := range r.servers {
		views[i] = s.view()
	}
	return views
}

func (s *Server) view() serverView {
	faults := s.Faults()
	s.mu.Lock()
	defer s.mu.Unlock()
	v := serverView{
		Name: s.name, UUID: s.uuid, BMC: s.bmc.name, Power: s.power, Running: string(s.system),
		Override: s.override, Indicator: s.indicator, PowerOns: s.powerOns, Faults: faults,
	}
	if s.disk != nil {
		d := *s.disk
		v.Disk = &d
	}
	if b := s.boots.last(); b != nil {
		last := *b
		last.Stages = append([]model.BootStage(nil), b.Stages...)
		v.LastBoot = &last
	}
	return v
}

func (s *Server) detail() serverDetail {
	d := serverDetail{
		serverView: s.view(), Boots: s.Boots(), Resets: s.Resets(), Installs: s.Installs(), Events: newest(s.Events()),
		Contents: s.Contents(), Console: s.Console(), Disks: s.DiskFiles(), PID: s.PID(),
	}
	for i := range s.build.NICs {
		d.MACs = append(d.MACs, s.MAC(i))
	}
	return d
}

// newest are the last of many events, for people.
func newest(events []Event) []Event { return events[max(0, len(events)-history):] }

func (r *Rack) bmcViews() []bmcView {
	views := make([]bmcView, len(r.bmcs))
	for i, b := range r.bmcs {
		views[i] = b.view()
	}
	return views
}

func (b *BMC) view() bmcView {
	v := bmcView{
		Name: b.name, Address: b.Addr(), MAC: b.mac, Fingerprint: b.Fingerprint(),
		Requests: b.Requests(), Connections: b.Connections(), Sessions: b.Sessions(), Faults: b.Faults(),
	}
	for _, s := range b.servers {
		v.Servers = append(v.Servers, s.name)
	}
	return v
}

func (r *Rack) faultsView() faultsView {
	v := faultsView{Set: make(map[string][]Fault), Known: FaultKinds()}
	for name, f := range r.targets() {
		if set := f.Faults(); len(set) > 0 {
			v.Set[name] = set
		}
	}
	return v
}

// targets are what faults can be set on, by name.
func (r *Rack) targets() map[string]faulty {
	t := make(map[string]faulty, len(r.bmcs)+len(r.servers))
	for _, b := range r.bmcs {
		t[string(b.name)] = b
	}
	for _, s := range r.servers {
		t[string(s.name)] = s
	}
	return t
}

func (r *Rack) target(name string) (faulty, error) {
	t, ok := r.targets()[name]
	if !ok {
		return nil, controlError{http.StatusNotFound, fmt.Errorf("there is no BMC or server %q; GET /bmcs and GET /servers list them", name)}
	}
	return t, nil
}

func (r *Rack) setFault(req *http.Request) (any, error) {
	var f faultRequest
	if err := decodeControl(req, &f); err != nil {
		return nil, err
	}
	args := FaultArgs{Requests: f.Requests, Disk: f.Disk, UUID: f.UUID, Part: f.Part, Size: f.Size}
	if f.Delay != "" {
		delay, err := time.ParseDuration(f.Delay)
		if err != nil {
			return nil, fmt.Errorf("delay %q: want one such as 500ms or 2s", f.Delay)
		}
		args.Delay = delay
	}
	if err := r.SetFault(FaultSetting{On: f.Target, Fault: f.Fault, FaultArgs: args}); err != nil {
		return nil, err
	}
	return r.faultsView(), nil
}

// clearFaults clears one fault of a target, all of a target, or all.
func (r *Rack) clearFaults(req *http.Request) (any, error) {
	name, fault := req.URL.Query().Get("target"), Fault(req.URL.Query().Get("fault"))
	targets := r.targets()
	if name != "" {
		t, err := r.target(name)
		if err != nil {
			return nil, err
		}
		targets = map[string]faulty{name: t}
	} else if fault != "" {
		return nil, errors.New("a target is needed: DELETE /faults?target=rack1-bmc-01&fault=slow")
	}
	var errs []error
	for _, t := range targets {
		errs = append(errs, clearOf(t, fault))
	}
	return r.faultsView(), errors.Join(errs...)
}

func clearOf(t faulty, fault Fault) error {
	if fault != "" {
		return t.ClearFault(fault)
	}
	var errs []error
	for _, f := range t.Faults() {
		errs = append(errs, t.ClearFault(f))
	}
	return errors.Join(errs...)
}
