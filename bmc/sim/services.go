package sim

import (
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"ingot/model"
)

// newTree makes the resources that every BMC of a personality has.
func newTree(k *personality) *node {
	read := []string{http.MethodGet, http.MethodHead}
	t := &node{
		schema: rootSchema, get: getRoot, open: read,
		child: map[string]*node{
			"Systems":        systemsNode(k),
			"Chassis":        chassisNode(k),
			"Managers":       managersNode(k),
			"SessionService": sessionNode(),
			"AccountService": accountNode(),
			"UpdateService":  updateNode(),
			"EventService":   eventNode(),
			"TaskService":    taskNode(),
			"Registries":     registriesNode(),
		},
	}
	k.keepWhatItHas(t.child)
	if !k.has("JsonSchemas") {
		return t
	}
	schemas := schemasOf(t)
	t.child["JsonSchemas"] = collection("JsonSchemaFile", "Schemas", fixed(schemas...), &node{schema: "JsonSchemaFile.v1_1_5", get: getSchemaFile})
	return t
}

// rootSchema is the first that has TopSkipQuery.
const rootSchema = "ServiceRoot.v1_17_0"

func getRoot(v view) object {
	b, k := v.bmc, v.bmc.rack.kind
	o := object{
		"Id": "RootService", "Name": "Root Service", "RedfishVersion": k.root.version, "UUID": b.uuid,
		"Systems": v.link("Systems"), "Chassis": v.link("Chassis"), "Managers": v.link("Managers"),
		"SessionService": v.link("SessionService"), "AccountService": v.link("AccountService"),
		"UpdateService": v.link("UpdateService"), "EventService": v.link("EventService"), "Tasks": v.link("TaskService"),
		"Registries": v.link("Registries"), "JsonSchemas": v.link("JsonSchemas"),
		"Links": object{"Sessions": v.link("SessionService/Sessions")},
	}
	for name, value := range map[string]string{"Vendor": k.root.vendor, "Product": k.root.product} {
		if value != "" {
			o[name] = value
		}
	}
	if features := k.root.features(); features != nil {
		o["ProtocolFeaturesSupported"] = features
	}
	if !k.has("RootUUID") {
		delete(o, "UUID")
	}
	return k.trim(o)
}

// features are ProtocolFeaturesSupported, nil of a service that does not say.
func (r rootForm) features() object {
	if r.expand == (expansion{}) && !r.only {
		return nil
	}
	expands := r.expand.levels > 0
	expand := object{"ExpandAll": r.expand.all, "Levels": expands, "Links": r.expand.all, "NoLinks": expands}
	if expands {
		expand["MaxLevels"] = r.expand.levels
	}
	o := object{"ExpandQuery": expand, "OnlyMemberQuery": r.only, "SelectQuery": false, "FilterQuery": false, "ExcerptQuery": false}
	if r.topSkip {
		o["TopSkipQuery"] = true
	}
	return o
}

func chassisNode(k *personality) *node {
	chassis := &node{
		schema: "Chassis.v1_23_0", get: getChassis,
		child: map[string]*node{
			"Power":           {schema: "Power.v1_7_1", get: getPower},
			"Thermal":         {schema: "Thermal.v1_7_1", get: getThermal},
			"NetworkAdapters": collection("NetworkAdapter", "Network Adapters", fixed(cardID), cardNode()),
		},
	}
	k.keepWhatItHas(chassis.child)
	return collection("Chassis", "Chassis", chassisIDs, chassis)
}

func chassisIDs(v view) []string {
	ids := make([]string, len(v.bmc.servers))
	for i, s := range v.bmc.servers {
		ids[i] = s.chassisID()
	}
	return ids
}

func (s *mainboard) chassisID() string {
	return s.memberID(s.rack().kind.chassis)
}

func (v view) chassisServer() resource {
	for _, s := range v.bmc.servers {
		if s.chassisID() == v.ids[0] {
			return resource{s}
		}
	}
	return resource{}
}

