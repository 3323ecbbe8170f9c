package preview

import (
	"fmt"
	"strings"

	"ingot/model"
	"ingot/model/text"
	"ingot/reconcile/plan/proposal"
)

// counted are the kinds of effects as a summary counts them, the worst first.
var counted = []struct {
	kind      Kind
	one, many string // after the number
}{
	{proposal.StepRelease, "server is released", "servers are released"},
	{proposal.StepRetain, "server is taken from its claim and kept as it is", "servers are taken from their claims and kept as they are"},
	{proposal.StepWipe, "kept server is wiped", "kept servers are wiped"},
	{proposal.StepReprovision, "server is installed again", "servers are installed again"},
	{proposal.StepMaintenance, "server goes out of service", "servers go out of service"},
	{proposal.StepPowerOff, "server is powered off", "servers are powered off"},
	{proposal.StepOperation, "operation is asked for", "operations are asked for"},
	{proposal.StepForget, "server is forgotten", "servers are forgotten"},
	{Install, "install starts over", "installs start over"},
	{proposal.StepTouch, "server is asked for another power state", "servers are asked for another power state"},
	{proposal.StepBind, "claim gets a server", "claims get a server"},
	{proposal.StepAdopt, "claim gets a server as it runs", "claims get servers as they run"},
	{proposal.StepRename, "server goes on under another claim's name", "servers go on under another claim's name"},
	{proposal.StepKeep, "server stays with its claim", "servers stay with their claims"},
	{proposal.StepReturn, "server comes back into service", "servers come back into service"},
	{proposal.StepPowerOn, "server is powered on", "servers are powered on"},
	{proposal.StepDiscover, "server is discovered", "servers are discovered"},
	{proposal.StepSetting, "setting is changed", "settings are changed"},
	{proposal.StepBoot, "server boots from elsewhere", "servers boot from elsewhere"},
	{Cleanup, "server has its disks treated otherwise at its release", "servers have their disks treated otherwise at their release"},
	{NoLonger, "waiting step is dropped", "waiting steps are dropped"},
	{Pending, "change waits to be asked for", "changes wait to be asked for"},
	{Wait, "claim waits", "claims wait"},
	{Withdraw, "claim that had no server is gone", "claims that had no server are gone"},
	{OtherImage, "image of images.yaml changes", "images of images.yaml change"},
	{Hold, "server is left alone", "servers are left alone"},
	{BMCAdded, "BMC is new", "BMCs are new"},
	{BMCChanged, "BMC is changed", "BMCs are changed"},
	{BMCRemoved, "BMC is gone", "BMCs are gone"},
}

// Summary is the result as a whole, in a sentence.
func (p *Preview) Summary() string {
	var says []string
	problems := 0
	for _, problem := range p.Problems {
		if problem.Severity == model.SeverityError {
			problems++
		}
	}
	if problems > 0 {
		says = append(says, text.Plural(problems, "new error")+" in manifests")
	}
	kinds, held := make(map[Kind]int), 0
	for _, e := range p.Effects {
		kinds[e.Kind]++
	}
	for _, c := range counted {
		switch n := kinds[c.kind]; {
		case n == 1:
			says = append(says, "1 "+c.one)
		case n > 1:
			says = append(says, fmt.Sprintf("%d %s", n, c.many))
		}
	}
	for _, h := range p.Held {
		held += len(h.Steps)
	}
	if held > 0 {
		says = append(says, "the guard holds "+text.Plural(held, "step")+" back")
	}
	if len(says) == 0 {
		return "Nothing happens to any machine"
	}
	first := map[Verdict]string{Changes: "Nothing that runs is disturbed", Destructive: "Something that runs is disturbed", Wrong: "The manifests have errors"}
	return first[p.Verdict] + ": " + strings.Join(says, ", ")
}

// Step says what is merged into what.
func (p *Preview) Step() string { return "merging " + p.commit() + " into " + string(p.Base.Short()) }

// commit is the commit that is merged, by the beginning of its hash.
func (p *Preview) commit() string { return p.Head.Short()[strings.Index(p.Head.Short(), "@")+1:] }

// WaitsText comes before what an effect waits for.
const WaitsText = "it is done only after what the server waits for: "

// WrongTitle comes before the problems of a preview.
const WrongTitle = "What is wrong in the manifests with this, and was not before (what was in force of it stays as it was)"

// What names the object of an effect: a server, a BMC, or a claim that has none.
func (e *Effect) What() string {
	switch {
	case e.Server != "":
		return "server " + string(e.Server)
	case e.Kind == OtherImage:
		return "image " + e.value
	case e.BMC != "":
		return "BMC " + string(e.BMC)
	}
	return "claim " + string(e.Claim)
}

// Next says how a list that the guard holds back can pass.
func (h *Held) Next() string {
	says := "it waits for approval by a commit whose message ends with " + h.Approve + "; to refuse it: " + h.Refuse
	if h.Approve == "" {
		says = "once merged, Ingot lists it with the line that approves it (ingot status, or " + model.ReportFleet +
			" on the status branch): push a commit whose message ends with that line, Ingot-Approve: and the token"
	}
	if !h.Until.IsZero() {
		says += "; or wait until " + text.Time(h.Until)
	}
	return says
}

// Limits says which limit a list exceeds.
func (h *Held) Limits() string {
	of := "of the fleet"
	if h.Namespace != "" {
		of = "of namespace " + h.Namespace
	}
	return fmt.Sprintf("%s, because the limit %s is %s within its window", text.Plural(len(h.Steps), "step"), of, text.Plural(h.Limit, "server"))
}
