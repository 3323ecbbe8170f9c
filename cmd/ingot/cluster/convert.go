package cluster

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"ingot/model"
	"ingot/model/text"
)

// Result is what became of a cluster.
type Result struct {
	// Files are the manifests, by path with slashes.
	Files map[string]string
	// Kinds is how many of each kind there are.
	Kinds map[model.Kind]int
	// Bound is how many claims have a server, which Ingot adopts.
	Bound int
	// Secrets are those that are named and stand in no file.
	Secrets []Secret
	// LeftOut are the objects that Ingot has no use for, with why.
	LeftOut []LeftOut
	// Notes are what to look at before Ingot is started.
	Notes []string
}

// Secret is one that has to be brought without Git seeing it in plain text.
type Secret struct {
	Kind      model.Kind `json:"kind"`
	Namespace string     `json:"namespace,omitempty"`
	Name      string     `json:"name"`
	// For is what names it, Path where its file belongs.
	For  string `json:"for"`
	Path string `json:"path"`
}

// LeftOut is an object that was not carried over, or a part of one.
type LeftOut struct {
	Object string `json:"object"`
	Why    string `json:"why"`
}

// Options say what is made of a cluster.
type Options struct {
	// PlaintextSecrets has Secrets written as they are.
	PlaintextSecrets bool
}

// order is that in which kinds are converted: what others are looked up in comes first.
var order = map[string]int{
	"ServerReadinessRule": 1, "ServerMaintenance": 2, "Endpoint": 3, "BMC": 4, "BMCSecret": 5, "ServerClaim": 6, "Server": 7, "Secret": 8,
}

// Convert makes manifests of a cluster's objects.
func Convert(objects []Object, opts Options) (*Result, error) {
	c := &converter{
		opts: opts, result: &Result{Files: make(map[string]string), Kinds: make(map[model.Kind]int)},
		servers: make(map[string]Object), claims: make(map[string]Object), secrets: make(map[string]Object),
		serverOf: make(map[string]string), maintained: make(map[string]string), taints: make(map[string]bool), wanted: make(map[string]Secret),
	}
	objects = slices.Clone(objects)
	slices.SortStableFunc(objects, func(a, b Object) int {
		if d := rank(a) - rank(b); d != 0 {
			return d
		}
		return strings.Compare(a.String(), b.String())
	})
	var unique []Object
	for i, o := range objects {
		switch {
		case o.name() == "":
			return nil, fmt.Errorf("a %s has no name", o.kind())
		case i == 0 || o.String() != objects[i-1].String() || group(o) != group(objects[i-1]):
		case reflect.DeepEqual(o, objects[i-1]):
			continue
		default:
			return nil, fmt.Errorf("%s is there twice, and not the same: give what kubectl printed last", o)
		}
		unique = append(unique, o)
	}
	c.learn(unique)
	for _, o := range unique {
		if err := c.convert(o); err != nil {
			return nil, err
		}
	}
	return c.result, c.finish()
}

func rank(o Object) int {
	if n, known := order[o.kind()]; known {
		return n
	}
	return len(order) + 1
}

func group(o Object) string {
	g, _, _ := strings.Cut(o.text("apiVersion"), "/")
	return g
}

// converter is one conversion under way.
type converter struct {
	opts     Options
	result   *Result
	servers  map[string]Object // by name
	claims   map[string]Object // by namespace/name
	secrets  map[string]Object // by kind and name
	serverOf map[string]string
	// maintained are the servers that are out of service, with why.
	maintained map[string]string
	taints     map[string]bool // that rules put on servers
	wanted     map[string]Secret
	others     int // Secrets that nothing names
}

// learn looks at all objects before any is converted.
func (c *converter) learn(objects []Object) {
	for _, o := range objects {
		switch o.kind() {
		case "Server":
			c.servers[o.name()] = o
		case "ServerClaim":
			c.claims[o.namespaced()] = o
		case "BMCSecret", "Secret":
			c.secrets[o.String()] = o
		case "ServerMaintenance":
			if o.text("status", "state") == "InMaintenance" {
				c.maintained[o.text("spec", "serverRef", "name")] = "in maintenance by " + o.String()
			}
		case "ServerReadinessRule":
			c.taints[taintOf(o.mapping("spec", "taint"))] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.servers)) {
		s := c.servers[name]
		if ref := s.text("spec", "serverMaintenanceRef", "name"); ref != "" && c.maintained[name] == "" {
			c.maintained[name] = "in maintenance by ServerMaintenance " + ref
		}
		_, marked := s.mapping("metadata", "labels")[parkedMark]
		if _, also := s.mapping("metadata", "annotations")[parkedMark]; marked || also || s.text("status", "state") == "Parked" {
			c.maintained[name] = "parked"
		}
		claim := claimOf(s)
		if c.claims[claim] == nil || s.text("status", "state") == "Released" {
			continue
		}
		if other := c.serverOf[claim]; other != "" {
			if c.claims[claim].text("spec", "serverRef", "name") != name {
				continue // which is noted where the server is converted
			}
		}
		c.serverOf[claim] = name
	}
}

const parkedMark = model.Group + "/parked"

