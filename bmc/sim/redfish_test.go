package sim_test

import (
	"context"
	"crypto/tls"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stmcginnis/gofish"
	"github.com/stmcginnis/gofish/schemas"

	"ingot/bmc/sim"
	"ingot/bmc/sim/internal/simtest"
	"ingot/model"
	"ingot/model/must"
)

const system = "/redfish/v1/Systems/1"

func TestOnlyTheRootIsPublic(t *testing.T) {
	rack := start(t, sim.Options{})
	c := simtest.Dial(t, rack.BMCs()[0])
	for path, want := range map[string]int{
		"/redfish": 200, "/redfish/v1": 200, "/redfish/v1/": 200, "/redfish/v1/odata": 200, "/redfish/v1/$metadata": 200,
		"/redfish/v1/Systems": 401, system: 401, "/redfish/v1/SessionService/Sessions": 401, "/redfish/v1/Nowhere": 401, "/": 401,
	} {
		if a := c.Do("GET", path, "", "Authorization", ""); a.Status != want || want == 401 && a.Header.Get("WWW-Authenticate") == "" {
			t.Errorf("GET %s: %d, want %d", path, a.Status, want)
		}
	}
}

func TestRequestsThatCannotBeCarriedOutSayWhy(t *testing.T) {
	rack := start(t, sim.Options{})
	c := simtest.Dial(t, rack.BMCs()[0])
	tests := []struct {
		name, method, path, body string
		header                   []string
		status                   int
		message                  string
	}{
		{
			name: "no such resource", method: "GET", path: "/redfish/v1/Systems/9", body: "", header: nil,
			status: 404, message: "ResourceMissingAtURI",
		},
		{
			name: "a method the resource lacks", method: "DELETE", path: system, body: "", header: nil, status: 405,
			message: "OperationNotAllowed",
		},
		{name: "POST on a resource", method: "POST", path: system, body: "{}", header: nil, status: 405, message: "OperationNotAllowed"},
		{name: "no JSON", method: "PATCH", path: system, body: "{", header: nil, status: 400, message: "MalformedJSON"},
		{name: "no object", method: "PATCH", path: system, body: "[]", header: nil, status: 400, message: "UnrecognizedRequestBody"},
		{name: "nothing", method: "PATCH", path: system, body: "{}", header: nil, status: 400, message: "UnrecognizedRequestBody"},
		{
			name: "unknown property", method: "PATCH", path: system, body: `{"Colour":"red"}`, header: nil,
			status: 400, message: "PropertyUnknown",
		},
		{
			name: "read-only property", method: "PATCH", path: system, body: `{"SerialNumber":"1"}`, header: nil,
			status: 400, message: "PropertyNotWritable",
		},
		{
			name: "value of the wrong type", method: "PATCH", path: system, body: `{"AssetTag":1}`, header: nil,
			status: 400, message: "PropertyValueTypeError",
		},
		{
			name: "value out of the list", method: "PATCH", path: system,
			body: `{"Boot":{"BootSourceOverrideTarget":"Tape"}}`, header: nil, status: 400,
			message: "PropertyValueNotInList",
		},
		{
			name: "unknown boot property", method: "PATCH", path: system, body: `{"Boot":{"Speed":1}}`, header: nil,
			status: 400, message: "PropertyUnknown",
		},
		{
			name: "boot from a URI that is none", method: "PATCH", path: system,
			body: `{"Boot":{"HttpBootUri":"nowhere"}}`, header: nil, status: 400, message: "PropertyValueNotInList",
		},
		{
			name: "Boot is no object", method: "PATCH", path: system, body: `{"Boot":"Pxe"}`, header: nil,
			status: 400, message: "PropertyValueTypeError",
		},
		{
			name: "reset without a type", method: "POST", path: system + "/Actions/ComputerSystem.Reset",
			body: `{"Other":1}`, header: nil, status: 400, message: "ActionParameterUnknown",
		},
		{
			name: "reset of no known type", method: "POST", path: system + "/Actions/ComputerSystem.Reset",
			body: `{"ResetType":"Explode"}`, header: nil, status: 400, message: "ActionParameterValueNotInList",
		},
		{
			name: "restart when off", method: "POST", path: system + "/Actions/ComputerSystem.Reset",
			body: `{"ResetType":"ForceRestart"}`, header: nil, status: 409, message: "ActionNotSupportedInState",
		},
		{
			name: "stale ETag", method: "PATCH", path: system, body: `{"AssetTag":"x"}`,
			header: []string{"If-Match", `"old"`}, status: 412, message: "PreconditionFailed",
		},
		{
			name: "unknown OData version", method: "GET", path: system, body: "",
			header: []string{"OData-Version", "3.0"}, status: 412, message: "HeaderInvalid",
		},
		{
			name: "no acceptable form", method: "GET", path: system, body: "",
			header: []string{"Accept", "text/html"}, status: 406, message: "HeaderInvalid",
		},
		{
			name: "query that is not supported", method: "GET", path: system + "?$filter=x", body: "", header: nil,
			status: 501, message: "QueryNotSupported",
		},
		{
			name: "bad expand", method: "GET", path: system + "?$expand=yes", body: "", header: nil, status: 400,
			message: "QueryParameterValueError",
		},
		{
			name: "expand too deep", method: "GET", path: system + "?$expand=.($levels=9)", body: "", header: nil,
			status: 400, message: "QueryParameterOutOfRange",
		},
		{
			name: "only with a value", method: "GET", path: "/redfish/v1/Systems?only=1", body: "", header: nil,
			status: 400, message: "QueryParameterValueError",
		},
		{
			name: "negative skip", method: "GET", path: "/redfish/v1/Systems?$skip=-1", body: "", header: nil,
			status: 400, message: "QueryParameterOutOfRange",
		},
		{
			name: "login without password", method: "POST", path: "/redfish/v1/SessionService/Sessions",
			body: `{"UserName":"admin"}`, header: nil, status: 400, message: "PropertyMissing",
		},
		{
			name: "login with a wrong password", method: "POST", path: "/redfish/v1/SessionService/Sessions",
			body: `{"UserName":"admin","Password":"x"}`, header: nil, status: 401, message: "NoValidSession",
		},
		{
			name: "account with a short password", method: "POST", path: "/redfish/v1/AccountService/Accounts",
			body: `{"UserName":"a","Password":"x","RoleId":"Operator"}`, header: nil, status: 400,
			message: "PropertyValueNotInList",
		},
		{
			name: "account of that name exists", method: "POST", path: "/redfish/v1/AccountService/Accounts",
			body: `{"UserName":"admin","Password":"long-enough","RoleId":"Operator"}`, header: nil, status: 400,
			message: "ResourceAlreadyExists",
		},
		{
			name: "subscription to nowhere", method: "POST", path: "/redfish/v1/EventService/Subscriptions",
			body: `{"Destination":"nowhere"}`, header: nil, status: 400, message: "PropertyValueNotInList",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a := c.Do(tt.method, tt.path, tt.body, tt.header...)
			want := []string{"Base.1.8." + tt.message}
			if a.Status != tt.status || !cmp.Equal(a.MessageIDs(), want) {
				t.Errorf("%d %v, want %d %v", a.Status, a.MessageIDs(), tt.status, want)
			}
			if tt.status == 405 && a.Header.Get("Allow") == "" {
				t.Error("405 without Allow")
			}
		})
	}
}

