package report

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ingot/model"
	"ingot/model/text"
	"ingot/reconcile/plan/install"
)

// news is what became of one object.
type news struct {
	name string
	outcome
	server bool // it is of a server
}

// outcome says what became of something, and how much that matters.
type outcome struct {
	weight importance
	text   string
}

// importance is how much news matter: the subject of a commit has the weightiest.
type importance int

// The weights, the weightiest first.
const (
	weighsFleet   importance = iota // somebody has to act, or need not any more, for all of it
	weighsTrouble                   // an object fails
	weighsGoal                      // what people wait for
	weighsState                     // another state
	weighsStep                      // a step on the way
	weighsDetail
)

// details is the outcome of what changed in nothing that has a name.
var details = outcome{weighsDetail, "details"}

// stageOutcomes are the stages of a boot as what happened.
var stageOutcomes = map[model.BootStage]string{
	model.StageArmed: "boot ticket armed", model.StageDHCP: "asked DHCP what to boot", model.StageTFTP: "boot loader served by TFTP",
	model.StageHTTPBoot: "boot loader served by HTTP", model.StageScript: "iPXE script served", model.StageKernel: "kernel served",
	model.StageInitrd: "initramfs served", model.StageIgnition: "Ignition served", model.StageReport: "probe reported",
	model.StageWipe: "wipe reported", model.StageBootState: "reported that it booted",
	model.StageDiskProbe: "probe runs that writes its disk", model.StageDiskChosen: "disk chosen",
	model.StageDiskWriting: "disk image being written", model.StageDiskVerified: "disk image verified",
	model.StageDiskEntry: "boot entry made", model.StageDiskReboot: "starts from its disk next",
}

// newsKinds are the folders of objects, what matters most first among those that weigh the
// same.
var newsKinds = []struct {
	folder, prefix string // prefix goes before the name, where that is easily taken for another's
	outcome        func(old, now *Document) outcome
}{
	{claimFolder, "", claimOutcome},
	{"bmcs/", "BMC ", bmcOutcome},
	{serverFolder, "", serverOutcome},
	{"servermaintenances/", "maintenance ", maintenanceOutcome},
	{"serverreadinessrules/", "readiness rule ", readinessOutcome},
	{bootConfigurationFolder, "boot configuration ", configurationOutcome},
	{"endpoints/", "endpoint ", endpointOutcome},
}

// newsOf says what became of the fleet and of each object since old.
func newsOf(old, now map[string]*model.Document) []news {
	all := fleetNews(old[model.ReportRevision], now[model.ReportRevision])
	all = append(all, problemNews(old[model.ReportProblems], now[model.ReportProblems])...)
	paths := changedPaths(old, now)
	for _, k := range newsKinds {
		for _, path := range paths {
			if !strings.HasPrefix(path, k.folder) {
				continue
			}
			was, is := objectOf(old[path]), objectOf(now[path])
			n := news{server: k.folder == serverFolder}
			if now[path] == nil {
				n.name, n.outcome = was.Metadata.fullName(), goneOutcome(was)
			} else {
				n.name, n.outcome = is.Metadata.fullName(), k.outcome(was, is)
			}
			n.name = k.prefix + n.name
			all = append(all, n)
		}
	}
	return all
}

