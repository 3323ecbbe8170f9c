package reconcile

import (
	"cmp"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ingot/model"
	"ingot/reconcile/plan"
	"ingot/reconcile/plan/bind"
	"ingot/reconcile/plan/proposal"
	"ingot/reconcile/report"
)

// FleetCollector shows the fleet as the newest report has it: metal-operator's metrics, and
// what waits, for what, since when.
type FleetCollector struct {
	report func() *Reported
	all    bool
}

// NewFleetCollector returns a collector that calls report at each scrape. all adds the
// series of each server with states that it is not in, and with conditions that are as expected.
func NewFleetCollector(report func() *Reported, all bool) *FleetCollector {
	return &FleetCollector{report, all}
}

// The metrics of each server and BMC.
var (
	serverState = prometheus.NewDesc("metal_server_state",
		"1 for the state that the server is in; with admin.serverMetrics, 0 for the others.", []string{"server", "state"}, nil)
	serverPower = prometheus.NewDesc("metal_server_power_state",
		"1 for the server's power state; with admin.serverMetrics, 0 for the others.", []string{"server", "power_state"}, nil)
	serverCondition = prometheus.NewDesc("metal_server_condition_status",
		"Always 1: a condition of the server that is not as expected, and its status; with admin.serverMetrics, each condition.", []string{"server", "condition_type", "status"}, nil)
	bmcReady = prometheus.NewDesc("ingot_bmc_ready",
		"1 while the BMC can be used, else 0.", []string{"bmc"}, nil)
	bmcRead = prometheus.NewDesc("ingot_bmc_last_read_timestamp_seconds",
		"When the BMC was last read by this process, in Unix time; there is none before the first reading.", []string{"bmc"}, nil)
)

// The metrics of the fleet as a whole.
var (
	fleetServers = prometheus.NewDesc("ingot_servers",
		"Servers by state.", []string{"state"}, nil)
	serversOldest = prometheus.NewDesc("ingot_server_state_oldest_timestamp_seconds",
		"When the server that has been in a state for longest entered it, in Unix time, by state; absent for a state without servers.", []string{"state"}, nil)
	serversWaiting = prometheus.NewDesc("ingot_servers_waiting",
		"Servers that are not in their desired state, by reason.", []string{"reason"}, nil)
	serversForActor = prometheus.NewDesc("ingot_servers_awaiting_action",
		"Servers that wait for somebody, by who has to act.", []string{"actor"}, nil)
	fleetClaims = prometheus.NewDesc("ingot_claims",
		"Claims by phase.", []string{"phase"}, nil)
	claimsWaiting = prometheus.NewDesc("ingot_claims_waiting",
		"Claims that have no server, or whose server is not in its desired state, by phase and reason.", []string{"phase", "reason"}, nil)
	claimsUnconfirmed = prometheus.NewDesc("ingot_claims_unconfirmed",
		"Claims whose server was served its installation and has not reported that it booted.", nil, nil)
	claimsCloudInitFailed = prometheus.NewDesc("ingot_claims_cloud_init_failed",
		"Claims whose server runs and reported that cloud-init failed.", nil, nil)
	installServers = prometheus.NewDesc("ingot_install_servers",
		"Servers on which a disk image is being installed, by the stage that their probe reported last.", []string{"stage"}, nil)
	fleetBMCs = prometheus.NewDesc("ingot_bmcs",
		"BMCs by state.", []string{"state"}, nil)
	bmcsFailing = prometheus.NewDesc("ingot_bmcs_failing",
		"BMCs that cannot be used, by reason.", []string{"reason"}, nil)
	guardHeld = prometheus.NewDesc("ingot_guard_held",
		"Steps that the guard holds back.", nil, nil)
	guardHolds = prometheus.NewDesc("ingot_guard_hold_since_timestamp_seconds",
		"Since when the guard has held a list back, in Unix time, by the token that approves it and the namespace whose limit applies (none: the fleet's).", []string{"token", "scope"}, nil)
	absent = prometheus.NewDesc("ingot_git_absent_objects",
		"Objects that are in force although Git lacks them, because no commit removed them.", nil, nil)
	observeOnly = prometheus.NewDesc("ingot_observe_only",
		"1 while nothing may be done to any server, else 0.", nil, nil)
)

