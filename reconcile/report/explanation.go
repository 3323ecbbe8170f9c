package report

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ingot/model"
	"ingot/reconcile/plan/proposal"
	"ingot/reconcile/progress"
)

// Explanation is all there is to say of one object: what GET
// /api/v1/explain/KIND/NAME answers and `ingot explain` shows.
type Explanation struct {
	Kind  string    `json:"kind"`
	Name  string    `json:"name"`
	State string    `json:"state,omitempty"`
	Since time.Time `json:"since,omitzero"`  // when State was entered
	Why   string    `json:"why,omitempty"`   // what it waits for; empty when it is where it should be
	Actor string    `json:"actor,omitempty"` // who has to act; empty = nobody
	Next  string    `json:"next,omitempty"`  // what to do about it
	Facts []Fact    `json:"facts,omitempty"` // in an order fit for reading
	// Boot is what was seen of the newest boot, BootHint where to look if it comes no
	// further.
	Boot     []model.BootStep `json:"boot,omitempty"`
	BootHint string           `json:"bootHint,omitempty"`
	// Uses are what the newest boot ticket was asked for, by whom, and with what answer.
	// Only a running Ingot knows.
	Uses       []string           `json:"uses,omitempty"`
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// Card is the conversation of the network card of an endpoint. Only a running Ingot knows.
	Card *Card `json:"card,omitempty"`
	// Related are the objects that it hangs on.
	Related []Explanation `json:"related,omitempty"`
}

// Fact is one thing that is known of an object.
type Fact struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// ErrUnknownObject is that there is no object of a name.
var ErrUnknownObject = errors.New("not known")

// explainFolders are where the status branch has the objects of each kind.
var explainFolders = map[string]string{
	"server": "servers/", claimKind: claimFolder, "boot-configuration": bootConfigurationFolder, "bmc": "bmcs/",
	endpointKind: "endpoints/",
}

const (
	endpointKind = "endpoint"
	claimKind    = "claim"
)

// notInGit is the state of a claim that Git lacks, and that a server has all the same.
const notInGit = "not in Git"

// ExplainKinds are the kinds of objects that can be explained, sorted.
func ExplainKinds() []string { return slices.Sorted(maps.Keys(explainFolders)) }

// ExplainFiles explains an object by the files of the status branch.
func ExplainFiles(files map[string][]byte, kind, name string) (Explanation, error) {
	return filesOf(files).explain(kind, name)
}

// Explain explains an object by a report: the same as ExplainFiles once that is
// published.
func Explain(r *model.Report, kind, name string) (Explanation, error) {
	return reportedBy(r).explain(kind, name)
}

// explain explains one object, and what it hangs on.
func (d documents) explain(kind, name string) (Explanation, error) {
	if explainFolders[kind] == "" {
		return Explanation{}, fmt.Errorf("%q is no kind that can be explained: it is %s", kind, strings.Join(ExplainKinds(), ", "))
	}
	path, err := d.find(kind, name)
	if at := d.endpointOf(name); err != nil && kind == endpointKind && at != "" {
		path, err = at, nil
	}
	if kind == claimKind && errors.Is(err, ErrUnknownObject) {
		if e, ok := d.removedClaim(name); ok {
			return e, nil
		}
	}
	if err != nil {
		return Explanation{}, err
	}
	doc, err := d.at(path)
	if err != nil {
		return Explanation{}, err
	}
	e := Explanation{Kind: kind, Name: nameAt(kind, path)}
	o, ok := doc.(*Document)
	if !ok {
		return e, nil
	}
	switch status := o.Status.(type) {
	case ServerStatus:
		d.server(&e, o, status)
	case ClaimStatus:
		d.claim(&e, o, status)
	case BootConfigurationStatus:
		d.bootConfiguration(&e, o, status)
	case BMCStatus:
		d.bmc(&e, o, status)
	case EndpointStatus:
		d.endpoint(&e, o, status)
	}
	return e, nil
}

// find returns the path of an object. A claim may be named without its namespace
// when only one has the name.
func (d documents) find(kind, name string) (string, error) {
	var same, known []string
	for _, path := range d.paths {
		if !strings.HasPrefix(path, explainFolders[kind]) {
			continue
		}
		n := nameAt(kind, path)
		_, short, namespaced := strings.Cut(n, "/")
		switch {
		case n == name:
			return path, nil
		case namespaced && short == name:
			same = append(same, path)
		}
		known = append(known, n)
	}
	switch len(same) {
	case 0:
		return "", fmt.Errorf("%s %s is %w%s", kind, name, ErrUnknownObject, meant(name, known))
	case 1:
		return same[0], nil
	}
	return "", fmt.Errorf("there are %d %ss %s: name it with its namespace, such as %s", len(same), kind, name, nameAt(kind, same[0]))
}

// endpointOf returns the path of the Endpoint with a MAC address, "" when there is none.
func (d documents) endpointOf(mac string) string {
	wanted, ok := model.ParseMAC(mac)
	if !ok {
		return ""
	}
	for path, o := range d.readable(endpointKind) {
		spec, _ := o.Spec.(EndpointSpec)
		if its, ok := model.ParseMAC(spec.MACAddress); ok && its == wanted {
			return path
		}
	}
	return ""
}

