package sim

import (
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// document answers for the few paths that are no resources: the versions, the
// OData documents and the message registry. It reports whether it did.
func (b service) document(w http.ResponseWriter, r *http.Request) bool {
	var body []byte
	kind := "application/json; charset=utf-8"
	switch strings.TrimSuffix(r.URL.Path, "/") {
	case "/redfish":
		body = mustJSON(object{"v1": root + "/"})
	case root + "/odata":
		body = mustJSON(b.serviceDocument())
	case root + "/$metadata":
		kind, body = "application/xml; charset=utf-8", []byte(metadata(schemasOf(b.rack.tree), collectionsOf(b.rack.tree)))
	default:
		return false
	}
	if !reads(r.Method) {
		rep := failure(http.StatusMethodNotAllowed, newMessage(msgMethod))
		rep.header = http.Header{"Allow": {"GET, HEAD"}}
		b.write(w, r, rep)
		return true
	}
	h := w.Header()
	h.Set("OData-Version", "4.0")
	h.Set("Allow", "GET, HEAD")
	h.Set("Content-Type", kind)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	if r.Method == http.MethodGet {
		_, _ = w.Write(body) // a client that has gone is no news
	}
	return true
}

// serviceDocument is the OData service document (DSP0266 §8.4.2).
func (b service) serviceDocument() object {
	entries := []object{{"name": "Service", "kind": "Singleton", "url": root + "/"}}
	for _, name := range slices.Sorted(maps.Keys(b.rack.tree.child)) {
		entries = append(entries, object{"name": name, "kind": "Singleton", "url": root + "/" + name})
	}
	return object{"@odata.context": root + "/$metadata", "value": append(entries, object{"name": "Sessions", "kind": "Singleton", "url": root + "/SessionService/Sessions"})}
}

// metadata is the OData metadata document, which names the schemas in use and
// where they are defined (DSP0266 §8.4.1).
func metadata(schemas, collections []string) string {
	var x strings.Builder
	x.WriteString(`<?xml version="1.0" encoding="UTF-8"?>` + "\n")
	x.WriteString(`<edmx:Edmx xmlns:edmx="http://docs.oasis-open.org/odata/ns/edmx" Version="4.0">` + "\n")
	include := func(file string, namespaces ...string) {
		x.WriteString(` <edmx:Reference Uri="http://redfish.dmtf.org/schemas/v1/` + file + `_v1.xml">` + "\n")
		for _, n := range namespaces {
			x.WriteString(`  <edmx:Include Namespace="` + n + `"/>` + "\n")
		}
		x.WriteString(" </edmx:Reference>\n")
	}
	for _, name := range schemas {
		kind, _, versioned := strings.Cut(name, ".")
		if versioned {
			include(kind, kind, name)
		} else {
			include(kind, kind)
		}
	}
	for _, kind := range collections {
		include(kind, kind)
	}
	include("RedfishExtensions", "RedfishExtensions.v1_0_0")
	include("Message", "Message", "Message.v1_1_1")
	include("Settings", "Settings", settingsSchema)
	x.WriteString(` <edmx:DataServices>
  <Schema xmlns="http://docs.oasis-open.org/odata/ns/edm" Namespace="Service">
   <EntityContainer Name="Service" Extends="` + rootSchema + `.ServiceContainer"/>
  </Schema>
 </edmx:DataServices>
</edmx:Edmx>
`)
	return x.String()
}

func getSchemaFile(v view) object {
	kind, _, _ := strings.Cut(v.id(), ".")
	return object{
		"Id": v.id(), "Name": kind + " Schema File", "Schema": "#" + v.id() + "." + kind, "Languages": []string{"en"},
		"Location": []object{{"Language": "en", "PublicationUri": "http://redfish.dmtf.org/schemas/v1/" + v.id() + ".json"}},
	}
}

// registriesNode is the one registry, with its texts beside its description.
func registriesNode() *node {
	n := collection("MessageRegistryFile", "Registries", fixed(registryFile), &node{schema: "MessageRegistryFile.v1_1_3", get: getRegistryFile})
	n.child = map[string]*node{registryFile + ".json": {schema: "MessageRegistry.v1_6_0", get: getRegistry}}
	return n
}

func getRegistryFile(v view) object {
	return object{
		"Id": registryFile, "Name": "Message Registry File", "Registry": registryName, "Languages": []string{"en"},
		"Location": []object{{"Language": "en", "Uri": v.path + ".json"}},
	}
}

func getRegistry(view) object {
	texts := make(object, len(messages))
	for key, m := range messages {
		texts[string(key)] = m.entry()
	}
	return object{
		"Id": registryFile, "Name": "Messages of the simulated BMC", "Language": "en", "RegistryPrefix": registryPrefix,
		"RegistryVersion": strings.TrimPrefix(registryFile, registryPrefix+"."), "OwningEntity": "Ingot", "Messages": texts,
	}
}

func (m messageText) entry() object {
	types := []string{}
	for n := 1; strings.Contains(m.text, "%"+strconv.Itoa(n)); n++ {
		types = append(types, "string")
	}
	return object{
		"Description": m.text, "Message": m.text, "MessageSeverity": m.severity, "Severity": m.severity,
		"NumberOfArgs": len(types), "ParamTypes": types, "Resolution": m.resolution,
	}
}
