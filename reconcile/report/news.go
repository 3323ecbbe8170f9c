package report

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ingot/model"
	"ingot/model/text"
	"ingot/reconcile/plan"
)

// news is what became of one object.
type news struct {
	noun    string // what several of its kind are, "server"
	name    string
	outcome string
}

// stageOutcomes are the stages of a boot as what happened.
var stageOutcomes = map[model.BootStage]string{
	model.StageArmed: "boot ticket armed", model.StageDHCP: "asked DHCP what to boot", model.StageTFTP: "boot loader served by TFTP",
	model.StageHTTPBoot: "boot loader served by HTTP", model.StageScript: "iPXE script served", model.StageKernel: "kernel served",
	model.StageInitrd: "initramfs served", model.StageIgnition: "Ignition served", model.StageReport: "probe reported",
	model.StageWipe: "wipe reported", model.StageBootState: "reported that it booted",
}

// newsKinds are the folders of objects, what matters most first.
var newsKinds = []struct {
	folder, noun string
	outcome      func(old, now *Document) string
}{
	{claimFolder, "claim", claimOutcome},
	{"bmcs/", "BMC", bmcOutcome},
	{"servers/", "server", serverOutcome},
	{"servermaintenances/", "maintenance", maintenanceOutcome},
	{"serverreadinessrules/", "readiness rule", readinessOutcome},
	{bootConfigurationFolder, "boot configuration", configurationOutcome},
	{"endpoints/", "endpoint", endpointOutcome},
}

// newsOf says what became of the fleet and of each object since old.
func newsOf(old, now map[string]*model.Document) []news {
	all := fleetNews(old[model.ReportRevision], now[model.ReportRevision])
	changed := changedPaths(old, now)
	for _, k := range newsKinds {
		for _, path := range changed {
			if !strings.HasPrefix(path, k.folder) {
				continue
			}
			was, is := objectOf(old[path]), objectOf(now[path])
			if now[path] == nil {
				all = append(all, news{k.noun, was.Metadata.fullName(), "gone"})
				continue
			}
			all = append(all, news{k.noun, is.Metadata.fullName(), k.outcome(was, is)})
		}
	}
	return append(all, problemNews(old[model.ReportProblems], now[model.ReportProblems])...)
}

// changedPaths are the files that are new, others or gone, sorted.
func changedPaths(old, now map[string]*model.Document) []string {
	var all []string
	for path, d := range now {
		if old[path] != d {
			all = append(all, path)
		}
	}
	for path := range old {
		if now[path] == nil {
			all = append(all, path)
		}
	}
	slices.Sort(all)
	return all
}

// fleetNews says what all servers have in common: whether the branch can be read, and
// what waits for an approval.
func fleetNews(old, now *model.Document) []news {
	if old == nil || now == nil || old == now {
		return nil
	}
	was, is := old.Object.(*Revision), now.Object.(*Revision)
	var all []news
	if reasonOf(was.Source) != reasonOf(is.Source) {
		all = append(all, news{"", "manifests", cmp.Or(reasonOf(is.Source), "in force as the branch has them")})
	}
	if n := held(is); n != held(was) {
		all = append(all, news{"", "guard", text.Plural(n, "step") + " held back"})
	}
	if n := absent(is); n != absent(was) {
		all = append(all, news{"", "absent without a commit", text.Plural(n, "object")})
	}
	return all
}

func reasonOf(s *Source) string {
	if s == nil {
		return ""
	}
	return s.Reason
}

// held counts the steps that the guard holds back.
func held(r *Revision) (n int) {
	for _, g := range r.Guard {
		n += len(g.Steps)
	}
	return n
}

func absent(r *Revision) int {
	if r.Absent == nil {
		return 0
	}
	return r.Absent.Count
}

// problemNews says how many manifests are wrong, if that is not what it was.
func problemNews(old, now *model.Document) []news {
	if old == now || now == nil {
		return nil
	}
	n := len(now.Object.(*Problems).Problems)
	if old == nil && n == 0 {
		return nil
	}
	return []news{{"", "manifests", text.Plural(n, "problem")}}
}

// fullName is an object's name with its namespace, if it has one.
func (m Metadata) fullName() string {
	if m.Namespace == "" {
		return m.Name
	}
	return m.Namespace + "/" + m.Name
}

// objectOf is what a file holds, an empty object if there is no file.
func objectOf(d *model.Document) *Document {
	if d == nil {
		return &Document{}
	}
	return d.Object.(*Document)
}

// claimOutcome says what a claim came to.
func claimOutcome(old, now *Document) string {
	before, _ := old.Status.(ClaimStatus)
	return claimOutcomeOf(old, now, before, now.Status.(ClaimStatus))
}

