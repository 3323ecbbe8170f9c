package sim_test

import (
	"encoding/json"
	"net/http"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"ingot/bmc/sim"
	"ingot/bmc/sim/internal/simtest"
)

// enums are properties whose values the schemas list (DSP0268), with those that the rack may
// use. A property of several names is one of the schema's type.
var enums = map[string][]string{
	"State":                     {"Enabled", "Disabled", "Absent", "StandbyOffline", "Starting", "UnavailableOffline", "InTest", "Updating"},
	"Health":                    {"OK", "Warning", "Critical"},
	"PowerState":                {"On", "Off", "PoweringOn", "PoweringOff", "Paused"},
	"SystemType":                {"Physical", "Virtual", "OS", "PhysicallyPartitioned", "VirtuallyPartitioned", "Composed", "DPU"},
	"IndicatorLED":              {"Lit", "Blinking", "Off"},
	"BootSourceOverrideEnabled": {"Disabled", "Once", "Continuous"},
	"BootSourceOverrideMode":    {"UEFI", "Legacy"},
	"BootSourceOverrideTarget": {
		"None", "Pxe", "Floppy", "Cd", "Usb", "Hdd", "BiosSetup", "Utilities", "Diags", "UefiShell", "UefiTarget", "SDCard", "UefiHttp",
		"RemoteDrive", "UefiBootNext", "Recovery",
	},
	"ResetType": {
		"On", "ForceOff", "GracefulShutdown", "GracefulRestart", "ForceRestart", "Nmi", "ForceOn", "PushPowerButton", "PowerCycle", "Suspend", "Pause",
		"Resume",
	},
	"LastState": {
		"None", "PrimaryProcessorInitializationStarted", "BusInitializationStarted", "MemoryInitializationStarted", "SecondaryProcessorInitializationStarted",
		"PCIResourceConfigStarted", "SystemHardwareInitializationComplete", "SetupEntered", "OSBootStarted", "OSRunning", "OEM",
	},
	"ProcessorType":         {"CPU", "GPU", "FPGA", "DSP", "Accelerator", "Core", "Thread", "Partition", "OEM"},
	"ProcessorArchitecture": {"x86", "IA-64", "ARM", "MIPS", "Power", "RISC-V", "OEM"},
	"InstructionSet":        {"x86", "x86-64", "IA-64", "ARM-A32", "ARM-A64", "MIPS32", "MIPS64", "PowerISA", "RV32", "RV64", "OEM"},
	"MemoryDeviceType":      {"DDR", "DDR2", "DDR3", "DDR4", "DDR5", "HBM2", "HBM3", "LPDDR5_SDRAM"},
	"MediaType":             {"HDD", "SSD", "SMR"},
	"Protocol":              {"PCIe", "AHCI", "SAS", "SATA", "USB", "NVMe", "FC", "Redfish"},
	"RAIDType":              {"RAID0", "RAID1", "RAID5", "RAID6", "RAID10", "None"},
	"ManagerType":           {"ManagementController", "EnclosureManager", "BMC", "RackManager", "AuxiliaryController", "Service"},
	"ChassisType":           {"Rack", "Blade", "Enclosure", "StandAlone", "RackMount", "Card", "Sled", "Module", "Component"},
	"NetDevFuncType":        {"Disabled", "Ethernet", "FibreChannel", "iSCSI", "InfiniBand"},
	"ConnectedVia":          {"NotConnected", "URI", "Applet", "Oem"},
	"SecureBootCurrentBoot": {"Enabled", "Disabled"},
	"SecureBootMode":        {"SetupMode", "UserMode", "AuditMode", "DeployedMode"},
	"LinkStatus":            {"LinkUp", "LinkDown", "NoLink", "Starting", "Training"},
	"Severity":              {"OK", "Warning", "Critical"},
}

// odataType is the form of @odata.type (DSP0266 §9.5.4).
var odataType = regexp.MustCompile(`^#[A-Z][A-Za-z0-9]*(\.v[1-9]\d*_\d+_\d+)?\.[A-Z][A-Za-z0-9]*$`)

// Every resource of every personality is what a validator of Redfish services asks of it.
func TestEveryResourceKeepsToTheStandard(t *testing.T) {
	for _, kind := range sim.Personalities() {
		t.Run(kind, func(t *testing.T) {
			rack := start(t, sim.Options{Personality: kind})
			w := &walker{t: t, Client: simtest.Dial(t, rack.BMCs()[0]), traits: sim.TraitsOf(kind), seen: map[string]bool{}}
			w.walk("/redfish/v1/")
			if len(w.seen) < 40 {
				t.Errorf("only %d resources", len(w.seen))
			}
			for _, s := range rack.Servers() {
				if !w.seen[s.URI()] {
					t.Errorf("%s is not linked to", s.URI())
				}
			}
		})
	}
}

// walker visits all resources of a BMC.
type walker struct {
	*simtest.Client
	t      *testing.T
	traits sim.Traits
	seen   map[string]bool
}

func (w *walker) walk(uri string) {
	uri, _, _ = strings.Cut(uri, "#")
	if w.seen[uri] {
		return
	}
	w.seen[uri] = true
	a := w.Do("GET", uri, "")
	if a.Status != http.StatusOK {
		w.t.Errorf("GET %s: %d", uri, a.Status)
		return
	}
	w.headers(uri, a)
	w.body(uri, a.Body)
	w.methods(uri, a)
	w.missing(uri)
	for _, link := range links(a.Body) {
		w.walk(link)
	}
}