// maxNamed is how many objects that wait have a series by name: those that have waited
// longest. There may be very many, and the first are as telling as all.
const maxNamed = 100

// What has waited longest, by name.
var (
	serverWaits = prometheus.NewDesc("ingot_server_waiting_since_timestamp_seconds",
		"Since when a server has not been in its desired state, in Unix time; of the 100 that have waited longest.", []string{"server", "state", "reason", "actor"}, nil)
	claimWaits = prometheus.NewDesc("ingot_claim_waiting_since_timestamp_seconds",
		"Since when a claim has no server, or its server is not in its desired state, in Unix time; of the 100 that have waited longest.", []string{"claim", "phase", "reason", "actor"}, nil)
	bmcFails = prometheus.NewDesc("ingot_bmc_failing_since_timestamp_seconds",
		"Since when a BMC cannot be used, in Unix time; of the 100 that have failed longest.", []string{"bmc", "reason"}, nil)
)

// Describe implements prometheus.Collector.
func (c *FleetCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		serverState, serverPower, serverCondition, bmcReady, bmcRead,
		fleetServers, serversOldest, serversWaiting, serversForActor, serverWaits,
		fleetClaims, claimsWaiting, claimsUnconfirmed, claimsCloudInitFailed, claimWaits, installServers,
		fleetBMCs, bmcsFailing, bmcFails,
		guardHeld, guardHolds, absent, observeOnly,
	} {
		ch <- d
	}
}

var powerStates = []model.Power{
	model.PowerOn, model.PowerOff, model.PowerPaused, model.PowerPoweringOn, model.PowerPoweringOff,
}

// The phases of claims, as the status branch has them.
const (
	phaseBound   = "Bound"
	phaseUnbound = "Unbound"
)

// The reasons that have a series also while nothing waits for them.
var (
	unboundReasons = []model.Reason{
		model.ReasonNoServerFree, model.ReasonServerUnknown, model.ReasonServerNotFree, model.ReasonSelectorMismatch,
		model.ReasonSuperseded, model.ReasonClaimQuarantined, model.ReasonAbsentWithoutCommit, model.ReasonObserveOnly,
	}
	boundReasons = []model.Reason{
		model.ReasonWaitingForPower, model.ReasonWaitingForBoot, model.ReasonBootFailed, model.ReasonUnconfirmed, model.ReasonBMCUnreachable,
	}
	bmcReasons = []model.Reason{
		model.ReasonConnectionFailed, model.ReasonAuthenticationFailed, model.ReasonPasswordChangeRequired, model.ReasonSessionsFull, model.ReasonBMCBusy,
		model.ReasonUpdateInProgress, model.ReasonTLSFailed, model.ReasonCertificateChanged, model.ReasonCertificateInvalid, model.ReasonNotRedfish, model.ReasonHalfAnswer,
		model.ReasonAddressNotAllowed, model.ReasonAddressLost, model.ReasonEndpointMissing, model.ReasonSecretMissing,
		model.ReasonCredentialsMissing, model.ReasonUnknownError, model.ReasonIgnored,
	}
)

// Collect implements prometheus.Collector.
func (c *FleetCollector) Collect(ch chan<- prometheus.Metric) {
	r := c.report()
	if r == nil {
		return
	}
	s := scrape{ch, c.all, r}
	s.servers()
	s.claims()
	s.installs()
	s.bmcs()
	s.guard()
}

type scrape struct {
	ch  chan<- prometheus.Metric
	all bool // of FleetCollector
	*Reported
}