func TestAChangeNeedsTheETagOfNow(t *testing.T) {
	rack := start(t, sim.Options{})
	c := simtest.Dial(t, rack.BMCs()[0])
	read := c.Do("GET", system, "")
	etag := read.Header.Get("ETag")
	if etag == "" || read.Body["@odata.etag"] != etag {
		t.Fatalf("ETag %q, @odata.etag %v", etag, read.Body["@odata.etag"])
	}
	if a := c.Do("GET", system, "", "If-None-Match", etag); a.Status != http.StatusNotModified || a.Body != nil {
		t.Errorf("unmodified: %d %v", a.Status, a.Body)
	}
	if a := c.Do("PATCH", system, `{"AssetTag":"rack 7"}`, "If-Match", etag); a.Status != http.StatusOK || a.Body["AssetTag"] != "rack 7" {
		t.Errorf("patch: %d %v", a.Status, a.Body["AssetTag"])
	}
	if a := c.Do("GET", system, "", "If-None-Match", etag); a.Status != http.StatusOK || a.Header.Get("ETag") == etag {
		t.Errorf("modified: %d %s", a.Status, a.Header.Get("ETag"))
	}
	if a := c.Do("PATCH", system, `{"AssetTag":"rack 8"}`, "If-Match", etag); a.Status != http.StatusPreconditionFailed {
		t.Errorf("patch with the old ETag: %d", a.Status)
	}
	manager := c.Do("GET", "/redfish/v1/Managers/BMC", "")
	if a := c.Do("GET", "/redfish/v1/Managers/BMC", "", "If-None-Match", manager.Header.Get("ETag")); a.Status != http.StatusNotModified {
		t.Errorf("the clock alone modifies a manager: %d", a.Status)
	}
}

