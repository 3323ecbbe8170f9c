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

var stageOutcomes = map[model.BootStage]string{
	model.StageArmed: "boot ticket armed", model.StageDHCP: "asked DHCP what to boot", model.StageTFTP: "boot loader served by TFTP",
	model.StageHTTPBoot: "boot loader served by HTTP", model.StageScript: "iPXE script served", model.StageKernel: "kernel served",
	model.StageInitrd: "initramfs served", model.StageIgnition: "Ignition served", model.StageReport: "probe reported",
	model.StageWipe: "wipe reported", model.StageBootState: "reported that it booted",
	model.StageDiskProbe: "probe runs that writes its disk", model.StageDiskChosen: "disk chosen",
	model.StageDiskWriting: "disk image being written", model.StageDiskVerified: "disk image verified",
	model.StageDiskEntry: "boot entry made", model.StageDiskReboot: "starts from its disk next",
}

// newsKinds are the folders of objects, the most important first among those that weigh the
// same.
var newsKinds = []struct {
	folder  Folder
	prefix  string // goes before a name that is easily taken for another's
	outcome func(old, now *Document) outcome
}{
	{Claims, "", claimOutcome},
	{BMCs, "BMC ", bmcOutcome},
	{Servers, "", serverOutcome},
	{Maintenances, "maintenance ", func(_, now *Document) outcome { return outcome{weighsState, now.Overview().Summary.State} }},
	{ReadinessRules, "readiness rule ", readinessOutcome},
	{BootConfigurations, "boot configuration ", configurationOutcome},
	{Endpoints, "endpoint ", endpointOutcome},
}

// newsOf says what became of the fleet and of each object since old.
func newsOf(old, now map[string]*model.Document, d *model.Desired) []news {
	all := fleetNews(old[model.ReportFleet], now[model.ReportFleet], d)
	paths := changedPaths(old, now)
	for _, k := range newsKinds {
		for _, path := range paths {
			if !strings.HasPrefix(path, string(k.folder)+"/") {
				continue
			}
			was, is := objectOf(old[path]), objectOf(now[path])
			n := news{server: k.folder == Servers}
			if now[path] == nil {
				n.name, n.outcome = was.Name(), goneOutcome(was)
			} else {
				n.name, n.outcome = is.Name(), k.outcome(was, is)
			}
			n.name = k.prefix + n.name
			all = append(all, n)
		}
	}
	return all
}

// goneOutcome says what it means that an object is shown no more.
func goneOutcome(was *Document) outcome {
	if server := was.Overview().Summary.Server; server != "" && was.Folder() == Claims {
		return outcome{weighsState, "released " + string(server)}
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

// objectOf is what a file holds, an empty object if there is no file.
func objectOf(d *model.Document) *Document {
	if d == nil {
		return &Document{}
	}
	return d.Object.(*Document)
}

func claimOutcome(old, now *Document) outcome {
	was, is := old.Overview().Summary, now.Overview().Summary
	switch {
	case old.Status != nil && was.State == is.State && was.Server == is.Server:
		return changed(old, now)
	case is.State == ClaimBooted:
		return outcome{weighsGoal, fmt.Sprintf("%s on %s", is.State, is.Server)}
	case is.State == ClaimUnconfirmed:
		return outcome{weighsTrouble, fmt.Sprintf("%s on %s", is.State, is.Server)}
	case is.Server != "":
		return outcome{weighsState, fmt.Sprintf("%s on %s", is.State, is.Server)}
	}
	if reason := now.Overview().First().Reason; reason != "" {
		return outcome{weighsState, is.State + ", " + reason}
	}
	return outcome{weighsState, is.State}
}

func bmcOutcome(old, now *Document) outcome {
	was, is, reason := old.Overview().Summary.State, now.Overview().Summary.State, now.Overview().First().Reason
	switch {
	case was == is:
		return changed(old, now)
	case was == BMCEnabled:
		return outcome{weighsTrouble, "lost (" + reason + ")"}
	case was == BMCError && is == BMCEnabled:
		return outcome{weighsGoal, "back"}
	case is == BMCError:
		return outcome{weighsTrouble, reason}
	}
	return outcome{weighsStep, is}
}

// serverOutcome says what became of a server that stayed in its state.
func serverOutcome(old, now *Document) outcome {
	before, _ := old.Status.(ServerStatus)
	after := now.Status.(ServerStatus)
	if n := len(after.BootTimeline); n > 0 && !reflect.DeepEqual(before.BootTimeline, after.BootTimeline) {
		return outcome{weighsStep, stageOutcomes[after.BootTimeline[n-1].Stage]}
	}
	if what := changed(old, now); what != details {
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
	s.Overview, s.State, s.InstallStage, s.PowerState, s.Conditions, s.BootTimeline, s.Cleanup, s.Install, s.LeftOut = Overview{}, "", "", "", nil, nil, nil, nil, nil
	return s
}

func endpointOutcome(old, now *Document) outcome {
	before, _ := old.Spec.(EndpointSpec)
	after, _ := now.Spec.(EndpointSpec)
	switch found := before.MACAddress == "" || before.IP != after.IP; {
	case after.MACAddress == "": // nobody has the address
	case found && after.IP != "":
		return outcome{weighsStep, "at " + after.IP}
	}
	return changed(old, now)
}

// configurationOutcome says what became of what a claim boots.
func configurationOutcome(old, now *Document) outcome {
	was, is := old.Overview().Summary.State, now.Overview().Summary.State
	switch {
	case now.InGit():
		return claimOutcome(old, now)
	case was != is && is != "Error":
		return outcome{weighsStep, is}
	}
	return changed(old, now)
}

// changed is the reason of a condition that is not what it was, of Ready before others.
func changed(old, now *Document) outcome {
	before, after := conditions(old.Conditions()), conditions(now.Conditions())
	for _, c := range append([]metav1.Condition{after.of(typeReady)}, after...) {
		if old := before.of(c.Type); c.Type != "" && (old.Status != c.Status || old.Reason != c.Reason) {
			return outcome{weighsStep, c.Reason}
		}
	}
	return details
}

// line is news as the body of a commit message has it.
func (n news) line() string { return n.name + ": " + n.text }

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