func claimOutcomeOf(old, now *Document, before, after ClaimStatus) string {
	was, is := claimSummary(old, before), claimSummary(now, after)
	switch {
	case old.Status != nil && was.State == is.State && was.Server == is.Server:
		return cmp.Or(transition(before.Conditions, after.Conditions), "details")
	case is.Server != "":
		return fmt.Sprintf("%s on %s", is.State, is.Server)
	}
	return string(is.State)
}

// bmcOutcome says what became of a BMC.
func bmcOutcome(old, now *Document) string {
	before, _ := old.Status.(BMCStatus)
	after := now.Status.(BMCStatus)
	if before.State != after.State && after.State == "Enabled" {
		return after.State
	}
	return cmp.Or(transition(before.Conditions, after.Conditions), "details")
}

// serverOutcome says what became of a server that stayed in its state.
func serverOutcome(old, now *Document) string {
	before, _ := old.Status.(ServerStatus)
	after := now.Status.(ServerStatus)
	if n := len(after.BootTimeline); n > 0 && !reflect.DeepEqual(before.BootTimeline, after.BootTimeline) {
		return stageOutcomes[after.BootTimeline[n-1].Stage]
	}
	if what := transition(before.Conditions, after.Conditions); what != "" {
		return what
	}
	switch {
	case before.InstallStage != after.InstallStage && after.InstallStage != plan.InstallNone:
		return "install stage " + string(after.InstallStage)
	case before.PowerState != after.PowerState:
		return "power " + string(after.PowerState)
	case !reflect.DeepEqual(before.Cleanup, after.Cleanup):
		return "wipe goes on"
	case !slices.Equal(before.Taints, after.Taints):
		return text.Plural(len(after.Taints), "taint")
	case !reflect.DeepEqual(inventoryOf(before), inventoryOf(after)):
		return "inventory read"
	}
	return "details"
}

// inventoryOf is what of a server's status its BMC and its probe tell.
func inventoryOf(s ServerStatus) ServerStatus {
	s.State, s.InstallStage, s.PowerState, s.Conditions, s.BootTimeline, s.Cleanup, s.LeftOut = "", "", "", nil, nil, nil, nil
	return s
}

// endpointOutcome says what became of a device.
func endpointOutcome(old, now *Document) string {
	before, _ := old.Spec.(EndpointSpec)
	after, _ := now.Spec.(EndpointSpec)
	if before.IP != after.IP && after.IP != "" {
		return "at " + after.IP
	}
	was, _ := old.Status.(EndpointStatus)
	is, _ := now.Status.(EndpointStatus)
	return cmp.Or(transition(was.Conditions, is.Conditions), "details")
}

// maintenanceOutcome says how far a ServerMaintenance is.
func maintenanceOutcome(_, now *Document) string { return now.Status.(MaintenanceStatus).State }

// configurationOutcome says what became of what a claim boots.
func configurationOutcome(old, now *Document) string {
	before, _ := old.Status.(BootConfigurationStatus)
	after := now.Status.(BootConfigurationStatus)
	if st, inGit := requested(now, after); inGit {
		was, _ := requested(old, before)
		return claimOutcomeOf(old, now, was, st)
	}
	if before.State != after.State && after.State != "Error" {
		return after.State
	}
	return cmp.Or(transition(before.Conditions, after.Conditions), "details")
}

// transition is the reason of a condition that is not what it was, of Ready before others.
func transition(before, after conditions) string {
	for _, c := range append([]metav1.Condition{after.of("Ready")}, after...) {
		if old := before.of(c.Type); c.Type != "" && (old.Status != c.Status || old.Reason != c.Reason) {
			return c.Reason
		}
	}
	return ""
}

// lines are news as the body of a commit message has them.
func lines(all []news) []string {
	var body []string
	for _, n := range all {
		body = append(body, n.name+": "+n.outcome)
	}
	return body
}

// subjectOf says all news in a line: objects that came to the same are counted.
func subjectOf(all []news) string {
	var order []news // without names
	groups := make(map[news][]string)
	for _, n := range all {
		key := news{noun: n.noun, outcome: n.outcome}
		if groups[key] == nil {
			order = append(order, key)
		}
		groups[key] = append(groups[key], n.name)
	}
	var parts []string
	for _, key := range order {
		who := groups[key][0]
		if n := len(groups[key]); n > 1 {
			who = text.Plural(n, key.noun)
		}
		parts = append(parts, who+": "+key.outcome)
	}
	return strings.Join(parts, "; ")
}