// claimOf is the claim that a server is reserved for, "" if it is for none.
func claimOf(s Object) string {
	name := s.text("spec", "serverClaimRef", "name")
	if name == "" {
		return ""
	}
	ns := s.text("spec", "serverClaimRef", "namespace")
	if ns == "" {
		ns = model.DefaultNamespace
	}
	return ns + "/" + name
}

func taintOf(t map[string]any) string { return fmt.Sprint(t["key"], "=", t["value"]) }

// convert makes a file of one object, or says why there is none.
func (c *converter) convert(o Object) error {
	if g := group(o); g != model.Group && o.text("apiVersion") != model.MaintenanceVersion && (g != "v1" || o.kind() != "Secret") {
		c.leaveOut(o, "")
		return nil
	}
	c.noteUndone(o)
	switch o.kind() {
	case "Secret", "BMCSecret":
		return nil // once it is known which are named
	case "ServerBootConfiguration":
		c.leaveBootConfiguration(o)
		return nil
	case "Server":
		return c.writeServer(o)
	case "ServerClaim":
		c.claim(o)
		written, err := c.write(o, "")
		if !written {
			delete(c.serverOf, o.namespaced()) // which is unclaimable then
			return err
		}
		for _, ref := range []string{"ignitionSecretRef", "userDataRef"} {
			c.want(o, model.KindSecret, o.text("metadata", "namespace"), o.text("spec", ref, "name"))
		}
		return err
	case "ServerMaintenance":
		if folder := folders[model.KindServerMaintenance]; c.result.Files[folder+"/"+o.name()+".yaml"] != "" {
			o.set("name", o.text("metadata", "namespace")+"-"+o.name(), "metadata")
		}
	case "BMC":
		written, err := c.write(o, "")
		if written {
			c.want(o, model.KindBMCSecret, "", o.text("spec", "bmcSecretRef", "name"))
		}
		return err
	}
	_, err := c.write(o, "")
	return err
}

// noteUndone notes what the cluster was about to do with an object and had not done yet.
func (c *converter) noteUndone(o Object) {
	kind, server := o.kind(), o.text("spec", "serverRef", "name")
	if (kind == "ServerClaim" || kind == "Server") && o.text("metadata", "deletionTimestamp") != "" {
		c.note("%s was deleted in the cluster, and metal-operator had not acted on it yet: Ingot keeps it until you remove its file", o)
	}
	if kind == "ServerMaintenance" && c.maintained[server] == "" && c.servers[server] != nil {
		c.note("%s has not begun: Ingot takes Server %s out of service by it, as soon as its policy allows. Remove its file if that is not meant", o, server)
	}
}

// writeServer converts a server. One that serves a claim cannot be left out: it would be
// taken for a new one, and installed for the claim.
func (c *converter) writeServer(o Object) error {
	claim := claimOf(o)
	c.server(o)
	written, err := c.write(o, "")
	if written {
		c.want(o, model.KindBMCSecret, "", o.text("spec", "bmc", "bmcSecretRef", "name"))
	}
	if err == nil && !written && c.serverOf[claim] == o.name() {
		last := c.result.LeftOut[len(c.result.LeftOut)-1]
		err = fmt.Errorf("%s serves ServerClaim %s and cannot be read: %s", o, claim, last.Why)
	}
	return err
}

// leaveBootConfiguration says of a boot configuration that is nobody's part why it is left out.
func (c *converter) leaveBootConfiguration(o Object) {
	annotations := o.mapping("metadata", "annotations")
	internal := annotations[model.AnnotationType] == "Internal" || annotations[model.Group+"/is-default-os-image"] == "true"
	if internal || c.claims[o.namespaced()] != nil {
		return // metal-operator made it, and Ingot makes its own
	}
	c.leaveOut(o, "Ingot would have its server boot it once more; write it anew if that is meant")
}

// want notes that an object names a Secret. It is asked for by a command for a shell, so the object is
// one that the decoder took: what tenants of the cluster have in place of names is none.
func (c *converter) want(o Object, kind model.Kind, namespace, name string) {
	if name == "" {
		return
	}
	s := Secret{Kind: kind, Namespace: namespace, Name: name, For: o.String(), Path: "bmcs/" + name + ".secret.yaml"}
	if kind == model.KindSecret {
		s.Path = "claims/" + namespace + "/" + name + ".secret.yaml"
	}
	id := model.Identity{Kind: kind, Namespace: namespace, Name: name}.String()
	if _, known := c.wanted[id]; !known {
		c.wanted[id] = s
	}
}