func getChassis(v view) object {
	s, k := v.chassisServer(), v.bmc.rack.kind
	manager := []object{link(root + "/Managers/" + k.manager)}
	return k.trim(object{
		"Id": v.id(), "Name": "Chassis", "ChassisType": "RackMount", "Manufacturer": k.manufacturer, "Model": s.model,
		"SKU": k.sku, "SerialNumber": s.serial, "PartNumber": k.sku, "PowerState": string(s.reportedPower()), "Status": status(),
		"Location": object{"Placement": object{"Rack": "rack1", "RackOffset": v.bmc.number, "RackOffsetUnits": "EIA_310"}},
		"Power":    v.link("Power"), "Thermal": v.link("Thermal"), "NetworkAdapters": v.link("NetworkAdapters"),
		"Links": object{"ComputerSystems": []object{link(s.URI())}, "ManagedBy": manager, "ManagersInChassis": manager},
	})
}

func getPower(v view) object {
	s := v.chassisServer()
	watts := 12
	if s.Power() != model.PowerOff {
		watts = 310
	}
	supply := func(i int) object {
		n := strconv.Itoa(i)
		return object{
			"@odata.id": v.path + "#/PowerSupplies/" + n, "MemberId": n, "Name": "PSU" + n, "PowerSupplyType": "AC", "LineInputVoltage": 230,
			"PowerCapacityWatts": 1100, "LastPowerOutputWatts": watts / 2, "SerialNumber": s.identity().part(21 + i), "Status": status(),
		}
	}
	return object{
		"Id": "Power", "Name": "Power",
		"PowerControl": []object{{
			"@odata.id": v.path + "#/PowerControl/0", "MemberId": "0", "Name": "System Power Control",
			"PowerConsumedWatts": watts, "PowerCapacityWatts": 1100, "Status": status(),
		}},
		"PowerSupplies": []object{supply(0), supply(1)},
	}
}

func getThermal(v view) object {
	celsius, rpm := 24, 0
	if v.chassisServer().Power() != model.PowerOff {
		celsius, rpm = 41, 7200
	}
	return object{
		"Id": "Thermal", "Name": "Thermal",
		"Temperatures": []object{{
			"@odata.id": v.path + "#/Temperatures/0", "MemberId": "0", "Name": "Inlet Temp", "PhysicalContext": "Intake",
			"ReadingCelsius": celsius, "UpperThresholdCritical": 85, "Status": status(),
		}},
		"Fans": []object{{
			"@odata.id": v.path + "#/Fans/0", "MemberId": "0", "Name": "Fan 1", "Reading": rpm, "ReadingUnits": "RPM", "Status": status(),
		}},
	}
}

func managersNode(k *personality) *node {
	manager := &node{
		schema: "Manager.v1_18_0", get: getManager,
		child: map[string]*node{
			"EthernetInterfaces": collection("EthernetInterface", "Interfaces of the BMC", fixed("eth0"), &node{schema: "EthernetInterface.v1_9_0", get: getManagerNIC}),
			"NetworkProtocol":    {schema: "ManagerNetworkProtocol.v1_9_1", get: getNetworkProtocol},
		},
	}
	if k.has("VirtualMedia") {
		manager.child["VirtualMedia"] = mediaNode()
	}
	if k.managerResets != nil {
		manager.child["Actions"] = &node{child: map[string]*node{"Manager.Reset": {post: resetManager, bodyless: true}}}
	}
	return collection("Manager", "Managers", fixed(k.manager), manager)
}

func getManager(v view) object {
	b, k := v.bmc, v.bmc.rack.kind
	var servers, chassis []object
	for _, s := range b.servers {
		servers = append(servers, link(s.URI()))
		chassis = append(chassis, link(root+"/Chassis/"+s.chassisID()))
	}
	links := object{"ManagerForServers": servers, "ManagerForChassis": chassis, "ManagerInChassis": chassis[0]}
	if !k.has("ManagerForServers") {
		delete(links, "ManagerForServers")
	}
	o := object{
		"Id": v.id(), "Name": "Manager", "ManagerType": "BMC", "Manufacturer": k.manufacturer, "Model": k.bmcModel,
		"FirmwareVersion": k.bmcFirmware, "UUID": b.uuid, "ServiceEntryPointUUID": b.uuid, "SerialNumber": b.serial,
		"PowerState": "On", "Status": status(), "DateTime": redfishTime(time.Now()), "DateTimeLocalOffset": "+00:00",
		"LastResetTime":      redfishTime(time.Unix(b.bootedAt.Load(), 0)),
		"GraphicalConsole":   object{"ServiceEnabled": true, "MaxConcurrentSessions": 2, "ConnectTypesSupported": []string{"KVMIP"}},
		"EthernetInterfaces": v.link("EthernetInterfaces"),
		"NetworkProtocol":    v.link("NetworkProtocol"),
		"Links":              links,
	}
	if k.has("VirtualMedia") {
		o["VirtualMedia"] = v.link("VirtualMedia")
	}
	if k.managerResets != nil {
		o["Actions"] = object{"#Manager.Reset": object{
			"target": v.path + "/Actions/Manager.Reset", "ResetType@Redfish.AllowableValues": k.managerResets,
		}}
	}
	return o
}