func (s scrape) gauge(d *prometheus.Desc, v float64, labels ...string) {
	s.ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
}

// counts are how many objects there are of each kind, by the values of labels.
type counts[L comparable] map[L]int

func zeroed[L comparable](of []L) counts[L] {
	c := make(counts[L], len(of))
	for _, l := range of {
		c[l] = 0
	}
	return c
}

// waits is one object that is not where it should be.
type waits struct {
	since  time.Time
	labels []string // the first is its name
}

// named shows the objects that have waited longest. One of which nobody knows since when
// has waited since this process began, or longer.
func (s scrape) named(d *prometheus.Desc, all []waits) {
	for i := range all {
		if all[i].since.IsZero() {
			all[i].since = s.Input.Started
		}
	}
	slices.SortFunc(all, func(a, b waits) int {
		return cmp.Or(a.since.Compare(b.since), cmp.Compare(a.labels[0], b.labels[0]))
	})
	for _, w := range all[:min(len(all), maxNamed)] {
		s.gauge(d, unix(w.since), w.labels...)
	}
}

func (s scrape) servers() {
	states, reasons := zeroed(model.ServerStates), zeroed(model.Reasons)
	actors := zeroed([]proposal.Actor{proposal.Tenant, proposal.RackOperator})
	oldest := make(map[model.ServerState]time.Time)
	var waiting []waits
	for _, srv := range s.Result.Servers {
		s.server(srv)
		state, since := srv.Record.Life.State, srv.Record.Life.Since
		states[state]++
		if first, ok := oldest[state]; !ok || since.Before(first) {
			oldest[state] = since
		}
		if why := srv.Why; why.Reason != "" {
			reason := reasonLabel(why.Reason)
			reasons[reason]++
			if why.Actor != proposal.ActorNone {
				actors[why.Actor]++
			}
			waiting = append(waiting, waits{why.Since, []string{string(srv.Name), stateLabel(state), reason, string(why.Actor)}})
		}
	}
	for _, st := range model.ServerStates {
		s.gauge(fleetServers, float64(states[st]), string(st))
		if since, ok := oldest[st]; ok {
			s.gauge(serversOldest, unix(since), string(st))
		}
	}
	for reason, n := range reasons {
		s.gauge(serversWaiting, float64(n), reason)
	}
	for actor, n := range actors {
		s.gauge(serversForActor, float64(n), string(actor))
	}
	s.named(serverWaits, waiting)
}

// expected are the conditions that are True of a server without a problem.
var expected = map[string]bool{
	"Ready": true, "BootProgress": true, "Operation": true, "Identified": true,
	model.ConditionDiscovered: true, model.ConditionWiped: true, model.ConditionInventoryComplete: true,
}

func (s scrape) server(srv *plan.Server) {
	status, name := s.ServerStatus(srv.Name), string(srv.Name)
	for _, st := range model.ServerStates {
		s.value(serverState, st == srv.Record.Life.State, name, string(st))
	}
	for _, p := range powerStates {
		s.value(serverPower, p == status.PowerState, name, string(p))
	}
	for _, cond := range status.Conditions {
		if s.all || cond.Status != metav1.ConditionTrue || !expected[cond.Type] {
			s.gauge(serverCondition, 1, name, cond.Type, string(cond.Status))
		}
	}
}

// value shows one of the values that a server may have, if it has this one or all are wanted.
func (s scrape) value(d *prometheus.Desc, has bool, labels ...string) {
	if has || s.all {
		s.gauge(d, oneIf(has), labels...)
	}
}

type phased struct{ phase, reason string }

