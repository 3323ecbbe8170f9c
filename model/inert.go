package model

// inert is what manifests may say and nothing is done about yet: each has a warning, so that
// nobody believes in it.
var inert = []struct {
	kind  Kind
	field string // of the spec
	says  string
}{
	{kind: KindBMC, field: "consoleProtocol", says: "has no effect yet: Ingot opens no consoles"},
	{kind: KindServer, field: "power", says: "is deprecated and ignored: power belongs to the ServerClaim"},
}

// checkInert warns of what nothing is done about.
func checkInert(d *fieldChecker, kind Kind) {
	for _, i := range inert {
		if i.kind == kind && child(child(d.root, "spec"), i.field) != nil {
			d.in("spec", func() { d.odd(i.field, i.says) })
		}
	}
}
