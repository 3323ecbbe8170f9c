package bmc

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"ingot/model"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	user     = "root"
	password = "calvin-and-hobbes"
	sysURI   = "/redfish/v1/Systems/1"
)

// object is a Redfish resource.
type object = map[string]any

// fake is a BMC with one machine. It behaves: sessions are checked, power changes
// when it is asked to, what is patched is stored. The knobs make it misbehave.
type fake struct {
	*httptest.Server

	mu        sync.Mutex
	resources map[string]object
	sessions  map[string]bool
	asked     []string // "GET /redfish/v1/", in the order of arrival
	opened    int      // connections

	password string
	basic    bool // HTTP Basic is accepted
	expand   bool
	lag      int // GETs of the system that still show the old power after a reset

	ready func() // ends what it shows while it starts; nil = nothing

	// answer takes a request over before anything else looks at it, if it returns true.
	answer func(w http.ResponseWriter, r *http.Request) bool
	// etag is the ETag of the system; nil = none.
	etag func(object) string
	// store keeps a boot override patched at path; it returns an HTTP status.
	store func(path string, b object) int
	// set keeps any other property; it returns an HTTP status.
	set func(path, name string, value any) int
	// reset carries out a reset type; it returns an HTTP status and a message identifier.
	reset func(resetType string) (int, string)
}

func newFake(t testing.TB, start func(*httptest.Server)) *fake {
	t.Helper()
	f := &fake{
		resources: tree(),
		sessions:  make(map[string]bool),
		password:  password,
		expand:    true,
	}
	f.store = f.keep
	f.set = func(path, name string, value any) int {
		f.resources[path][name] = value
		return http.StatusNoContent
	}
	f.reset = func(resetType string) (int, string) {
		f.setPower(resetType)
		return http.StatusNoContent, ""
	}
	f.Server = httptest.NewUnstartedServer(f)
	f.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.opened++
		}
	}
	f.Config.ErrorLog = log.New(io.Discard, "", 0)
	start(f.Server)
	t.Cleanup(f.Close)
	return f
}

func plain(s *httptest.Server)  { s.Start() }
func secure(s *httptest.Server) { s.StartTLS() }

func linked(uri string) object { return object{"@odata.id": uri} }

func listed(uris ...string) object {
	members := []any{}
	for _, uri := range uris {
		members = append(members, linked(uri))
	}
	return object{"Name": "Collection", "Members": members}
}

