package page

import (
	"errors"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ingot/model"
	"ingot/reconcile/report"
	"ingot/reconcile/report/query"
)

// maxHistory is how many commits of the status branch the page of a server shows.
const maxHistory = 50

// objectPage is what the page of one object shows. Those of a server and a claim show more.
type objectPage struct {
	Kind, Name  string
	KindTitle   string
	State       string
	Class       string
	Since       stamp
	Why         string
	Predicates  []predicate // Why taken apart, if it counts servers
	Actor, Next string
	Facts       []fact
	Labels      []report.Fact
	Conditions  []conditionView
	Related     []relatedView
	Manifest    link
	File        link // of the status branch
	Commits     link // that changed it
	API         string
	Hint        string
	History     []commitView

	// Of an Endpoint.
	Conversation *conversation
	// Of a server, and of the one that a claim has.
	Boot *boot
	// Of a server.
	Cleanup   *report.CleanupStatus
	Inventory *report.ServerStatus
	Uses      []string
	BMC       *bmcView
}

// fact is one thing that is known of an object, with where it leads.
type fact struct {
	Name  string
	Value link
}

type conditionView struct {
	Type, Status, Reason string
	Message, Actor       string
	Since                stamp
	Holds                bool
}

type relatedView struct {
	Object     link
	Kind       string
	State      string
	Class      string
	Why, Actor string
	Since      stamp
}

// bmcView is how the BMC of a server fares, and what it was asked.
type bmcView struct {
	relatedView
	Facts    []report.Fact
	Requests *Requests
}

type commitView struct {
	Commit link
	At     stamp
	Lines  []string
}

// predicate is how many servers are of no use to a claim, and why.
type predicate struct {
	Servers int
	Why     string
}

var kindTitles = map[string]string{
	"server": "Server", "claim": "Claim", "boot-configuration": "Boot configuration", "bmc": "BMC", "endpoint": "Endpoint",
}

// object explains one object; false if there is none, which is answered.
func (v *view) object(w http.ResponseWriter, r *http.Request, kind, name string) (objectPage, report.Explanation, *report.Document, bool) {
	e, err := v.Fleet.Explain(kind, name)
	if err != nil {
		code := http.StatusBadRequest
		if errors.Is(err, report.ErrUnknownObject) {
			code = http.StatusNotFound
		}
		v.problem(w, r, code, err.Error())
		return objectPage{}, e, nil, false
	}
	file := report.PathOf(kind, e.Name)
	var doc *report.Document
	if d := v.report.Documents[file]; d != nil {
		doc, _ = d.Object.(*report.Document)
	}
	if doc == nil {
		doc = &report.Document{}
	}
	o := objectPage{
		Kind: kind, KindTitle: kindTitles[kind], Name: e.Name, State: e.State, Class: stateClass(e.State), Since: v.stamp(e.Since),
		Why: e.Why, Predicates: predicates(e.Why), Actor: e.Actor, Next: e.Next, Conditions: v.conditions(e.Conditions),
		File: link{file, v.Web.Branch(v.StatusBranch, file)}, Commits: link{"its commits", v.Web.History(v.StatusBranch, file)},
		API: "/api/v1/explain/" + kind + "/" + escaped(e.Name), Hint: e.BootHint,
		Manifest: v.manifest(kind, e.Name), Conversation: v.conversation(e.Card),
	}
	for _, f := range e.Facts {
		o.Facts = append(o.Facts, fact{f.Name, v.factLink(f)})
	}
	for _, on := range e.Related {
		o.Related = append(o.Related, v.related(on))
	}
	for _, key := range slices.Sorted(maps.Keys(doc.Metadata.Labels)) {
		o.Labels = append(o.Labels, report.Fact{Name: key, Value: doc.Metadata.Labels[key]})
	}
	for _, c := range v.Fleet.History(e.Name, maxHistory) {
		o.History = append(o.History, commitView{link{shortHash(c.Hash), v.Web.Commit(c.Hash)}, v.stamp(c.At), c.Lines})
	}
	return o, e, doc, true
}

// factLink has those facts lead somewhere that name an object.
func (*view) factLink(f report.Fact) link {
	switch f.Name {
	case "claim":
		return to("claim", f.Value)
	case "boot configuration":
		return to("boot-configuration", f.Value)
	case "BMC":
		return to("bmc", f.Value)
	}
	return link{Text: f.Value}
}

func (v *view) related(e report.Explanation) relatedView {
	return relatedView{
		Object: to(e.Kind, e.Name), Kind: kindTitles[e.Kind], State: e.State, Class: stateClass(e.State), Why: e.Why, Actor: e.Actor,
		Since: v.stamp(e.Since),
	}
}