func TestAPatchDoesWhatItCanAndNamesTheRest(t *testing.T) {
	rack := start(t, sim.Options{})
	c := simtest.Dial(t, rack.BMCs()[0])
	a := c.Do("PATCH", system, `{"AssetTag":"x","Colour":"red"}`)
	if a.Status != 200 || a.Body["AssetTag"] != "x" || a.Body["@Message.ExtendedInfo"] == nil {
		t.Errorf("%d %v %v", a.Status, a.Body["AssetTag"], a.Body["@Message.ExtendedInfo"])
	}
}

func TestHEADIsGETWithoutBody(t *testing.T) {
	rack := start(t, sim.Options{})
	c := simtest.Dial(t, rack.BMCs()[0])
	get, head := c.Do("GET", system, ""), c.Do("HEAD", system, "")
	if head.Status != 200 || head.Body != nil {
		t.Errorf("%d %v", head.Status, head.Body)
	}
	for _, h := range []string{"ETag", "Content-Length", "Content-Type", "Allow", "Link", "OData-Version"} {
		if head.Header.Get(h) == "" || head.Header.Get(h) != get.Header.Get(h) {
			t.Errorf("%s: %q, GET has %q", h, head.Header.Get(h), get.Header.Get(h))
		}
	}
}

func TestExpandPutsResourcesInThePlaceOfLinks(t *testing.T) {
	rack := start(t, sim.Options{SystemsPerBMC: 3})
	c := simtest.Dial(t, rack.BMCs()[0])
	member := func(path string, i int) map[string]any { return c.Get(path)["Members"].([]any)[i].(map[string]any) }

	if m := member("/redfish/v1/Systems", 1); len(m) != 1 {
		t.Errorf("without $expand a member is more than a link: %v", m)
	}
	m := member("/redfish/v1/Systems?$expand=.", 1)
	if m["SerialNumber"] != rack.Servers()[1].SerialNumber() || len(m["Processors"].(map[string]any)) != 1 {
		t.Errorf("one level: %v", m)
	}
	m = member("/redfish/v1/Systems?$expand=.($levels=2)", 1)
	if m["Processors"].(map[string]any)["Members@odata.count"] != 2.0 ||
		len(m["Links"].(map[string]any)["Chassis"].([]any)[0].(map[string]any)) != 1 {
		t.Errorf("two levels: %v", m["Processors"])
	}
	linked := c.Get(system + "?$expand=~")
	chassis := linked["Links"].(map[string]any)["Chassis"].([]any)[0].(map[string]any)
	if chassis["ChassisType"] != "RackMount" || len(linked["Processors"].(map[string]any)) != 1 {
		t.Errorf("links: %v", linked["Links"])
	}
	both := c.Get(system + "?$expand=*($levels=1)")
	if len(both["Processors"].(map[string]any)) == 1 || len(both["Links"].(map[string]any)["Chassis"].([]any)[0].(map[string]any)) == 1 {
		t.Error("* expands both")
	}
}