func tree() map[string]object {
	link, list := linked, listed
	return map[string]object{
		"/redfish/v1/": {
			"Name": "Root", "UUID": "92384634-2938-2342-8820-489239905423", "Vendor": "Contoso",
			"Systems": link("/redfish/v1/Systems"), "Managers": link("/redfish/v1/Managers"),
			"Links": object{"Sessions": link("/redfish/v1/SessionService/Sessions")},
			"ProtocolFeaturesSupported": object{"ExpandQuery": object{
				"NoLinks": true, "ExpandAll": true, "Levels": true, "MaxLevels": 2,
			}},
		},
		"/redfish/v1/Systems": list(sysURI),
		sysURI: {
			"@odata.type": "#ComputerSystem.v1_13_0.ComputerSystem", "Id": "1", "Name": "System",
			"SystemType": "Physical", "UUID": "38947555-7742-3448-3784-823347823834",
			"Manufacturer": "Contoso", "Model": "3500", "SKU": "8675309", "SerialNumber": " 437XR1138R2 ",
			"BiosVersion": "P79 v1.45", "IndicatorLED": "Off", "PowerState": "Off",
			"MemorySummary": object{"TotalSystemMemoryGiB": 96},
			"Boot": object{
				"BootSourceOverrideEnabled": "Disabled", "BootSourceOverrideTarget": "None", "BootSourceOverrideMode": "UEFI",
				"BootSourceOverrideTarget@Redfish.AllowableValues": []any{"None", "Pxe", "Hdd", "UefiHttp"},
			},
			"Actions": object{"#ComputerSystem.Reset": object{
				"target": sysURI + "/Actions/ComputerSystem.Reset",
				"ResetType@Redfish.AllowableValues": []any{
					"On", "ForceOff", "GracefulShutdown", "GracefulRestart", "ForceRestart", "PushPowerButton",
				},
			}},
			"Processors": link(sysURI + "/Processors"), "Memory": link(sysURI + "/Memory"),
			"Storage": link(sysURI + "/Storage"), "EthernetInterfaces": link(sysURI + "/EthernetInterfaces"),
			"Links": object{"ManagedBy": []any{link("/redfish/v1/Managers/BMC")}},
		},
		sysURI + "/Processors": list(sysURI + "/Processors/CPU1"),
		sysURI + "/Processors/CPU1": {
			"Id": "CPU1", "Name": "Processor", "ProcessorType": "CPU", "ProcessorArchitecture": "x86",
			"InstructionSet": "x86-64", "Manufacturer": "Intel", "Model": "Xeon", "MaxSpeedMHz": 3700, "TotalCores": 8, "TotalThreads": 16,
		},
		sysURI + "/Memory": list(sysURI+"/Memory/DIMM2", sysURI+"/Memory/DIMM1"),
		sysURI + "/Memory/DIMM1": {
			"Id": "DIMM1", "Name": "DIMM", "CapacityMiB": 32768, "MemoryDeviceType": "DDR4", "OperatingSpeedMhz": 2400,
			"Manufacturer": "Micron", "SerialNumber": "M1", "PartNumber": "P1",
		},
		sysURI + "/Memory/DIMM2": {"Id": "DIMM2", "Name": "DIMM", "Status": object{"State": "Absent"}},
		sysURI + "/Storage":      list(sysURI + "/Storage/RAID"),
		sysURI + "/Storage/RAID": {
			"Id": "RAID", "Name": "Contoso RAID", "Status": object{"State": "Enabled"},
			"Drives":  []any{link(sysURI + "/Storage/RAID/Drives/1"), link(sysURI + "/Storage/RAID/Drives/0")},
			"Volumes": link(sysURI + "/Storage/RAID/Volumes"),
		},
		sysURI + "/Storage/RAID/Drives/0": {
			"Id": "0", "Name": "Drive 0", "MediaType": "SSD", "Protocol": "NVMe", "CapacityBytes": 960197124096,
			"Manufacturer": "Samsung", "Model": "PM", "SerialNumber": "S0", "Status": object{"State": "Enabled"},
			"Identifiers": []any{
				object{
					"DurableName": "EUI.0025385B71B00001", "DurableNameFormat": "EUI"}, object{"DurableName": "S0",
					"DurableNameFormat": "iQN",
				},
			},
		},
		sysURI + "/Storage/RAID/Drives/1": {"Id": "1", "Name": "Drive 1", "SerialNumber": "S1"},
		sysURI + "/Storage/RAID/Volumes":  list(sysURI + "/Storage/RAID/Volumes/1"),
		sysURI + "/Storage/RAID/Volumes/1": {
			"Id": "1", "Name": "boot", "CapacityBytes": 1000, "RAIDType": "RAID1",
			"Status":      object{"State": "Enabled"},
			"Identifiers": []any{object{"DurableName": "600508b1-001c-1234-5678-9abcdef01234", "DurableNameFormat": "NAA"}},
			"Links":       object{"Drives": []any{link(sysURI + "/Storage/RAID/Drives/0"), link(sysURI + "/Storage/RAID/Drives/7")}}},
		sysURI + "/EthernetInterfaces": list(sysURI + "/EthernetInterfaces/NIC1"),
		sysURI + "/EthernetInterfaces/NIC1": {
			"Id": "NIC1", "Name": "Ethernet", "MACAddress": "12-44-6A-3B-04-11", "LinkStatus": "LinkUp",
			"IPv4Addresses": []any{object{"Address": "192.0.2.10"}, object{"Address": "0.0.0.0"}},
		},
		"/redfish/v1/Managers": list("/redfish/v1/Managers/Enclosure", "/redfish/v1/Managers/BMC"),
		"/redfish/v1/Managers/Enclosure": {
			"@odata.type": "#Manager.v1_5_0.Manager", "Id": "Enclosure", "Name": "Enclosure", "ManagerType": "EnclosureManager",
		},
		"/redfish/v1/Managers/BMC": {
			"@odata.type": "#Manager.v1_5_0.Manager", "Id": "BMC", "Name": "Manager", "ManagerType": "BMC",
			"UUID": "58893887-8974-2487-2389-841168418919", "Model": "Joo Janta 200", "FirmwareVersion": "1.45", "PowerState": "On",
			"PartNumber": "PN", "SerialNumber": "SN", "LastResetTime": "2026-03-09T02:38:30+01:00",
			"GraphicalConsole": object{"ServiceEnabled": true},
		},
	}
}