// resetManager restarts the BMC: the machines go on, the sessions are gone.
func resetManager(v view, sent object) reply {
	if len(sent) > 0 {
		if _, problem := parameter("Manager.Reset", sent, "ResetType", v.bmc.rack.kind.managerResets); problem != nil {
			return failure(http.StatusBadRequest, problem)
		}
	}
	v.bmc.sessions.clear()
	v.bmc.bootedAt.Store(time.Now().Unix())
	return reply{status: http.StatusNoContent}
}

func getManagerNIC(v view) object {
	b := v.bmc
	host, _, _ := net.SplitHostPort(b.Addr())
	mac := strings.ToUpper(b.mac)
	o := object{
		"Id": v.id(), "Name": "BMC Interface", "Description": "Management network interface", "InterfaceEnabled": true, "LinkStatus": "LinkUp",
		"MACAddress": mac, "PermanentMACAddress": mac, "HostName": string(b.name), "FQDN": string(b.name), "SpeedMbps": 1000, "FullDuplex": true, "Status": status(),
	}
	if net.ParseIP(host).To4() != nil {
		o["IPv4Addresses"] = []object{{"Address": host, "SubnetMask": "255.0.0.0", "AddressOrigin": "DHCP", "Gateway": host}}
	} else {
		o["IPv6Addresses"] = []object{{"Address": host, "PrefixLength": 128, "AddressOrigin": "DHCPv6", "AddressState": "Preferred"}}
	}
	return o
}

func getNetworkProtocol(v view) object {
	_, port, _ := net.SplitHostPort(v.bmc.Addr())
	n, _ := strconv.Atoi(port)
	return object{
		"Id": "NetworkProtocol", "Name": "Network Protocols", "HostName": string(v.bmc.name), "FQDN": string(v.bmc.name), "Status": status(),
		"HTTP":  object{"ProtocolEnabled": false, "Port": 80},
		"HTTPS": object{"ProtocolEnabled": true, "Port": n},
		"SSH":   object{"ProtocolEnabled": false, "Port": 22},
		"IPMI":  object{"ProtocolEnabled": false, "Port": 623},
	}
}

func sessionNode() *node {
	sessions := collection("Session", "Sessions", func(v view) []string { return v.bmc.sessions.ids() },
		&node{schema: "Session.v1_7_0", get: getSession, remove: closeSession})
	sessions.post, sessions.open = openSession, []string{http.MethodPost}
	return &node{
		schema: "SessionService.v1_1_9", child: map[string]*node{"Sessions": sessions},
		get: func(v view) object {
			return object{
				"Id": "SessionService", "Name": "Session Service", "ServiceEnabled": true,
				"SessionTimeout": int(v.bmc.rack.kind.idle / time.Second), "Status": status(), "Sessions": v.link("Sessions"),
			}
		},
	}
}

func getSession(v view) object {
	s, _ := v.bmc.sessions.get(v.id()) // gone meanwhile: empty
	return sessionObject(s)
}

func sessionObject(s session) object {
	return object{"Id": s.id, "Name": "Session " + s.id, "UserName": s.user, "CreatedTime": redfishTime(s.created)}
}