func TestCollectionsArePagedAndSorted(t *testing.T) {
	rack := start(t, sim.Options{SystemsPerBMC: 12})
	c := simtest.Dial(t, rack.BMCs()[0])
	ids := func(body map[string]any) (ids []string) {
		for _, m := range body["Members"].([]any) {
			ids = append(ids, m.(map[string]any)["@odata.id"].(string))
		}
		return ids
	}
	all := ids(c.Get("/redfish/v1/Systems"))
	if len(all) != 12 || !slices.IsSorted(all) {
		t.Errorf("members: %v", all)
	}
	page := c.Get("/redfish/v1/Systems?$skip=2&$top=3")
	const next = "/redfish/v1/Systems?$skip=5&$top=3"
	if got := ids(page); !slices.Equal(got, all[2:5]) || page["Members@odata.nextLink"] != next || page["Members@odata.count"] != 12.0 {
		t.Errorf("page: %v, next %v", got, page["Members@odata.nextLink"])
	}
	if got := ids(c.Get("/redfish/v1/Systems?$skip=40")); len(got) != 0 {
		t.Errorf("beyond the end: %v", got)
	}
	if got := c.Get("/redfish/v1/Managers?only"); got["ManagerType"] != "BMC" {
		t.Errorf("only: %v", got)
	}
}

func TestSessionsAreLimitedAndEnd(t *testing.T) {
	rack := start(t, sim.Options{SessionLimit: 2})
	b := rack.BMCs()[0]
	c := simtest.Dial(t, b)
	login := func() simtest.Answer {
		return c.Do("POST", "/redfish/v1/SessionService/Sessions", `{"UserName":"admin","Password":"ingot-sim"}`, "Authorization", "")
	}
	first, second, third := login(), login(), login()
	if first.Status != 201 || second.Status != 201 || first.Body["UserName"] != "admin" {
		t.Fatalf("logins: %d %d %v", first.Status, second.Status, first.Body)
	}
	if third.Status != 503 || third.Header.Get("Retry-After") == "" ||
		!cmp.Equal(third.MessageIDs(), []string{"Base.1.8.SessionLimitExceeded"}) {
		t.Errorf("beyond the limit: %d %v", third.Status, third.MessageIDs())
	}
	token := first.Header.Get("X-Auth-Token")
	if a := c.Do("GET", system, "", "X-Auth-Token", token); a.Status != 200 {
		t.Errorf("with a token: %d", a.Status)
	}
	if a := c.Do("DELETE", first.Header.Get("Location"), "", "X-Auth-Token", token); a.Status != 204 {
		t.Errorf("logout: %d", a.Status)
	}
	if a := c.Do("GET", system, "", "X-Auth-Token", token); a.Status != 401 {
		t.Errorf("after the logout: %d", a.Status)
	}
	if b.Sessions() != 1 || rack.Sessions().Total != 1 {
		t.Errorf("%d sessions, want 1", b.Sessions())
	}
	if a := login(); a.Status != 201 {
		t.Errorf("a free slot is taken: %d", a.Status)
	}
}

func TestAccountsAreMadeChangedAndDeleted(t *testing.T) {
	rack := start(t, sim.Options{})
	c := simtest.Dial(t, rack.BMCs()[0])
	made := c.Do("POST", "/redfish/v1/AccountService/Accounts", `{"UserName":"reader","Password":"first-one","RoleId":"ReadOnly"}`)
	if made.Status != 201 {
		t.Fatalf("create: %d %v", made.Status, made.Body)
	}
	path := made.Header.Get("Location")
	as := func(user, password, method, path, body string) int {
		req, _ := http.NewRequest(method, "https://"+c.BMC.Addr()+path, strings.NewReader(body))
		req.SetBasicAuth(user, password)
		resp := must.Get(c.HTTP.Do(req))(t)
		resp.Body.Close()
		return resp.StatusCode
	}
	if got := as("reader", "first-one", "GET", system, ""); got != 200 {
		t.Errorf("a reader reads: %d", got)
	}
	if got := as("reader", "first-one", "PATCH", system, `{"AssetTag":"x"}`); got != 403 {
		t.Errorf("a reader writes: %d", got)
	}
	if a := c.Do("PATCH", path, `{"Password":"second-one","RoleId":"Operator"}`); a.Status != 200 || a.Body["Password"] != nil {
		t.Errorf("change: %d %v", a.Status, a.Body)
	}
	if got := as("reader", "first-one", "GET", system, ""); got != 401 {
		t.Errorf("the old password: %d", got)
	}
	if got := as("reader", "second-one", "PATCH", system, `{"AssetTag":"x"}`); got != 200 {
		t.Errorf("an operator writes: %d", got)
	}
	if a := c.Do("DELETE", path, ""); a.Status != 204 {
		t.Errorf("delete: %d", a.Status)
	}
	if got := as("reader", "second-one", "GET", system, ""); got != 401 {
		t.Errorf("a deleted account: %d", got)
	}
	if a := c.Do("DELETE", "/redfish/v1/AccountService/Accounts/1", ""); a.Status != 405 {
		t.Errorf("delete the administrator: %d", a.Status)
	}
}

