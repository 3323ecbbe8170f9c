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
)

const system = "/redfish/v1/Systems/1"

func TestEveryLinkOfTheTreeLeadsSomewhere(t *testing.T) {
	for _, kind := range sim.Personalities() {
		t.Run(kind, func(t *testing.T) {
			rack := start(t, sim.Options{Personality: kind, SystemsPerBMC: 2})
			c := dial(t, rack.BMCs()[0])
			seen := map[string]bool{}
			walk(t, c, "/redfish/v1/", seen)
			if len(seen) < 80 {
				t.Errorf("only %d resources", len(seen))
			}
		})
	}
}

func walk(t *testing.T, c *client, path string, seen map[string]bool) {
	path, _, _ = strings.Cut(path, "#")
	if seen[path] {
		return
	}
	seen[path] = true
	body := c.get(path)
	if body["@odata.id"] != path {
		t.Errorf("%s: @odata.id is %v", path, body["@odata.id"])
	}
	for _, name := range []string{"@odata.type", "@odata.etag", "Name"} {
		if body[name] == nil {
			t.Errorf("%s has no %s", path, name)
		}
	}
	for _, link := range links(body) {
		walk(t, c, link, seen)
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

func TestOnlyTheRootIsPublic(t *testing.T) {
	rack := start(t, sim.Options{})
	c := dial(t, rack.BMCs()[0])
	for path, want := range map[string]int{
		"/redfish": 200, "/redfish/v1": 200, "/redfish/v1/": 200, "/redfish/v1/odata": 200, "/redfish/v1/$metadata": 200,
		"/redfish/v1/Systems": 401, system: 401, "/redfish/v1/SessionService/Sessions": 401, "/redfish/v1/Nowhere": 401, "/": 401,
	} {
		if a := c.do("GET", path, "", "Authorization", ""); a.status != want || want == 401 && a.header.Get("WWW-Authenticate") == "" {
			t.Errorf("GET %s: %d, want %d", path, a.status, want)
		}
	}
}

func TestRequestsThatCannotBeCarriedOutSayWhy(t *testing.T) {
	rack := start(t, sim.Options{})
	c := dial(t, rack.BMCs()[0])
	tests := []struct {
		name, method, path, body string
		header                   []string
		status                   int
		message                  string
	}{
		{name: "no such resource", method: "GET", path: "/redfish/v1/Systems/9", status: 404, message: "ResourceMissingAtURI"},
		{name: "a method the resource lacks", method: "DELETE", path: system, status: 405, message: "OperationNotAllowed"},
		{name: "POST on a resource", method: "POST", path: system, body: "{}", status: 405, message: "OperationNotAllowed"},
		{name: "no JSON", method: "PATCH", path: system, body: "{", status: 400, message: "MalformedJSON"},
		{name: "no object", method: "PATCH", path: system, body: "[]", status: 400, message: "UnrecognizedRequestBody"},
		{name: "nothing", method: "PATCH", path: system, body: "{}", status: 400, message: "UnrecognizedRequestBody"},
		{name: "unknown property", method: "PATCH", path: system, body: `{"Colour":"red"}`, status: 400, message: "PropertyUnknown"},
		{name: "read-only property", method: "PATCH", path: system, body: `{"SerialNumber":"1"}`, status: 400, message: "PropertyNotWritable"},
		{name: "value of the wrong type", method: "PATCH", path: system, body: `{"AssetTag":1}`, status: 400, message: "PropertyValueTypeError"},
		{
			name: "value out of the list", method: "PATCH", path: system, body: `{"Boot":{"BootSourceOverrideTarget":"Tape"}}`,
			status: 400, message: "PropertyValueNotInList",
		},
		{name: "unknown boot property", method: "PATCH", path: system, body: `{"Boot":{"Speed":1}}`, status: 400, message: "PropertyUnknown"},
		{
			name: "boot from a URI that is none", method: "PATCH", path: system, body: `{"Boot":{"HttpBootUri":"nowhere"}}`,
			status: 400, message: "PropertyValueNotInList",
		},
		{name: "Boot is no object", method: "PATCH", path: system, body: `{"Boot":"Pxe"}`, status: 400, message: "PropertyValueTypeError"},
		{
			name: "reset without a type", method: "POST", path: system + "/Actions/ComputerSystem.Reset", body: `{"Other":1}`,
			status: 400, message: "ActionParameterUnknown",
		},
		{
			name: "reset of no known type", method: "POST", path: system + "/Actions/ComputerSystem.Reset",
			body: `{"ResetType":"Explode"}`, status: 400, message: "ActionParameterValueNotInList",
		},
		{
			name: "restart when off", method: "POST", path: system + "/Actions/ComputerSystem.Reset",
			body: `{"ResetType":"ForceRestart"}`, status: 409, message: "ActionNotSupportedInState",
		},
		{
			name: "stale ETag", method: "PATCH", path: system, body: `{"AssetTag":"x"}`, header: []string{"If-Match", `"old"`},
			status: 412, message: "PreconditionFailed",
		},
		{
			name: "unknown OData version", method: "GET", path: system, header: []string{"OData-Version", "3.0"}, status: 412,
			message: "HeaderInvalid",
		},
		{name: "no acceptable form", method: "GET", path: system, header: []string{"Accept", "text/html"}, status: 406, message: "HeaderInvalid"},
		{name: "query that is not supported", method: "GET", path: system + "?$filter=x", status: 501, message: "QueryNotSupported"},
		{name: "bad expand", method: "GET", path: system + "?$expand=yes", status: 400, message: "QueryParameterValueError"},
		{name: "expand too deep", method: "GET", path: system + "?$expand=.($levels=9)", status: 400, message: "QueryParameterOutOfRange"},
		{name: "only with a value", method: "GET", path: "/redfish/v1/Systems?only=1", status: 400, message: "QueryParameterValueError"},
		{name: "negative skip", method: "GET", path: "/redfish/v1/Systems?$skip=-1", status: 400, message: "QueryParameterOutOfRange"},
		{
			name: "login without password", method: "POST", path: "/redfish/v1/SessionService/Sessions",
			body: `{"UserName":"admin"}`, status: 400, message: "PropertyMissing",
		},
		{
			name: "login with a wrong password", method: "POST", path: "/redfish/v1/SessionService/Sessions",
			body: `{"UserName":"admin","Password":"x"}`, status: 401, message: "NoValidSession",
		},
		{
			name: "account with a short password", method: "POST", path: "/redfish/v1/AccountService/Accounts",
			body: `{"UserName":"a","Password":"x","RoleId":"Operator"}`, status: 400, message: "PropertyValueNotInList",
		},
		{
			name: "account of that name exists", method: "POST", path: "/redfish/v1/AccountService/Accounts",
			body: `{"UserName":"admin","Password":"long-enough","RoleId":"Operator"}`, status: 400,
			message: "ResourceAlreadyExists",
		},
		{
			name: "subscription to nowhere", method: "POST", path: "/redfish/v1/EventService/Subscriptions",
			body: `{"Destination":"nowhere"}`, status: 400, message: "PropertyValueNotInList",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a := c.do(tt.method, tt.path, tt.body, tt.header...)
			want := []string{"Base.1.8." + tt.message}
			if a.status != tt.status || !cmp.Equal(a.messageIDs(), want) {
				t.Errorf("%d %v, want %d %v", a.status, a.messageIDs(), tt.status, want)
			}
			if tt.status == 405 && a.header.Get("Allow") == "" {
				t.Error("405 without Allow")
			}
		})
	}
}

func TestAChangeNeedsTheETagOfNow(t *testing.T) {
	rack := start(t, sim.Options{})
	c := dial(t, rack.BMCs()[0])
	read := c.do("GET", system, "")
	etag := read.header.Get("ETag")
	if etag == "" || read.body["@odata.etag"] != etag {
		t.Fatalf("ETag %q, @odata.etag %v", etag, read.body["@odata.etag"])
	}
	if a := c.do("GET", system, "", "If-None-Match", etag); a.status != http.StatusNotModified || a.body != nil {
		t.Errorf("unmodified: %d %v", a.status, a.body)
	}
	if a := c.do("PATCH", system, `{"AssetTag":"rack 7"}`, "If-Match", etag); a.status != http.StatusOK || a.body["AssetTag"] != "rack 7" {
		t.Errorf("patch: %d %v", a.status, a.body["AssetTag"])
	}
	if a := c.do("GET", system, "", "If-None-Match", etag); a.status != http.StatusOK || a.header.Get("ETag") == etag {
		t.Errorf("modified: %d %s", a.status, a.header.Get("ETag"))
	}
	if a := c.do("PATCH", system, `{"AssetTag":"rack 8"}`, "If-Match", etag); a.status != http.StatusPreconditionFailed {
		t.Errorf("patch with the old ETag: %d", a.status)
	}
	manager := c.do("GET", "/redfish/v1/Managers/BMC", "")
	if a := c.do("GET", "/redfish/v1/Managers/BMC", "", "If-None-Match", manager.header.Get("ETag")); a.status != http.StatusNotModified {
		t.Errorf("the clock alone modifies a manager: %d", a.status)
	}
}

func TestAPatchDoesWhatItCanAndNamesTheRest(t *testing.T) {
	rack := start(t, sim.Options{})
	c := dial(t, rack.BMCs()[0])
	a := c.do("PATCH", system, `{"AssetTag":"x","Colour":"red"}`)
	if a.status != 200 || a.body["AssetTag"] != "x" || a.body["@Message.ExtendedInfo"] == nil {
		t.Errorf("%d %v %v", a.status, a.body["AssetTag"], a.body["@Message.ExtendedInfo"])
	}
}

func TestHEADIsGETWithoutBody(t *testing.T) {
	rack := start(t, sim.Options{})
	c := dial(t, rack.BMCs()[0])
	get, head := c.do("GET", system, ""), c.do("HEAD", system, "")
	if head.status != 200 || head.body != nil {
		t.Errorf("%d %v", head.status, head.body)
	}
	for _, h := range []string{"ETag", "Content-Length", "Content-Type", "Allow", "Link", "OData-Version"} {
		if head.header.Get(h) == "" || head.header.Get(h) != get.header.Get(h) {
			t.Errorf("%s: %q, GET has %q", h, head.header.Get(h), get.header.Get(h))
		}
	}
}

func TestExpandPutsResourcesInThePlaceOfLinks(t *testing.T) {
	rack := start(t, sim.Options{SystemsPerBMC: 3})
	c := dial(t, rack.BMCs()[0])
	member := func(path string, i int) map[string]any { return c.get(path)["Members"].([]any)[i].(map[string]any) }

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
	linked := c.get(system + "?$expand=~")
	chassis := linked["Links"].(map[string]any)["Chassis"].([]any)[0].(map[string]any)
	if chassis["ChassisType"] != "RackMount" || len(linked["Processors"].(map[string]any)) != 1 {
		t.Errorf("links: %v", linked["Links"])
	}
	both := c.get(system + "?$expand=*($levels=1)")
	if len(both["Processors"].(map[string]any)) == 1 || len(both["Links"].(map[string]any)["Chassis"].([]any)[0].(map[string]any)) == 1 {
		t.Error("* expands both")
	}
}

func TestCollectionsArePagedAndSorted(t *testing.T) {
	rack := start(t, sim.Options{SystemsPerBMC: 12})
	c := dial(t, rack.BMCs()[0])
	ids := func(body map[string]any) (ids []string) {
		for _, m := range body["Members"].([]any) {
			ids = append(ids, m.(map[string]any)["@odata.id"].(string))
		}
		return ids
	}
	all := ids(c.get("/redfish/v1/Systems"))
	if len(all) != 12 || !slices.IsSorted(all) {
		t.Errorf("members: %v", all)
	}
	page := c.get("/redfish/v1/Systems?$skip=2&$top=3")
	if got := ids(page); !slices.Equal(got, all[2:5]) || page["Members@odata.nextLink"] != "/redfish/v1/Systems?$skip=5&$top=3" ||
		page["Members@odata.count"] != 12.0 {
		t.Errorf("page: %v, next %v", got, page["Members@odata.nextLink"])
	}
	if got := ids(c.get("/redfish/v1/Systems?$skip=40")); len(got) != 0 {
		t.Errorf("beyond the end: %v", got)
	}
	if got := c.get("/redfish/v1/Managers?only"); got["ManagerType"] != "BMC" {
		t.Errorf("only: %v", got)
	}
}

func TestSessionsAreLimitedAndEnd(t *testing.T) {
	rack := start(t, sim.Options{SessionLimit: 2})
	b := rack.BMCs()[0]
	c := dial(t, b)
	login := func() answer {
		return c.do("POST", "/redfish/v1/SessionService/Sessions", `{"UserName":"admin","Password":"ingot-sim"}`, "Authorization", "")
	}
	first, second, third := login(), login(), login()
	if first.status != 201 || second.status != 201 || first.body["UserName"] != "admin" {
		t.Fatalf("logins: %d %d %v", first.status, second.status, first.body)
	}
	if third.status != 503 || third.header.Get("Retry-After") == "" ||
		!cmp.Equal(third.messageIDs(), []string{"Base.1.8.SessionLimitExceeded"}) {
		t.Errorf("beyond the limit: %d %v", third.status, third.messageIDs())
	}
	token := first.header.Get("X-Auth-Token")
	if a := c.do("GET", system, "", "X-Auth-Token", token); a.status != 200 {
		t.Errorf("with a token: %d", a.status)
	}
	if a := c.do("DELETE", first.header.Get("Location"), "", "X-Auth-Token", token); a.status != 204 {
		t.Errorf("logout: %d", a.status)
	}
	if a := c.do("GET", system, "", "X-Auth-Token", token); a.status != 401 {
		t.Errorf("after the logout: %d", a.status)
	}
	if b.Sessions() != 1 || rack.Sessions().Total != 1 {
		t.Errorf("%d sessions, want 1", b.Sessions())
	}
	if a := login(); a.status != 201 {
		t.Errorf("a free slot is taken: %d", a.status)
	}
}

func TestAccountsAreMadeChangedAndDeleted(t *testing.T) {
	rack := start(t, sim.Options{})
	c := dial(t, rack.BMCs()[0])
	made := c.do("POST", "/redfish/v1/AccountService/Accounts", `{"UserName":"reader","Password":"first-one","RoleId":"ReadOnly"}`)
	if made.status != 201 {
		t.Fatalf("create: %d %v", made.status, made.body)
	}
	path := made.header.Get("Location")
	as := func(user, password, method, path, body string) int {
		req, _ := http.NewRequest(method, "https://"+c.bmc.Addr()+path, strings.NewReader(body))
		req.SetBasicAuth(user, password)
		resp, err := c.http.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp.StatusCode
	}
	if got := as("reader", "first-one", "GET", system, ""); got != 200 {
		t.Errorf("a reader reads: %d", got)
	}
	if got := as("reader", "first-one", "PATCH", system, `{"AssetTag":"x"}`); got != 403 {
		t.Errorf("a reader writes: %d", got)
	}
	if a := c.do("PATCH", path, `{"Password":"second-one","RoleId":"Operator"}`); a.status != 200 || a.body["Password"] != nil {
		t.Errorf("change: %d %v", a.status, a.body)
	}
	if got := as("reader", "first-one", "GET", system, ""); got != 401 {
		t.Errorf("the old password: %d", got)
	}
	if got := as("reader", "second-one", "PATCH", system, `{"AssetTag":"x"}`); got != 200 {
		t.Errorf("an operator writes: %d", got)
	}
	if a := c.do("DELETE", path, ""); a.status != 204 {
		t.Errorf("delete: %d", a.status)
	}
	if got := as("reader", "second-one", "GET", system, ""); got != 401 {
		t.Errorf("a deleted account: %d", got)
	}
	if a := c.do("DELETE", "/redfish/v1/AccountService/Accounts/1", ""); a.status != 405 {
		t.Errorf("delete the administrator: %d", a.status)
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
		c := dial(t, s.BMC())
		c.do("PATCH", s.URI(), once)
		if got := state(s); got != "Once Pxe Legacy" {
			t.Error(got)
		}
		c.do("PATCH", s.URI(), `{"Boot":{"BootSourceOverrideEnabled":"Once","BootSourceOverrideTarget":"Pxe","BootSourceOverrideMode":"UEFI"}}`)
		if got := state(s); got != "Once Pxe UEFI" {
			t.Error(got)
		}
	})
	t.Run("hpe refuses Disabled with None", func(t *testing.T) {
		s := start(t, sim.Options{Personality: "hpe"}).Servers()[0]
		a := dial(t, s.BMC()).do("PATCH", s.URI(), `{"Boot":{"BootSourceOverrideEnabled":"Disabled","BootSourceOverrideTarget":"None"}}`)
		if a.status != 400 || !cmp.Equal(a.messageIDs(), []string{"Base.1.8.PropertyValueConflict"}) {
			t.Errorf("%d %v", a.status, a.messageIDs())
		}
	})
	t.Run("ami takes it in the settings object with If-Match only", func(t *testing.T) {
		s := start(t, sim.Options{Personality: "ami"}).Servers()[0]
		c := dial(t, s.BMC())
		if a := c.do("PATCH", s.URI(), once); a.status != 400 ||
			!cmp.Equal(a.messageIDs(), []string{"Base.1.8.OperationSupportedInFutureStateURI"}) {
			t.Errorf("on the system: %d %v", a.status, a.messageIDs())
		}
		settings := c.get(s.URI())["@Redfish.Settings"].(map[string]any)["SettingsObject"].(map[string]any)["@odata.id"].(string)
		if settings != "/redfish/v1/Systems/Self/SD" {
			t.Errorf("settings at %s", settings)
		}
		if a := c.do("PATCH", settings, once); a.status != http.StatusPreconditionRequired {
			t.Errorf("without If-Match: %d", a.status)
		}
		if a := c.do("PATCH", settings, once, "If-Match", c.do("GET", settings, "").header.Get("ETag")); a.status != 200 ||
			state(s) != "Once Pxe UEFI" {
			t.Errorf("with If-Match: %d %s", a.status, state(s))
		}
	})
	t.Run("dell and hpe refuse to switch on what is on", func(t *testing.T) {
		for _, kind := range []string{"dell", "hpe"} {
			s := start(t, sim.Options{Personality: kind}).Servers()[0]
			s.SetRunning("debian")
			if a := dial(t, s.BMC()).do("POST", s.URI()+"/Actions/ComputerSystem.Reset", `{"ResetType":"On"}`); a.status != 409 {
				t.Errorf("%s: %d", kind, a.status)
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
			c, err := gofish.ConnectContext(context.Background(), gofish.ClientConfig{
				Endpoint: "https://" + b.Addr(), Username: "admin", Password: "ingot-sim",
				HTTPClient: &http.Client{Transport: transport}, NoModifyTransport: true, ReuseConnections: true,
			})
			if err != nil {
				t.Fatal(err)
			}
			systems, err := c.Service.Systems()
			if err != nil || len(systems) != 2 {
				t.Fatalf("systems: %d, %v", len(systems), err)
			}
			inventory(t, systems[1])
			s := rack.Servers()[1]
			if !strings.EqualFold(systems[1].UUID, s.UUID()) || systems[1].SerialNumber != s.SerialNumber() {
				t.Errorf("second system is %s %s, want %s %s", systems[1].UUID, systems[1].SerialNumber, s.UUID(), s.SerialNumber())
			}
			if err := systems[1].SetBoot(&schemas.Boot{
				BootSourceOverrideEnabled: schemas.OnceBootSourceOverrideEnabled, BootSourceOverrideTarget: schemas.PxeBootSource,
				BootSourceOverrideMode: schemas.UEFIBootSourceOverrideMode,
			}); err != nil {
				t.Errorf("SetBoot: %v", err)
			}
			if _, target, _ := s.Override(); target != "Pxe" {
				t.Errorf("override target is %s", target)
			}
			if _, err := systems[1].Reset(schemas.OnResetType); err != nil && !rackPublishesByInfo(kind) {
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

// rackPublishesByInfo reports whether reset types are in an ActionInfo only, which
// gofish looks up on request.
func rackPublishesByInfo(kind string) bool { return kind == "supermicro" || kind == "ami" }

func inventory(t *testing.T, s *schemas.ComputerSystem) {
	t.Helper()
	processors, err := s.Processors()
	if err != nil || len(processors) == 0 {
		t.Errorf("processors: %d, %v", len(processors), err)
	}
	memory, err := s.Memory()
	if err != nil || len(memory) < 8 {
		t.Errorf("memory: %d, %v", len(memory), err)
	}
	nics, err := s.EthernetInterfaces()
	if err != nil || len(nics) != 2 {
		t.Errorf("NICs: %d, %v", len(nics), err)
	}
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
	if _, err := s.Bios(); err != nil {
		t.Errorf("BIOS: %v", err)
	}
	if types, err := s.GetSupportedResetTypes(); err != nil || len(types) == 0 {
		t.Errorf("reset types: %v, %v", types, err)
	}
}