// server converts a server: what it is reserved for stays, as far as that is there.
func (c *converter) server(o Object) {
	spec, name := o.mapping("spec"), o.name()
	if uuid, old := spec["uuid"]; old && spec["systemUUID"] == nil {
		spec["systemUUID"] = uuid
	}
	if led := spec["indicatorLED"]; led == "" || led == "Unknown" {
		delete(spec, "indicatorLED")
	}
	if ref := o.text("spec", "biosSettingsRef", "name"); ref != "" {
		c.leaveOutPart(o, "spec.biosSettingsRef", "BIOSSettings "+ref+" is not carried over")
	}
	if claim := claimOf(o); claim != "" {
		delete(spec, "serverClaimRef")
		switch {
		case c.serverOf[claim] == name:
			ns, own, _ := strings.Cut(claim, "/")
			spec["serverClaimRef"] = map[string]any{"namespace": ns, "name": own} // without Kubernetes' uid
		case c.serverOf[claim] != "":
			spec["unclaimable"] = true
			c.note("%s says that it serves ServerClaim %s, and so does Server %s: it is unclaimable until you have looked",
				o, claim, c.serverOf[claim])
		default:
			spec["unclaimable"] = true
			c.note("%s was reserved for ServerClaim %s, which is not there: it is unclaimable until you have looked what is on its disks",
				o, claim)
		}
	}
	o.drop([]string{
		"uuid", "power", "bootConfigurationRef", "maintenanceBootConfigurationRef", "serverMaintenanceRef", "biosSettingsRef",
	}, "spec")
	c.dropTaints(spec)
	if why := c.maintained[name]; why != "" {
		o.set(model.AnnotationOperation, model.OperationIgnore, "metadata", "annotations")
		c.note("%s is %s: Ingot ignores it until you take annotation %s off it", o, why, model.AnnotationOperation)
	}
}

// dropTaints takes out the taints that rules keep on servers: Ingot keeps them itself.
func (c *converter) dropTaints(spec map[string]any) {
	taints, _ := spec["taints"].([]any)
	taints = slices.DeleteFunc(taints, func(t any) bool {
		m, _ := t.(map[string]any)
		return c.taints[taintOf(m)]
	})
	if spec["taints"] = taints; len(taints) == 0 {
		delete(spec, "taints")
	}
}

// claim converts a claim: one that has a server names it.
func (c *converter) claim(o Object) {
	server := c.serverOf[o.namespaced()]
	if server == "" {
		if o.text("status", "phase") == "Bound" {
			c.note("%s is Bound, and no Server that is there says that it serves it: Ingot may give it another one", o)
		}
		return
	}
	if ref := o.text("spec", "serverRef", "name"); ref != "" && ref != server {
		c.note("%s names Server %s and is served by %s, which it names now", o, ref, server)
	}
	o.set("serverRef", map[string]any{"name": server}, "spec")
	c.notePower(o, c.servers[server])
}

// notePower notes what Ingot will do to a server that is not as its claim says.
func (c *converter) notePower(claim, s Object) {
	want, is, state := claim.text("spec", "power"), s.text("status", "powerState"), s.text("status", "state")
	switch {
	case c.maintained[s.name()] != "":
	case want == "On" && is == "Off":
		c.note("%s is Off, and %s wants it On: Ingot will switch it on, from its disk", s, claim)
	case want == "Off" && is == "On":
		c.note("%s is On, and %s wants it Off: Ingot will shut it down", s, claim)
	}
	if state != "" && state != "Reserved" && c.maintained[s.name()] == "" {
		c.note("%s is %s, not Reserved: if %s was not installed on it yet, give the claim annotation %s",
			s, state, claim, model.AnnotationReprovision)
	}
}

func (c *converter) note(format string, args ...any) {
	c.result.Notes = append(c.result.Notes, fmt.Sprintf(format, args...))
}

// leaveOut lists an object that is not carried over; without a reason, it is the decoder's.
func (c *converter) leaveOut(o Object, why string) {
	if why == "" {
		bare, _ := yaml.Marshal(map[string]any{
			"apiVersion": o["apiVersion"], "kind": o["kind"], "metadata": map[string]any{"name": o.name()},
		})
		_, problems := model.Decode("", bare, model.DecodeOptions{})
		why = "Ingot has no use for it"
		if len(problems) > 0 {
			why = problems[0].Message
		}
	}
	c.result.LeftOut = append(c.result.LeftOut, LeftOut{o.String(), why})
}

// leaveOutPart lists a part of an object that is not carried over.
func (c *converter) leaveOutPart(o Object, part, why string) {
	c.result.LeftOut = append(c.result.LeftOut, LeftOut{o.String() + ", " + part, why})
}

// finish writes the Secrets that are named, or lists them.
func (c *converter) finish() error {
	c.result.Bound = len(c.serverOf)
	for _, id := range slices.Sorted(maps.Keys(c.wanted)) {
		s := c.wanted[id]
		o := c.secrets[id]
		if o == nil || !c.opts.PlaintextSecrets {
			c.result.Secrets = append(c.result.Secrets, s)
			continue
		}
		if _, err := c.write(o, s.Path); err != nil {
			return err
		}
	}
	for id, o := range c.secrets {
		if _, named := c.wanted[id]; !named {
			c.others++
			if o.kind() == "BMCSecret" {
				c.leaveOut(o, "nothing names it")
				c.others--
			}
		}
	}
	if c.others > 0 {
		c.note("%s that no claim names left out", text.Plural(c.others, "Secret"))
	}
	slices.SortFunc(c.result.LeftOut, func(a, b LeftOut) int { return strings.Compare(a.Object, b.Object) })
	return nil
}
