package model

// inert is what manifests may say and nothing is done about yet: each has a warning, so that
// nobody believes in it.
var inert = []struct {
	kind  Kind
	field string // of the spec; "" = the whole kind
	as    string // the one value that says what is done anyway
	says  string
}{
	{kind: KindBMC, field: "consoleProtocol", says: "has no effect yet: Ingot opens no consoles"},
	{kind: KindServer, field: "power", says: "is deprecated and ignored: power belongs to the ServerClaim"},
	{kind: KindServer, field: "indicatorLED", says: "has no effect yet: Ingot switches no indicators"},
	{kind: KindServer, field: "bootOrder", says: "has no effect yet: Ingot sets what is booted once, and leaves the order as it is"},
	{kind: KindServer, field: "bootConfigurationRef", says: "has no effect yet: a server boots what its claim says"},
	{kind: KindServerMaintenance, field: "policy", as: "Enforced", says: "has no effect yet: maintenance begins without asking the claim's owner"},
	{kind: KindServerMaintenance, field: "serverPower", as: string(PowerOff), says: "has no effect yet: a server under maintenance is powered off"},
	{kind: KindServerBootConfiguration, says: "a ServerBootConfiguration has no effect yet: a server boots what its claim says"},
	{kind: KindServerReadinessRule, says: "a ServerReadinessRule has no effect yet: no taint is kept on servers for it"},
}

// checkInert warns of what nothing is done about.
func (d *nodeDecoder) checkInert(kind Kind) {
	for _, i := range inert {
		switch {
		case i.kind != kind:
		case i.field == "":
			d.odd("kind", i.says)
		default:
			value := child(child(d.root, "spec"), i.field)
			if value != nil && (i.as == "" || value.Value != i.as) {
				d.in("spec", func() { d.odd(i.field, i.says) })
			}
		}
	}
}