// readable are the objects of a kind that can be read, by path.
func (d documents) readable(kind string) iter.Seq2[string, *Document] {
	return func(yield func(string, *Document) bool) {
		for _, path := range d.paths {
			if !strings.HasPrefix(path, explainFolders[kind]) {
				continue
			}
			doc, err := d.at(path)
			if o, ok := doc.(*Document); ok && err == nil && !yield(path, o) {
				return
			}
		}
	}
}

// removedClaim explains a claim that Git lacks and that a server has all the same: its release waits,
// or goes on, or its disks are kept. It may be named without its namespace.
func (d documents) removedClaim(name string) (e Explanation, found bool) {
	for path, o := range d.readable("server") {
		spec, _ := o.Spec.(ServerSpec)
		ref := spec.ServerClaimRef
		if ref == nil || name != ref.Namespace+"/"+ref.Name && name != ref.Name {
			continue
		}
		e = Explanation{Kind: claimKind, Name: ref.Namespace + "/" + ref.Name, State: notInGit}
		d.relate(&e, "server", nameAt("server", path))
		s := e.Related[0]
		e.Why, e.Actor, e.Next = "server "+s.Name+" has it still", s.Actor, s.Next
		if s.Why != "" {
			e.Why += ": " + s.Why
		}
		return e, true
	}
	return Explanation{}, false
}

// PathOf is where an object of a kind that can be explained stands on the status branch.
func PathOf(kind, name string) string { return explainFolders[kind] + name + ".yaml" }

// nameAt is the name of the object at a path: the inverse of PathOf.
func nameAt(kind, path string) string {
	return strings.TrimSuffix(strings.TrimPrefix(path, explainFolders[kind]), ".yaml")
}

// meant asks whether one of the known names was meant: the nearest, or those that
// the name is part of.
func meant(name string, known []string) string {
	if near := model.Nearest(name, known); near != "" {
		return fmt.Sprintf(", did you mean %s?", near)
	}
	const most = 3
	var has []string
	for _, k := range known {
		if len(has) < most && strings.Contains(k, name) {
			has = append(has, k)
		}
	}
	if len(has) == 0 {
		return ""
	}
	return ", did you mean " + strings.Join(has, " or ") + "?"
}

func (d documents) server(e *Explanation, o *Document, status ServerStatus) {
	spec, _ := o.Spec.(ServerSpec)
	e.State, e.Conditions = string(status.State), status.Conditions
	e.wait(typeReady, typeMaintenanceApproved)
	e.fact("install stage", string(status.InstallStage))
	e.fact("power", string(status.PowerState))
	if ref := spec.ServerClaimRef; ref != nil {
		e.fact("claim", ref.Namespace+"/"+ref.Name)
	}
	if ref := spec.BootConfigurationRef; ref != nil {
		e.fact("boot configuration", ref.Namespace+"/"+ref.Name)
	}
	e.fact("uuid", spec.SystemUUID)
	e.fact("hardware", strings.TrimSpace(status.Manufacturer+" "+status.Model))
	e.fact("serial number", status.SerialNumber)
	if rec, _ := o.Decided.(*model.ServerRecord); rec != nil {
		e.Since = rec.Life.Since
		e.fact("MAC addresses", MACsText(rec.MACs))
		e.installFacts(status.Install, rec)
	}
	if spec.Unclaimable {
		e.fact("cordoned", "yes: unclaimable is set")
	}
	for _, t := range spec.Taints {
		e.fact("taint", strings.TrimSuffix(t.Key+"="+t.Value, "="))
	}
	for _, t := range status.Taints {
		e.fact("taint", fmt.Sprintf("%s, by ServerReadinessRule %s: %s", strings.TrimSuffix(t.Key+"="+t.Value, "="), t.Rule, t.Message))
	}
	e.Boot = status.BootTimeline
	if c := conditions(e.Conditions).of(typeBootProgress); c.Status == metav1.ConditionFalse && len(e.Boot) > 0 {
		e.BootHint = progress.Hint(e.Boot[len(e.Boot)-1].Stage)
	}
	if spec.BMCRef != nil {
		d.relate(e, "bmc", spec.BMCRef.Name)
	}
}

func (d documents) claim(e *Explanation, o *Document, status ClaimStatus) {
	conds, summary := conditions(status.Conditions), claimSummary(o, status)
	e.State, e.Since, e.Conditions = string(summary.State), summary.Since, status.Conditions
	e.wait(typeBound, typeReady, model.ConditionBMCReadable, typeMaintenanceApproved)
	if c := conds.besides(); e.Why == "" && c.Type != "" {
		e.because(c)
	}
	if spec, ok := o.Spec.(model.ServerClaimSpec); ok {
		e.fact("image", spec.Image)
	}
	e.fact("git.tenants", d.tenant(status.Tenant))
	e.fact("in force as it was", d.lastGood(e.Name))
	d.relate(e, "server", string(status.Server))
}

