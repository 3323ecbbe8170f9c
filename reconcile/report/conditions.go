package report

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ingot/model"
	"ingot/model/text"
	"ingot/reconcile/plan/disks"
	"ingot/reconcile/plan/proposal"
	"ingot/reconcile/progress"
)

// condition makes one condition. Its time is that of the transition, to the second;
// its message is bounded.
func condition(kind string, holds bool, reason, message string, since time.Time) metav1.Condition {
	status := metav1.ConditionFalse
	if holds {
		status = metav1.ConditionTrue
	}
	return metav1.Condition{
		Type: kind, Status: status, Reason: reason, Message: shownText(message),
		LastTransitionTime: metav1.NewTime(since.UTC().Truncate(time.Second)),
	}
}

// serverConditions says how the server fares, in a fixed order.
func (v *view) serverConditions(s serverView) []metav1.Condition {
	why := s.Why
	ready := condition(typeReady, true, string(s.Record.Life.State), "", s.Record.Life.Since)
	if why.Reason != "" {
		ready = condition(typeReady, false, why.Reason, why.Text(), why.Since)
	}
	conds := []metav1.Condition{ready}
	if p := v.in.Observed.Probes[s.Name]; p != nil {
		conds = append(conds, condition(model.ConditionDiscovered, true, reasonReportReceived, "the probe reported", p.ReceivedAt))
	}
	if why.Reason == model.ReasonFoundRunning {
		conds = append(conds, condition(model.ReasonFoundRunning, true, model.ReasonFoundRunning, why.Message, why.Since))
	}
	trace := s.trace()
	if steps := trace.Steps(); len(steps) > 0 {
		last := steps[len(steps)-1]
		conds = append(conds, condition(typeBootProgress, last.Stage == trace.Outcome(), stageReasons[last.Stage], progressText(trace, steps), last.At))
	}
	if why := s.Duplicate; why != nil {
		conds = append(conds, condition(model.ReasonDuplicateUUID, true, model.ReasonDuplicateUUID, why.Text(), why.Since))
	}
	if why := s.Approval; why != nil {
		conds = append(conds, condition(typeMaintenanceApproved, false, why.Reason, why.Text(), why.Since))
	}
	if m, c := s.Manifest, s.Claim; m != nil && m.Spec.Power != "" && c != nil {
		why := proposal.Why{Actor: proposal.RackOperator, Message: fmt.Sprintf("spec.power %s of Server %s (%s) is ignored: %s decides, and says %s",
			m.Spec.Power, m.Name, m.Source, c.Identity(), c.Spec.Power)}
		conds = append(conds, condition(model.ReasonPowerIgnored, true, model.ReasonPowerIgnored, why.Text(), s.Record.Life.Since))
	}
	if no := s.Record.Boot.NoDiskBoot; no != nil {
		conds = append(conds, condition(typeDiskBoot, false, no.Reason, noDiskText(s.Name, no), no.Since))
	}
	conds = append(conds, s.settingConditions()...)
	if c, failed := s.operationCondition(); failed {
		conds = append(conds, c)
	}
	if c, refused := s.refusedBoot(); refused {
		conds = append(conds, c)
	}
	if c, refused := s.ticketRefused(); refused {
		conds = append(conds, c)
	}
	if c, telling := v.macsCondition(s); telling {
		conds = append(conds, c)
	}
	if c, wiped := s.wipedCondition(); wiped {
		conds = append(conds, c)
	}
	if c, telling := s.inventoryCondition(); telling {
		conds = append(conds, c)
	}
	return conds
}

// operationCondition says that the power operation that was asked for last was not done,
// was done differently, or has an unknown outcome.
func (s serverView) operationCondition() (c metav1.Condition, telling bool) {
	op := s.Record.Requests.Operation
	if op == nil {
		return metav1.Condition{}, false
	}
	text, since := op.Value+": "+op.Message, op.AskedAt
	switch op.Outcome {
	case model.OutcomeDone:
		if op.Message == "" {
			return metav1.Condition{}, false
		}
		return condition(typeOperation, true, outcomePrefix+string(model.OutcomeDone), text, since), true
	case "":
		return metav1.Condition{}, false
	case model.OutcomeUnknown:
		text += "; it is not repeated: look at the machine, and give the annotation a new value if it is still wanted"
	case model.OutcomeRefused, model.OutcomeExpired, model.OutcomeWithdrawn:
	}
	if since.IsZero() {
		since = op.NotedAt
	}
	return condition(typeOperation, false, outcomePrefix+string(op.Outcome), text, since), true
}

// noDiskText says what it means that the BMC sets no one-time boot from disk.
func noDiskText(name model.ServerName, no *model.NoDiskBoot) string {
	return fmt.Sprintf("its BMC sets no one-time boot from disk, so a server that lost power starts from what its boot order has first, and is sent on to its disk from the network: "+
		"have its boot order begin with the disk; to have its BMC asked again, set annotation %s: %s#1 on Server %s (%s)",
		model.AnnotationOperation, model.OperationRetry, name, no.Message)
}

// wipedCondition says how the last wipe went, if there was one.
func (s serverView) wipedCondition() (c metav1.Condition, wiped bool) {
	failed, missing := progress.NotWiped(s.Record.Disks.Wiped), progress.Missing(disks.NotAccepted(s.Record.Disks.Missing))
	switch {
	case failed != "" && missing != "":
		return condition(model.ConditionWiped, false, reasonWipeFailed, failed+"; "+missing, s.Record.Life.Since), true
	case failed != "":
		return condition(model.ConditionWiped, false, reasonWipeFailed, failed, s.Record.Life.Since), true
	case missing != "":
		return condition(model.ConditionWiped, false, reasonDiskMissing, missing, s.Record.Life.Since), true
	case len(s.Record.Disks.Wiped) == 0:
		return metav1.Condition{}, false
	}
	done := text.Plural(len(s.Record.Disks.Wiped), "disk") + " done"
	replaced := func(m model.MissingDisk) bool { return m.ReplacedBy != "" }
	if accepted := slices.DeleteFunc(slices.Clone(s.Record.Disks.Missing), replaced); len(accepted) > 0 {
		done += "; accepted without a wipe: " + progress.Disks(accepted)
	}
	if gone := slices.DeleteFunc(slices.Clone(s.Record.Disks.Missing), func(m model.MissingDisk) bool { return !replaced(m) }); len(gone) > 0 {
		done += "; replaced under a ServerMaintenance and not wiped: " + progress.Disks(gone)
	}
	return condition(model.ConditionWiped, true, reasonWipeDone, done, s.Record.Life.Since), true
}
