package sim

import (
	"net/http"
	"slices"
	"strings"
)

// root is where the service is.
const root = "/redfish/v1"

type object = map[string]any

// node is a resource, or a place for resources, in the tree that all BMCs share.
type node struct {
	schema string            // ComputerSystem.v1_20_0
	get    func(view) object // nil where nothing can be read
	child  map[string]*node

	// ids and member make a collection: the IDs of its members in order, and what
	// each is.
	ids    func(view) []string
	member *node

	set         map[string]setter // the properties that PATCH may set
	conditional bool              // PATCH needs If-Match
	post        func(view, object) reply
	bodyless    bool // POST needs no body
	remove      func(view) reply
	open        []string // methods that need no authentication
}

// setter sets one property, or says why not.
type setter func(v view, value any) *message

// view is a resource of one BMC.
type view struct {
	bmc  *BMC
	node *node
	path string
	ids  []string // of the collection members on the way
}

// id is the ID of the innermost collection member.
func (v view) id() string { return v.ids[len(v.ids)-1] }

// server is the server that the path goes through.
func (v view) server() resource { return resource{v.bmc.inPlaceOf(v.bmc.byID[v.ids[0]])} }

func (v view) link(below string) object { return link(v.path + "/" + below) }

func link(path string) object { return object{"@odata.id": path} }

// resolve finds the resource at path, with or without a slash at its end.
func (b service) resolve(path string) (view, bool) {
	rest, ok := strings.CutPrefix(path, root)
	if !ok || rest != "" && rest[0] != '/' {
		return view{}, false
	}
	v := view{bmc: b.BMC, node: b.rack.tree, path: strings.TrimSuffix(path, "/")}
	for name := range strings.SplitSeq(strings.Trim(rest, "/"), "/") {
		if name == "" {
			continue
		}
		if !v.enter(name) {
			return view{}, false
		}
	}
	return v, v.node.get != nil || v.node.post != nil
}

// enter goes one step down the tree.
func (v *view) enter(name string) bool {
	if next := v.node.child[name]; next != nil {
		v.node = next
		return true
	}
	if v.node.member == nil || !slices.Contains(v.node.ids(*v), name) {
		return false
	}
	v.ids = append(v.ids, name)
	v.node = v.node.member
	return true
}

func (v view) render() object {
	o := v.node.get(v)
	o["@odata.id"] = v.path
	if v.node.schema != "" {
		o["@odata.type"] = "#" + v.node.schema + "." + v.node.kind()
	}
	if v.path == root {
		o["@odata.id"] = root + "/"
	}
	return o
}

// kind is the schema without its version.
func (n *node) kind() string {
	name, _, _ := strings.Cut(n.schema, ".")
	return name
}

// describedBy is the Link header that names the resource's schema.
func (n *node) describedBy() string {
	return "<http://redfish.dmtf.org/schemas/v1/" + n.schema + ".json>; rel=describedby"
}

// methods are those that the resource allows.
func (n *node) methods() []string {
	var m []string
	if n.get != nil {
		m = append(m, http.MethodGet, http.MethodHead)
	}
	if n.set != nil {
		m = append(m, http.MethodPatch)
	}
	if n.post != nil {
		m = append(m, http.MethodPost)
	}
	if n.remove != nil {
		m = append(m, http.MethodDelete)
	}
	return m
}

// public reports whether the method needs no authentication here.
func (n *node) public(method string) bool { return slices.Contains(n.open, method) }

func collection(kind, name string, ids func(view) []string, member *node) *node {
	return &node{
		schema: kind + "Collection", ids: ids, member: member,
		get: func(v view) object {
			members := make([]object, 0, 4)
			for _, id := range ids(v) {
				members = append(members, v.link(id))
			}
			return object{"Name": name, "Members": members, "Members@odata.count": len(members)}
		},
	}
}

// patch sets the properties that were sent. What cannot be set is named; the
// rest is set all the same (DSP0266 §7.6).
func (v view) patch(sent object) reply {
	var problems []*message
	done := 0
	before := v.render()
	for _, name := range sortedKeys(sent) {
		set, known := v.node.set[name]
		_, exists := before[name]
		switch {
		case strings.HasPrefix(name, "@odata."):
			continue // clients send back what they read
		case known:
			if m := set(v, sent[name]); m != nil {
				problems = append(problems, m)
				continue
			}
			done++
		case exists:
			problems = append(problems, newMessage(msgPropertyReadOnly, name).about("#/"+name))
		default:
			problems = append(problems, newMessage(msgPropertyUnknown, name).about("#/"+name))
		}
	}
	if done == 0 && len(problems) > 0 {
		return failure(http.StatusBadRequest, problems...)
	}
	o := v.render()
	if len(problems) > 0 {
		o["@Message.ExtendedInfo"] = messageObjects(problems)
	}
	raw, etag := v.encode(o)
	return reply{status: http.StatusOK, raw: raw, header: http.Header{"Etag": {etag}}}
}

func messageObjects(messages []*message) []object {
	objects := make([]object, len(messages))
	for i, m := range messages {
		objects[i] = m.object()
	}
	return objects
}

func sortedKeys(o object) []string {
	keys := make([]string, 0, len(o))
	for k := range o {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func fixed(ids ...string) func(view) []string { return func(view) []string { return ids } }

func status() object { return object{"State": "Enabled", "Health": "OK"} }

func text(property string, value any) (string, *message) {
	s, ok := value.(string)
	if !ok {
		return "", newMessage(msgPropertyType, string(mustJSON(value)), property).about("#/" + property)
	}
	return s, nil
}

func oneOf(property string, value any, allowed []string) (string, *message) {
	s, problem := text(property, value)
	if problem == nil && !slices.Contains(allowed, s) {
		problem = newMessage(msgPropertyValue, s, property).about("#/" + property)
	}
	return s, problem
}