func openSession(v view, sent object) reply {
	b := v.bmc
	name, problem := text("UserName", sent["UserName"])
	if problem != nil {
		return failure(http.StatusBadRequest, newMessage(msgPropertyMissing, "UserName"))
	}
	password, problem := text("Password", sent["Password"])
	if problem != nil {
		return failure(http.StatusBadRequest, newMessage(msgPropertyMissing, "Password"))
	}
	if b.faults.has(FaultUnauthorized) || !b.accounts.check(name, password) {
		return unauthorized()
	}
	if b.faults.has(FaultSessionLimit) {
		return failure(http.StatusServiceUnavailable, newMessage(msgSessionLimit))
	}
	token, s, ok := b.sessions.add(name, b.rack.sessionRules(), time.Now())
	if !ok {
		return failure(http.StatusServiceUnavailable, newMessage(msgSessionLimit))
	}
	o := sessionObject(s)
	path := v.path + "/" + s.id
	o["@odata.id"], o["@odata.type"] = path, "#Session.v1_7_0.Session"
	return reply{status: http.StatusCreated, body: o, location: path, token: token}
}

func closeSession(v view) reply {
	v.bmc.sessions.remove(v.id())
	return reply{status: http.StatusNoContent}
}

// roles are the standard roles (DSP0266 §13.2).
var roles = map[string][]string{
	"Administrator": {"Login", "ConfigureManager", "ConfigureUsers", "ConfigureSelf", "ConfigureComponents"},
	"Operator":      {"Login", "ConfigureSelf", "ConfigureComponents"},
	"ReadOnly":      {"Login", "ConfigureSelf"},
}

var roleNames = []string{"Administrator", "Operator", "ReadOnly"}

func accountNode() *node {
	accounts := collection("ManagerAccount", "Accounts", func(v view) []string { return v.bmc.accounts.ids() }, &node{
		schema: "ManagerAccount.v1_10_0", get: getAccount, remove: deleteAccount,
		set: map[string]setter{"Password": setPassword, "RoleId": setRole, "Enabled": setEnabled, "UserName": setUserName},
	})
	accounts.post = createAccount
	return &node{
		schema: "AccountService.v1_13_0",
		get: func(v view) object {
			return object{
				"Id": "AccountService", "Name": "Account Service", "ServiceEnabled": true, "Status": status(),
				"MinPasswordLength": minPassword, "MaxPasswordLength": maxPassword, "AccountLockoutThreshold": 0,
				"Accounts": v.link("Accounts"), "Roles": v.link("Roles"),
			}
		},
		child: map[string]*node{
			"Accounts": accounts,
			"Roles":    collection("Role", "Roles", fixed(roleNames...), &node{schema: "Role.v1_3_1", get: getRole}),
		},
	}
}

// The lengths of passwords.
const (
	minPassword = 8
	maxPassword = 64
)

func getRole(v view) object {
	return object{"Id": v.id(), "Name": v.id(), "RoleId": v.id(), "IsPredefined": true, "AssignedPrivileges": roles[v.id()]}
}

func getAccount(v view) object {
	a, _ := v.bmc.accounts.get(v.id())
	return object{
		"Id": v.id(), "Name": "Account " + v.id(), "UserName": a.name, "Password": nil, "RoleId": a.role, "Enabled": a.enabled, "Locked": false,
		"AccountTypes": []string{"Redfish"}, "Links": object{"Role": link(root + "/AccountService/Roles/" + a.role)},
	}
}

// createAccount makes an account out of UserName, Password and RoleId.
func createAccount(v view, sent object) reply {
	a := account{enabled: sent["Enabled"] != false}
	var problems []*message
	take := func(name string, check func(any) (string, *message)) string {
		if sent[name] == nil {
			problems = append(problems, newMessage(msgPropertyMissing, name).about("#/"+name))
			return ""
		}
		value, problem := check(sent[name])
		if problem != nil {
			problems = append(problems, problem)
		}
		return value
	}
	a.name = take("UserName", validUserName)
	a.password = model.NewSensitive(take("Password", validPassword))
	a.role = take("RoleId", validRole)
	if len(problems) > 0 {
		return failure(http.StatusBadRequest, problems...)
	}
	if v.bmc.accounts.named(a.name) {
		return failure(http.StatusBadRequest, newMessage(msgExists, "ManagerAccount", "UserName", a.name))
	}
	id := v.bmc.accounts.add(a)
	if id == "" {
		return failure(http.StatusBadRequest, newMessage(msgLimit))
	}
	made, _ := service{v.bmc}.resolve(v.path + "/" + id)
	return reply{status: http.StatusCreated, body: made.render(), location: made.path}
}

func validUserName(value any) (string, *message) {
	name, problem := text("UserName", value)
	if problem == nil && (name == "" || len(name) > 32) {
		problem = newMessage(msgPropertyValue, name[:min(len(name), 32)], "UserName").about("#/UserName")
	}
	return name, problem
}