func (v *view) conditions(all []metav1.Condition) []conditionView {
	var out []conditionView
	for _, c := range all {
		says, actor := report.Actor(c)
		out = append(out, conditionView{
			Type: c.Type, Status: string(c.Status), Reason: c.Reason, Message: says, Actor: actor,
			Since: v.stamp(c.LastTransitionTime.Time), Holds: c.Status == metav1.ConditionTrue,
		})
	}
	return out
}

// manifest is where an object stands in Git.
func (v *view) manifest(kind, name string) link {
	source := v.manifestSource(kind, name)
	file, line := (&model.Meta{Source: source}).Position()
	return link{source, v.Web.File(v.seen(), file, line)}
}

func (v *view) manifestSource(kind, name string) string {
	switch kind {
	case "server":
		return manifestIn(query.Servers, v.rows.Servers, name)
	case "claim":
		return manifestIn(query.Claims, v.rows.Claims, name)
	case "boot-configuration":
		ns, n := model.SplitName(model.ClaimName(name))
		return manifestIn(query.Claims, v.rows.Claims, string(model.BootConfigurationName(ns, n)))
	case "bmc":
		return manifestIn(query.BMCs, v.rows.BMCs, name)
	case "endpoint":
		return manifestIn(query.Endpoints, v.rows.Endpoints, name)
	}
	return ""
}

// manifestIn is where the object of a name stands in Git, as its row says.
func manifestIn[R any](l query.List[R], rows []R, name string) string {
	row, found := l.Find(rows, name)
	if !found {
		return ""
	}
	return l.Common(row).Manifest
}

// predicateText is a part of why a claim has no server: "4 lack label rack=b".
var predicateText = regexp.MustCompile(`^(\d{1,9}) (.+)$`)

// countedServers begins a text that counts servers by why they are of no use.
var countedServers = regexp.MustCompile(`^\d+ servers?: `)

// predicates takes apart why a claim has no server, nil for a text that counts no servers.
func predicates(why string) []predicate {
	head := countedServers.FindString(why)
	if head == "" {
		return nil
	}
	var all []predicate
	for part := range strings.SplitSeq(why[len(head):], ", ") {
		m := predicateText.FindStringSubmatch(part)
		if m == nil {
			return nil
		}
		n, _ := strconv.Atoi(m[1])
		all = append(all, predicate{n, m[2]})
	}
	return all
}

func (p *page) server(w http.ResponseWriter, r *http.Request) {
	v := p.look()
	o, e, doc, ok := v.object(w, r, "server", r.PathValue("name"))
	if !ok {
		return
	}
	o.Boot, o.Uses = v.bootOf(doc, e.BootHint), e.Uses
	if st, has := doc.Status.(report.ServerStatus); has {
		o.Cleanup, o.Inventory = st.Cleanup, &st
	}
	for _, f := range doc.Placed() {
		o.Facts = append(o.Facts, fact{f.Name, link{Text: f.Value}})
	}
	for _, on := range e.Related {
		if on.Kind == "bmc" {
			o.BMC = &bmcView{relatedView: v.related(on), Facts: on.Facts}
			if asked, known := v.Fleet.Requests(on.Name); known {
				o.BMC.Requests = &asked
			}
		}
	}
	v.show(w, r, http.StatusOK, "server", "Server "+o.Name, o)
}

// claim answers with the page of a claim, or of a ServerBootConfiguration.
func (p *page) claim(w http.ResponseWriter, r *http.Request, kind, name string) {
	v := p.look()
	o, e, _, ok := v.object(w, r, kind, name)
	if !ok {
		return
	}
	for _, on := range e.Related {
		if on.Kind != "server" {
			continue
		}
		if d := v.report.Documents[report.PathOf(on.Kind, on.Name)]; d != nil {
			if doc, is := d.Object.(*report.Document); is {
				o.Boot = v.bootOf(doc, on.BootHint)
			}
		}
	}
	v.show(w, r, http.StatusOK, "claim", o.KindTitle+" "+o.Name, o)
}

func (p *page) bmc(w http.ResponseWriter, r *http.Request) {
	v := p.look()
	o, _, doc, ok := v.object(w, r, "bmc", r.PathValue("name"))
	if !ok {
		return
	}
	if st, has := doc.Status.(report.BMCStatus); has {
		for _, s := range st.Servers {
			o.Facts = append(o.Facts, fact{"server", to("server", string(s))})
		}
	}
	if asked, known := v.Fleet.Requests(o.Name); known {
		o.BMC = &bmcView{Requests: &asked}
	}
	v.show(w, r, http.StatusOK, "object", "BMC "+o.Name, o)
}

func (p *page) endpoint(w http.ResponseWriter, r *http.Request) {
	v := p.look()
	if o, _, _, ok := v.object(w, r, "endpoint", r.PathValue("name")); ok {
		v.show(w, r, http.StatusOK, "object", "Endpoint "+o.Name, o)
	}
}