func TestVendorsHaveTheirRulesForTheOverride(t *testing.T) {
	const once = `{"Boot":{"BootSourceOverrideEnabled":"Once","BootSourceOverrideTarget":"Pxe"}}`
	state := func(s *sim.Server) string {
		enabled, target, mode := s.Override()
		return enabled + " " + target + " " + mode
	}
	t.Run("supermicro forgets a mode that is not sent", func(t *testing.T) {
		s := start(t, sim.Options{Personality: "supermicro"}).Servers()[0]
		c := simtest.Dial(t, s.BMC())
		c.Do("PATCH", s.URI(), once)
		if got := state(s); got != "Once Pxe Legacy" {
			t.Error(got)
		}
		c.Do("PATCH", s.URI(),
			`{"Boot":{"BootSourceOverrideEnabled":"Once","BootSourceOverrideTarget":"Pxe","BootSourceOverrideMode":"UEFI"}}`)
		if got := state(s); got != "Once Pxe UEFI" {
			t.Error(got)
		}
	})
	t.Run("hpe refuses Disabled with None", func(t *testing.T) {
		s := start(t, sim.Options{Personality: "hpe"}).Servers()[0]
		a := simtest.Dial(t, s.BMC()).Do("PATCH", s.URI(),
			`{"Boot":{"BootSourceOverrideEnabled":"Disabled","BootSourceOverrideTarget":"None"}}`)
		if a.Status != 400 || !cmp.Equal(a.MessageIDs(), []string{"Base.1.8.PropertyValueConflict"}) {
			t.Errorf("%d %v", a.Status, a.MessageIDs())
		}
	})
	t.Run("ami takes it in the settings object with If-Match only", func(t *testing.T) {
		s := start(t, sim.Options{Personality: "ami"}).Servers()[0]
		c := simtest.Dial(t, s.BMC())
		a := c.Do("PATCH", s.URI(), once)
		if a.Status != 400 || !cmp.Equal(a.MessageIDs(), []string{"Base.1.8.OperationSupportedInFutureStateURI"}) {
			t.Errorf("on the system: %d %v", a.Status, a.MessageIDs())
		}
		settings := c.Get(s.URI())["@Redfish.Settings"].(map[string]any)["SettingsObject"].(map[string]any)["@odata.id"].(string)
		if settings != "/redfish/v1/Systems/Self/SD" {
			t.Errorf("settings at %s", settings)
		}
		if a := c.Do("PATCH", settings, once); a.Status != http.StatusPreconditionRequired {
			t.Errorf("without If-Match: %d", a.Status)
		}
		a = c.Do("PATCH", settings, once, "If-Match", c.Do("GET", settings, "").Header.Get("ETag"))
		if a.Status != 200 || state(s) != "Once Pxe UEFI" {
			t.Errorf("with If-Match: %d %s", a.Status, state(s))
		}
	})
	t.Run("dell and hpe refuse to switch on what is on", func(t *testing.T) {
		for _, kind := range []string{"dell", "hpe"} {
			s := start(t, sim.Options{Personality: kind}).Servers()[0]
			s.SetRunning("debian")
			if a := simtest.Dial(t, s.BMC()).Do("POST", s.URI()+"/Actions/ComputerSystem.Reset", `{"ResetType":"On"}`); a.Status != 409 {
				t.Errorf("%s: %d", kind, a.Status)
			}
		}
	})
}