// answers has requests be answered in another way while the fake is in use; nil = its own.
func (f *fake) answers(answer func(http.ResponseWriter, *http.Request) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answer = answer
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	f.asked = append(f.asked, r.Method+" "+r.URL.RequestURI())
	answer := f.answer
	f.mu.Unlock()
	if answer != nil && answer(w, r) { // outside the lock, for it may hang
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	path := r.URL.Path
	switch {
	case path == "/redfish/v1/SessionService/Sessions" && r.Method == http.MethodPost:
		f.openSession(w, r)
	case path != "/redfish/v1/" && !f.authorized(r):
		fail(w, http.StatusUnauthorized, "Base.1.0.NoValidSession")
	case r.Method == http.MethodDelete:
		delete(f.sessions, path[strings.LastIndex(path, "/")+1:])
		w.WriteHeader(http.StatusNoContent)
	case strings.HasSuffix(path, "/Actions/ComputerSystem.Reset"):
		var body struct{ ResetType string }
		json.NewDecoder(r.Body).Decode(&body)
		if status, id := f.reset(body.ResetType); status/100 == 2 {
			w.WriteHeader(status)
		} else {
			fail(w, status, id)
		}
	case r.Method == http.MethodPatch:
		f.patch(w, r)
	default:
		f.get(w, r)
	}
}

func (f *fake) authorized(r *http.Request) bool {
	u, p, ok := r.BasicAuth()
	return ok && f.basic && u == user && p == f.password || f.sessions[r.Header.Get("X-Auth-Token")]
}

func (f *fake) openSession(w http.ResponseWriter, r *http.Request) {
	var body struct{ UserName, Password string }
	json.NewDecoder(r.Body).Decode(&body)
	if body.UserName != user || body.Password != f.password {
		fail(w, http.StatusUnauthorized, "Base.1.0.InsufficientPrivilege "+body.Password)
		return
	}
	token := fmt.Sprintf("token-%d", len(f.asked))
	f.sessions[token] = true
	w.Header().Set("X-Auth-Token", token)
	w.Header().Set("Location", "/redfish/v1/SessionService/Sessions/"+token)
	w.WriteHeader(http.StatusCreated)
}

func (f *fake) patch(w http.ResponseWriter, r *http.Request) {
	if _, ok := f.resources[r.URL.Path]; !ok {
		fail(w, http.StatusNotFound, "Base.1.0.ResourceMissingAtURI")
		return
	}
	if tag := r.Header.Get("If-Match"); tag != "" && f.etag != nil && tag != f.etag(f.resources[r.URL.Path]) {
		fail(w, http.StatusPreconditionFailed, "Base.1.0.PreconditionFailed")
		return
	}
	var body object
	json.NewDecoder(r.Body).Decode(&body)
	status := http.StatusNoContent
	for name, value := range body {
		if boot, ok := value.(object); ok && name == "Boot" {
			status = f.store(r.URL.Path, boot)
		} else {
			status = f.set(r.URL.Path, name, value)
		}
	}
	if status/100 == 2 {
		w.WriteHeader(status)
	} else {
		fail(w, status, "Base.1.0.PropertyValueError")
	}
}

func (f *fake) keep(path string, b object) int {
	boot, _ := f.resources[path]["Boot"].(object)
	if boot == nil {
		boot = object{}
		f.resources[path]["Boot"] = boot
	}
	maps.Copy(boot, b)
	return http.StatusNoContent
}

func (f *fake) get(w http.ResponseWriter, r *http.Request) {
	o, ok := f.resources[r.URL.Path]
	if !ok {
		fail(w, http.StatusNotFound, "Base.1.0.ResourceMissingAtURI")
		return
	}
	if r.URL.Path == sysURI {
		o = f.system(o)
		if f.etag != nil {
			w.Header().Set("ETag", f.etag(o))
			if r.Header.Get("If-None-Match") == f.etag(o) {
				w.WriteHeader(http.StatusNotModified)
				return
			}
		}
	}
	levels := 0
	if f.expand {
		fmt.Sscanf(r.URL.Query().Get("$expand"), ".($levels=%d)", &levels)
	}
	json.NewEncoder(w).Encode(f.expanded(r.URL.Path, o, levels))
}

func (f *fake) system(o object) object {
	if f.lag == 0 {
		return o
	}
	f.lag--
	old := maps.Clone(o)
	old["PowerState"] = map[any]string{"On": "Off", "Off": "On"}[o["PowerState"]]
	return old
}

func (f *fake) expanded(uri string, o object, levels int) object {
	out := object{"@odata.id": uri}
	for k, v := range o {
		out[k] = v
		if k != "Links" {
			out[k] = f.inPlace(v, levels)
		}
	}
	return out
}

func (f *fake) inPlace(v any, levels int) any {
	switch v := v.(type) {
	case object:
		uri, _ := v["@odata.id"].(string)
		if target, ok := f.resources[uri]; ok && len(v) == 1 && levels > 0 {
			return f.expanded(uri, target, levels-1)
		}
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = f.inPlace(v[i], levels)
		}
		return out
	}
	return v
}