// lastGood says why a claim is in force as it was, and not as Git has it, "" if it is not.
func (d documents) lastGood(claim string) string {
	rev := d.revision()
	if rev == nil {
		return ""
	}
	for _, o := range rev.LastGood {
		if o.Identity.Kind == model.KindServerClaim && o.Identity.Namespace+"/"+o.Identity.Name == claim {
			return fmt.Sprintf("as %s had it at revision %s, for a file that cannot be used may have it now: %s", o.Path, o.Since.Short(), filesBehind(o))
		}
	}
	return ""
}

// filesBehind names the files that may have an object that is in force as it was.
func filesBehind(o model.LastGood) string {
	switch {
	case len(o.Behind) == 0:
		return o.Path
	case o.Behind[0] == "*":
		return "any of them"
	}
	return strings.Join(o.Behind, " or ")
}

// revision is the revision.yaml, nil if it cannot be read.
func (d documents) revision() *Revision {
	doc, err := d.at(model.ReportRevision)
	rev, ok := doc.(*Revision)
	if err != nil || !ok {
		return nil
	}
	return rev
}

// tenant says what the files of a tenant may define, "" for none.
func (d documents) tenant(path string) string {
	if path == "" {
		return ""
	}
	if rev := d.revision(); rev != nil {
		if t := rev.Tenants.At(path); t != nil {
			return t.String()
		}
	}
	return path
}

func (d documents) bootConfiguration(e *Explanation, o *Document, status BootConfigurationStatus) {
	conds := conditions(status.Conditions)
	e.State, e.Since, e.Conditions = status.State, conds.of(typeBound).LastTransitionTime.Time, status.Conditions
	e.wait(typeBound, typeImageValidation, typeIgnitionValidation, typeBooted, typeReady)
	spec, _ := o.Spec.(BootConfigurationSpec)
	e.fact("image", spec.Image)
	d.relate(e, "server", spec.ServerRef.Name)
}

func (d documents) bmc(e *Explanation, o *Document, status BMCStatus) {
	e.State, e.Since, e.Conditions = status.State, conditions(status.Conditions).of(typeReady).LastTransitionTime.Time, status.Conditions
	e.wait(typeReady)
	e.fact("address", status.IP)
	e.fact("hardware", strings.TrimSpace(status.Manufacturer+" "+status.Model))
	e.fact("serial number", status.SerialNumber)
	e.fact("firmware", status.FirmwareVersion)
	e.fact("other systems", strings.Join(status.OtherSystems, "; "))
	if spec, _ := o.Spec.(BMCSpec); spec.EndpointRef != nil {
		d.relate(e, "endpoint", spec.EndpointRef.Name)
	}
}

func (d documents) endpoint(e *Explanation, o *Document, status EndpointStatus) {
	spec, _ := o.Spec.(EndpointSpec)
	e.Since, e.Conditions = status.Since, status.Conditions
	e.wait(typeReachable, typeRecognised)
	e.fact("MAC address", spec.MACAddress)
	address := "address"
	if spec.MACAddress == "" {
		address = "reserved address"
	}
	e.fact(address, spec.IP)
	e.fact("network", status.Network)
	e.fact("BMC", string(status.BMC))
	e.fact("entry of the MAC prefix database", strings.TrimSpace(status.Prefix+" "+status.Manufacturer))
	if rec, _ := o.Decided.(*model.EndpointRecord); rec != nil && len(rec.Tried) > 0 {
		e.fact("credentials refused", fmt.Sprint(len(rec.Tried)))
	}
}

// AddUses adds the uses of boot tickets to servers.
func (e *Explanation) AddUses(of func(model.ServerName) []string) {
	if e.Kind == "server" {
		e.Uses = of(model.ServerName(e.Name))
	}
	for i := range e.Related {
		e.Related[i].AddUses(of)
	}
}

// fact adds what is known.
func (e *Explanation) fact(name, value string) {
	if value != "" {
		e.Facts = append(e.Facts, Fact{name, value})
	}
}

// relate adds an object that this one hangs on.
func (d documents) relate(e *Explanation, kind, name string) {
	if name == "" {
		return
	}
	on, err := d.explain(kind, name)
	if err != nil {
		on = Explanation{Kind: kind, Name: name, State: "not known"}
	}
	e.Related = append(e.Related, on)
}

// wait says what the object waits for: the first of the conditions that does not hold.
func (e *Explanation) wait(kinds ...string) {
	for _, kind := range kinds {
		if c := conditions(e.Conditions).of(kind); c.Status == metav1.ConditionFalse {
			e.because(c)
			return
		}
	}
}

// because says that the object waits for what a condition says.
func (e *Explanation) because(c metav1.Condition) {
	if why, actor := splitActor(saying(c)); actor != "" {
		e.Why, e.Actor = why, actor
	} else {
		e.Why = why
	}
	if a := advices[c.Reason]; a.who != proposal.ActorNone || e.Actor == "" {
		e.Next = a.next
	}
	if e.Next == "" && e.Actor == "" {
		e.Next = goesOn
	}
}