func TestGofishReadsAndDrivesEveryPersonality(t *testing.T) {
	for _, kind := range sim.Personalities() {
		t.Run(kind, func(t *testing.T) {
			rack := start(t, sim.Options{Personality: kind, SystemsPerBMC: 2})
			b := rack.BMCs()[0]
			transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
			defer transport.CloseIdleConnections()
			c := must.Get(gofish.ConnectContext(context.Background(), gofish.ClientConfig{
				Endpoint: "https://" + b.Addr(), Username: "admin", Password: "ingot-sim",
				HTTPClient: &http.Client{Transport: transport}, NoModifyTransport: true, ReuseConnections: true,
			}))(t)
			systems, err := c.Service.Systems()
			if err != nil || len(systems) < 2 {
				t.Fatalf("systems: %d, %v", len(systems), err)
			}
			s, traits := rack.Servers()[1], sim.TraitsOf(kind)
			second := systems[slices.IndexFunc(systems, func(c *schemas.ComputerSystem) bool { return c.ODataID == s.URI() })]
			inventory(t, second, traits)
			if traits.UUID && !sameUUID(second.UUID, s.UUID()) || traits.Serial && second.SerialNumber != s.SerialNumber() {
				t.Errorf("second system is %s %s, want %s %s", second.UUID, second.SerialNumber, s.UUID(), s.SerialNumber())
			}
			if traits.Override {
				netboot(t, second, s)
			}
			if _, err := second.Reset(schemas.OnResetType); err != nil && !traits.ResetsInInfo {
				t.Errorf("Reset: %v", err)
			}
			managers, err := c.Service.Managers()
			if err != nil || len(managers) != 1 || managers[0].UUID != b.UUID() {
				t.Errorf("managers: %v, %v", managers, err)
			}
			c.Logout()
			if b.Sessions() != 0 {
				t.Errorf("%d sessions after the logout", b.Sessions())
			}
		})
	}
}

func sameUUID(shown, own string) bool {
	return slices.Contains(model.UUIDVariants(own), strings.ToLower(shown))
}

func netboot(t *testing.T, c *schemas.ComputerSystem, s *sim.Server) {
	t.Helper()
	want := schemas.Boot{BootSourceOverrideEnabled: schemas.OnceBootSourceOverrideEnabled, BootSourceOverrideTarget: schemas.PxeBootSource}
	if c.Boot.BootSourceOverrideMode != "" {
		want.BootSourceOverrideMode = schemas.UEFIBootSourceOverrideMode
	}
	if err := c.SetBoot(&want); err != nil {
		t.Errorf("SetBoot: %v", err)
	}
	if _, target, _ := s.Override(); target != "Pxe" {
		t.Errorf("override target is %s", target)
	}
}

func inventory(t *testing.T, s *schemas.ComputerSystem, traits sim.Traits) {
	t.Helper()
	processors, err := s.Processors()
	if err != nil || len(processors) == 0 {
		t.Errorf("processors: %d, %v", len(processors), err)
	}
	memory, err := s.Memory()
	if err != nil || len(memory) == 0 {
		t.Errorf("memory: %d, %v", len(memory), err)
	}
	nics, err := s.EthernetInterfaces()
	if err != nil || traits.EthernetInterfaces && len(nics) != 2 {
		t.Errorf("NICs: %d, %v", len(nics), err)
	}
	if traits.Storage {
		drives(t, s)
	}
	if _, err := s.Bios(); err != nil {
		t.Errorf("BIOS: %v", err)
	}
	if types, err := s.GetSupportedResetTypes(); err != nil || len(types) == 0 {
		t.Errorf("reset types: %v, %v", types, err)
	}
}

func drives(t *testing.T, s *schemas.ComputerSystem) {
	t.Helper()
	storage, err := s.Storage()
	if err != nil || len(storage) != 1 {
		t.Fatalf("storage: %d, %v", len(storage), err)
	}
	drives, err := storage[0].Drives()
	if err != nil || len(drives) != 2 {
		t.Errorf("drives: %d, %v", len(drives), err)
	}
	volumes, err := storage[0].Volumes()
	if err != nil || len(volumes) != 1 {
		t.Errorf("volumes: %d, %v", len(volumes), err)
	}
}