func (s scrape) claims() {
	reasons := make(counts[phased])
	for _, r := range unboundReasons {
		reasons[phased{phaseUnbound, r}] = 0
	}
	for _, r := range boundReasons {
		reasons[phased{phaseBound, r}] = 0
	}
	phases := zeroed([]string{phaseBound, phaseUnbound})
	on := make(map[model.ServerName]*plan.Server, len(s.Result.Servers))
	unconfirmed, cloudInitFailed := 0, 0
	for _, srv := range s.Result.Servers {
		on[srv.Name] = srv
		unconfirmed += int(oneIf(srv.Unconfirmed != nil))
		cloudInitFailed += int(oneIf(srv.CloudInit != nil))
	}
	var waiting []waits
	for _, claim := range s.Result.Claims {
		phase, why := claimWait(claim, on[claim.Server])
		phases[phase]++
		if why.Reason == "" {
			continue
		}
		reason := reasonLabel(why.Reason)
		reasons[phased{phase, reason}]++
		since := why.Since
		if since.IsZero() { // why it has no server is counted anew in each plan
			since = claim.Record.FirstSeen
		}
		waiting = append(waiting, waits{since, []string{string(claim.Name), phase, reason, string(why.Actor)}})
	}
	for phase, n := range phases {
		s.gauge(fleetClaims, float64(n), phase)
	}
	for of, n := range reasons {
		s.gauge(claimsWaiting, float64(n), of.phase, of.reason)
	}
	s.gauge(claimsUnconfirmed, float64(unconfirmed))
	s.gauge(claimsCloudInitFailed, float64(cloudInitFailed))
	s.named(claimWaits, waiting)
}

// claimWait is a claim's phase, and what it waits for. What runs on a server goes on while
// that cannot be read.
func claimWait(c *bind.Claim, on *plan.Server) (phase string, why proposal.Why) {
	switch {
	case c.Server == "":
		return phaseUnbound, c.Why
	case on == nil || on.RanWhenLastRead:
		return phaseBound, proposal.Why{}
	case on.Why.Reason == "" && on.Unconfirmed != nil:
		return phaseBound, *on.Unconfirmed
	}
	return phaseBound, on.Why
}

func (s scrape) bmcs() {
	states, reasons := zeroed(report.BMCStates()), zeroed(bmcReasons)
	var failing []waits
	for _, b := range s.Result.BMCs {
		s.gauge(bmcReady, oneIf(b.Why.Reason == ""), string(b.Name))
		if at := s.Input.BMCRead[b.Name]; !at.IsZero() {
			s.gauge(bmcRead, unix(at), string(b.Name))
		}
		state := report.BMCState(b.Why)
		states[state]++
		if state == report.BMCError {
			reason := reasonLabel(b.Why.Reason)
			reasons[reason]++
			failing = append(failing, waits{b.Why.Since, []string{string(b.Name), reason}})
		}
	}
	for state, n := range states {
		s.gauge(fleetBMCs, float64(n), state)
	}
	for reason, n := range reasons {
		s.gauge(bmcsFailing, float64(n), reason)
	}
	s.named(bmcFails, failing)
}

// installs counts the servers whose disk image is being written, by stage.
func (s scrape) installs() {
	stages := zeroed(model.DiskInstallStages)
	for _, srv := range s.Result.Servers {
		rec := srv.Record
		p := s.Input.Observed.ProgressOf(rec)
		if t := rec.Boot.Ticket; t.Open() && t.Disk != nil && rec.Install.Digest == "" && p != nil && p.Install != nil && p.Install.Stage.Known() {
			stages[p.Install.Stage]++
		}
	}
	for stage, n := range stages {
		s.gauge(installServers, float64(n), string(stage))
	}
}

func (s scrape) guard() {
	fleet, held := &s.Input.Observed.Fleet, 0
	for _, g := range fleet.Holds {
		held += len(g.Steps)
		s.gauge(guardHolds, unix(g.Since), g.Token, g.Scope)
	}
	s.gauge(guardHeld, float64(held))
	s.gauge(absent, float64(len(fleet.Absent)+fleet.AbsentMore))
	s.gauge(observeOnly, oneIf(s.Result.ObserveOnly.Reason != ""))
}

func oneIf(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