func (f *fake) setPower(resetType string) {
	switch resetType {
	case "On", "ForceOn", "ForceRestart", "GracefulRestart", "PowerCycle":
		f.resources[sysURI]["PowerState"] = "On"
	case "ForceOff", "GracefulShutdown", "Off":
		f.resources[sysURI]["PowerState"] = "Off"
	case "PushPowerButton":
		f.resources[sysURI]["PowerState"] = map[any]string{"On": "Off", "Off": "On"}[f.resources[sysURI]["PowerState"]]
	}
}

func fail(w http.ResponseWriter, status int, messageID string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(object{"error": object{
		"code": "Base.1.0.GeneralError", "message": "A general error.",
		"@Message.ExtendedInfo": []any{object{"MessageId": messageID, "Message": "This is " + messageID + "."}},
	}})
}

func (f *fake) change(fn func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	fn()
}

// requests returns what was asked since the last call.
func (f *fake) requests() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	asked := f.asked
	f.asked = nil
	return asked
}

func (f *fake) dropSessions() { f.change(func() { clear(f.sessions) }) }

func (f *fake) target() model.BMCTarget {
	scheme, address, _ := strings.Cut(f.URL, "://")
	return model.BMCTarget{Name: "bmc-1", Scheme: scheme, Address: address, Username: user, Password: model.NewSensitive(password)}
}

func (f *fake) system1() model.SystemTarget { return model.SystemTarget{BMC: f.target(), URI: sysURI} }

type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

var loopback = model.BMCNetworks{
	{Prefix: netip.MustParsePrefix("127.0.0.0/8"), Plain: true},
	{Prefix: netip.MustParsePrefix("::1/128"), Plain: true},
}

func newPool(t testing.TB, o Options) *Pool {
	t.Helper()
	if o.Networks == nil {
		o.Networks = loopback
	}
	if o.ReadBack == nil {
		o.ReadBack = []time.Duration{}
	}
	p := NewPool(o)
	t.Cleanup(func() {
		if err := p.Close(context.Background()); err != nil {
			t.Logf("close: %v", err)
		}
	})
	return p
}

func counted(requests []string, prefix string) int {
	n := 0
	for _, r := range requests {
		if strings.HasPrefix(r, prefix) {
			n++
		}
	}
	return n
}

const login = "POST /redfish/v1/SessionService/Sessions"

func after(requests []string) []string {
	i := slices.IndexFunc(requests, func(r string) bool { return strings.HasPrefix(r, login) })
	return requests[i+1:]
}

// errOf is what came of a reset, where it does not matter what was read before it.
func errOf(_ model.ResetResult, err error) error { return err }