// goneOutcome says what it means that an object is shown no more.
func goneOutcome(was *Document) outcome {
	if st, ok := was.Status.(ClaimStatus); ok && st.Server != "" {
		return outcome{weighsState, "released " + string(st.Server)}
	}
	return outcome{weighsState, "gone"}
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
func claimOutcome(old, now *Document) outcome {
	before, _ := old.Status.(ClaimStatus)
	return claimOutcomeOf(old, now, before, now.Status.(ClaimStatus))
}

func claimOutcomeOf(old, now *Document, before, after ClaimStatus) outcome {
	was, is := claimSummary(old, before), claimSummary(now, after)
	switch {
	case old.Status != nil && was.State == is.State && was.Server == is.Server:
		return changed(before.Conditions, after.Conditions)
	case is.State == ClaimBooted:
		return outcome{weighsGoal, fmt.Sprintf("%s on %s", is.State, is.Server)}
	case is.State == ClaimUnconfirmed:
		return outcome{weighsTrouble, fmt.Sprintf("%s on %s", is.State, is.Server)}
	case is.Server != "":
		return outcome{weighsState, fmt.Sprintf("%s on %s", is.State, is.Server)}
	}
	text := string(is.State)
	if why := conditions(after.Conditions).of(typeBound); why.Reason != "" {
		text += ", " + why.Reason
	}
	return outcome{weighsState, text}
}

// bmcOutcome says what became of a BMC.
func bmcOutcome(old, now *Document) outcome {
	before, _ := old.Status.(BMCStatus)
	after := now.Status.(BMCStatus)
	was, is := conditions(before.Conditions).of(typeReady), conditions(after.Conditions).of(typeReady)
	switch {
	case is.Status == metav1.ConditionFalse && was.Status == metav1.ConditionTrue:
		return outcome{weighsTrouble, "lost (" + is.Reason + ")"}
	case is.Status == metav1.ConditionTrue && was.Status == metav1.ConditionFalse && before.State == BMCError:
		return outcome{weighsGoal, "back"}
	case before.State != after.State && after.State != BMCError:
		return outcome{weighsStep, after.State}
	case before.State != after.State:
		return outcome{weighsTrouble, is.Reason}
	}
	return changed(before.Conditions, after.Conditions)
}

// serverOutcome says what became of a server that stayed in its state.
func serverOutcome(old, now *Document) outcome {
	before, _ := old.Status.(ServerStatus)
	after := now.Status.(ServerStatus)
	if n := len(after.BootTimeline); n > 0 && !reflect.DeepEqual(before.BootTimeline, after.BootTimeline) {
		return outcome{weighsStep, stageOutcomes[after.BootTimeline[n-1].Stage]}
	}
	if what := changed(before.Conditions, after.Conditions); what != details {
		return what
	}
	step := ""
	switch {
	case before.InstallStage != after.InstallStage && after.InstallStage != install.None:
		step = "install stage " + string(after.InstallStage)
	case before.PowerState != after.PowerState:
		step = "power " + string(after.PowerState)
	case !reflect.DeepEqual(before.Cleanup, after.Cleanup):
		step = "wipe goes on"
	case !slices.Equal(before.Taints, after.Taints):
		step = text.Plural(len(after.Taints), "taint")
	case !reflect.DeepEqual(inventoryOf(before), inventoryOf(after)):
		return outcome{weighsDetail, "inventory read"}
	default:
		return details
	}
	return outcome{weighsStep, step}
}

// inventoryOf is what of a server's status its BMC and its probe tell.
func inventoryOf(s ServerStatus) ServerStatus {
	s.State, s.InstallStage, s.PowerState, s.Conditions, s.BootTimeline, s.Cleanup, s.Install, s.LeftOut = "", "", "", nil, nil, nil, nil, nil
	return s
}

// endpointOutcome says what became of a device.
func endpointOutcome(old, now *Document) outcome {
	before, _ := old.Spec.(EndpointSpec)
	after, _ := now.Spec.(EndpointSpec)
	switch found := before.MACAddress == "" || before.IP != after.IP; {
	case after.MACAddress == "": // nobody has the address
	case found && after.IP != "":
		return outcome{weighsStep, "at " + after.IP}
	}
	was, _ := old.Status.(EndpointStatus)
	is, _ := now.Status.(EndpointStatus)
	return changed(was.Conditions, is.Conditions)
}

// maintenanceOutcome says how far a ServerMaintenance is.
func maintenanceOutcome(_, now *Document) outcome {
	return outcome{weighsState, now.Status.(MaintenanceStatus).State}
}

// configurationOutcome says what became of what a claim boots.
func configurationOutcome(old, now *Document) outcome {
	before, _ := old.Status.(BootConfigurationStatus)
	after := now.Status.(BootConfigurationStatus)
	if st, inGit := requested(now, after); inGit {
		was, _ := requested(old, before)
		return claimOutcomeOf(old, now, was, st)
	}
	if before.State != after.State && after.State != "Error" {
		return outcome{weighsStep, after.State}
	}
	return changed(before.Conditions, after.Conditions)
}

// changed is the reason of a condition that is not what it was, of Ready before others.
func changed(before, after conditions) outcome {
	for _, c := range append([]metav1.Condition{after.of(typeReady)}, after...) {
		if old := before.of(c.Type); c.Type != "" && (old.Status != c.Status || old.Reason != c.Reason) {
			return outcome{weighsStep, c.Reason}
		}
	}
	return details
}

// line is news as the body of a commit message has it.
func (n news) line() string { return n.name + ": " + n.text }

// lines are all news, a line each.
func lines(all []news) []string {
	var body []string
	for _, n := range all {
		body = append(body, n.line())
	}
	return body
}

// subjectOf is the weightiest of the news, and how many more there are.
func subjectOf(all []news) string {
	if len(all) == 0 {
		return ""
	}
	subject, more := all[0].line(), ""
	if n := len(all) - 1; n > 0 {
		more = fmt.Sprintf(", and %d more", n)
		if utf8.RuneCountInString(subject+more) > maxSubject {
			more = fmt.Sprintf(" +%d", n)
		}
	}
	return cut(subject, maxSubject-len(more)) + more
}