// headers are those of DSP0266 §8.2.
func (w *walker) headers(uri string, a simtest.Answer) {
	want := map[string]string{"OData-Version": "4.0", "Content-Type": "application/json; charset=utf-8", "Cache-Control": "no-cache"}
	for name, value := range want {
		if got := a.Header.Get(name); got != value {
			w.t.Errorf("%s: %s is %q", uri, name, got)
		}
	}
	etag := a.Header.Get("ETag")
	if !strings.HasSuffix(etag, `"`) || !strings.Contains(a.Header.Get("Link"), "rel=describedby") {
		w.t.Errorf("%s: ETag %s, Link %s", uri, etag, a.Header.Get("Link"))
	}
	if inBody := a.Body["@odata.etag"]; w.traits.ETags && inBody != etag || !w.traits.ETags && inBody != nil {
		w.t.Errorf("%s: ETag %s in the header, %v in the body", uri, etag, inBody)
	}
	if again := w.Do("GET", uri, "", "If-None-Match", etag); again.Status != http.StatusNotModified && !strings.Contains(uri, "Session") {
		w.t.Errorf("GET %s with its ETag: %d", uri, again.Status)
	}
}

func (w *walker) body(uri string, body map[string]any) {
	if body["@odata.id"] != uri {
		w.t.Errorf("%s: @odata.id is %v", uri, body["@odata.id"])
	}
	members, isCollection := body["Members"].([]any)
	if isCollection && body["Members@odata.count"] != float64(len(members)) {
		w.t.Errorf("%s: %v members are counted, %d are there", uri, body["Members@odata.count"], len(members))
	}
	if name, _ := body["Name"].(string); name == "" {
		w.t.Errorf("%s has no Name", uri)
	}
	id, _ := body["Id"].(string)
	if !isCollection && id != path.Base(uri) && uri != "/redfish/v1/" && !strings.HasPrefix(uri, "/redfish/v1/Registries/") {
		w.t.Errorf("%s: Id is %q", uri, id)
	}
	w.values(uri, body)
}

func (w *walker) values(uri string, v any) {
	switch v := v.(type) {
	case map[string]any:
		for name, value := range v {
			w.value(uri, name, value)
			w.values(uri, value)
		}
	case []any:
		for _, e := range v {
			w.values(uri, e)
		}
	}
}

func (w *walker) value(uri, name string, value any) {
	text, isText := value.(string)
	if name == "@odata.type" && !odataType.MatchString(text) {
		w.t.Errorf("%s: @odata.type is %v", uri, value)
	}
	name = strings.TrimSuffix(name, "@Redfish.AllowableValues")
	allowed, known := enums[name]
	if strings.HasPrefix(uri, "/redfish/v1/Registries") {
		return
	}
	if known && isText && !slices.Contains(allowed, text) {
		w.t.Errorf("%s: %s is %q", uri, name, text)
	}
	list, _ := value.([]any)
	for _, e := range list {
		// Off is HPE Cray's own, and is in no schema.
		if s, _ := e.(string); known && !slices.Contains(allowed, s) && s != "Off" {
			w.t.Errorf("%s: %s allows %v", uri, name, e)
		}
	}
}

// methods asks for what Allow does not name, and writes with an ETag that is none.
func (w *walker) methods(uri string, a simtest.Answer) {
	allow := strings.Split(a.Header.Get("Allow"), ", ")
	if !slices.Contains(allow, "GET") || !slices.Contains(allow, "HEAD") {
		w.t.Errorf("%s: Allow is %q", uri, allow)
	}
	for _, method := range []string{"DELETE", "PUT"} {
		if slices.Contains(allow, method) {
			continue
		}
		refused := w.Do(method, uri, "{}")
		if refused.Status != http.StatusMethodNotAllowed || refused.Header.Get("Allow") != a.Header.Get("Allow") || len(refused.MessageIDs()) == 0 {
			w.t.Errorf("%s %s: %d, Allow %q, %v", method, uri, refused.Status, refused.Header.Get("Allow"), refused.Body)
		}
	}
	if slices.Contains(allow, "PATCH") {
		body, _ := json.Marshal(map[string]any{"Id": "other"})
		stale := w.Do("PATCH", uri, string(body), "If-Match", `"none"`)
		if stale.Status != http.StatusPreconditionFailed || len(stale.MessageIDs()) == 0 {
			w.t.Errorf("PATCH %s with another ETag: %d %v", uri, stale.Status, stale.Body)
		}
	}
}

func (w *walker) missing(uri string) {
	a := w.Do("GET", strings.TrimSuffix(uri, "/")+"/Nowhere", "")
	if a.Status != http.StatusNotFound || len(a.MessageIDs()) != 1 {
		w.t.Errorf("GET %s/Nowhere: %d %v", uri, a.Status, a.Body)
	}
}

func links(v any) []string {
	var found []string
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			if s, ok := value.(string); ok && (key == "@odata.id" || key == "@Redfish.ActionInfo" || key == "Uri") {
				found = append(found, s)
			}
			found = append(found, links(value)...)
		}
	case []any:
		for _, e := range v {
			found = append(found, links(e)...)
		}
	}
	return found
}