func validPassword(value any) (string, *message) {
	password, ok := value.(string)
	if !ok || len(password) < minPassword || len(password) > maxPassword {
		return "", newMessage(msgPropertyValue, "(hidden)", "Password").about("#/Password")
	}
	return password, nil
}

func validRole(value any) (string, *message) { return oneOf("RoleId", value, roleNames) }

func deleteAccount(v view) reply {
	if v.id() == "1" {
		return failure(http.StatusMethodNotAllowed, newMessage(msgMethod))
	}
	a, _ := v.bmc.accounts.get(v.id())
	v.bmc.accounts.change(v.id(), func(a *account) { *a = account{} })
	v.bmc.sessions.removeUser(a.name)
	return reply{status: http.StatusNoContent}
}

func setPassword(v view, value any) *message {
	password, problem := validPassword(value)
	if problem == nil {
		v.bmc.accounts.change(v.id(), func(a *account) { a.password = model.NewSensitive(password) })
	}
	return problem
}

func setRole(v view, value any) *message {
	role, problem := validRole(value)
	if problem == nil {
		v.bmc.accounts.change(v.id(), func(a *account) { a.role = role })
	}
	return problem
}

func setEnabled(v view, value any) *message {
	enabled, ok := value.(bool)
	if !ok {
		return newMessage(msgPropertyType, string(mustJSON(value)), "Enabled").about("#/Enabled")
	}
	v.bmc.accounts.change(v.id(), func(a *account) { a.enabled = enabled })
	return nil
}

func setUserName(v view, value any) *message {
	name, problem := validUserName(value)
	if problem != nil {
		return problem
	}
	if v.bmc.accounts.named(name) {
		return newMessage(msgExists, "ManagerAccount", "UserName", name).about("#/UserName")
	}
	v.bmc.accounts.change(v.id(), func(a *account) { a.name = name })
	return nil
}

func updateNode() *node {
	return &node{
		schema: "UpdateService.v1_11_3",
		get: func(v view) object {
			return object{
				"Id": "UpdateService", "Name": "Update Service", "ServiceEnabled": true, "Status": status(),
				"FirmwareInventory": v.link("FirmwareInventory"), "Actions": object{},
			}
		},
		child: map[string]*node{
			"FirmwareInventory": collection("SoftwareInventory", "Firmware", fixed("BMC", "BIOS", "NIC"), &node{schema: "SoftwareInventory.v1_8_0", get: getFirmware}),
		},
	}
}

func getFirmware(v view) object {
	k := v.bmc.rack.kind
	version := map[string]string{"BMC": k.bmcFirmware, "BIOS": k.bios, "NIC": k.hardware.NICFirmware}[v.id()]
	return object{"Id": v.id(), "Name": v.id() + " Firmware", "Version": version, "Updateable": false, "Status": status()}
}

func taskNode() *node {
	return &node{
		schema: "TaskService.v1_2_0",
		get: func(v view) object {
			return object{
				"Id": "TaskService", "Name": "Task Service", "ServiceEnabled": true, "Status": status(), "DateTime": redfishTime(time.Now()),
				"CompletedTaskOverWritePolicy": "Oldest", "Tasks": v.link("Tasks"),
			}
		},
		child: map[string]*node{"Tasks": collection("Task", "Tasks", fixed(), &node{schema: "Task.v1_7_1", get: func(view) object { return object{} }})},
	}
}

// schemasOf lists the schemas of the resources below n, sorted.
func schemasOf(n *node) []string {
	return schemasBelow(n, func(n *node) bool { return n.ids == nil })
}

// collectionsOf lists those of the collections.
func collectionsOf(n *node) []string {
	return schemasBelow(n, func(n *node) bool { return n.ids != nil })
}

func schemasBelow(n *node, wanted func(*node) bool) []string {
	seen := make(map[string]bool)
	var walk func(*node)
	walk = func(n *node) {
		if n.schema != "" && wanted(n) {
			seen[n.schema] = true
		}
		for _, c := range n.child {
			walk(c)
		}
		if n.member != nil {
			walk(n.member)
		}
	}
	walk(n)
	return slices.Sorted(maps.Keys(seen))
}
