package report

import (
	"fmt"
	"strings"
	"time"

	"ingot/model"
	"ingot/model/text"
	"ingot/reconcile/plan/proposal"
)

// Hold is a list of steps that wait until a commit approves them.
type Hold struct {
	// Subject says in a few words what is approved, Message why it waits.
	Subject string `json:"subject"`
	Message string `json:"message"`
	// Approve is the line of a commit message that approves the whole list.
	Approve string    `json:"approve"`
	Revert  string    `json:"revert,omitempty"` // the command that refuses it; empty: put the objects back
	Since   time.Time `json:"since,omitzero"`
	Until   time.Time `json:"until,omitzero"` // when it goes without an approval; zero = never
	Effects []Effect  `json:"effects,omitempty"`
	LeftOut int       `json:"leftOut,omitempty"` // how many more effects have no room in the document
}

// Effect is what happens to one object once it is approved.
type Effect struct {
	Server  model.ServerName `json:"server,omitempty"`
	Text    string           `json:"text"`
	Approve string           `json:"approve,omitempty"` // the line that approves this effect alone
}

// Token is what approves the list.
func (h Hold) Token() string { return tokenIn(h.Approve) }

// Token is what approves the effect alone, empty if nothing does.
func (e Effect) Token() string { return tokenIn(e.Approve) }

func tokenIn(line string) string { return strings.TrimPrefix(line, proposal.ApproveLine("")) }

// Alone is the list of one effect that can be approved by itself.
func (h Hold) Alone(e Effect) Hold {
	return Hold{Subject: "one of " + h.Subject, Message: h.Message, Approve: e.Approve, Since: h.Since, Effects: []Effect{e}}
}

// holds are the lists that wait for an approval, and how many more have no room in the document.
func (v *view) holds() (all []Hold, leftOut int) {
	fleet := &v.in.Observed.Fleet
	for i := range fleet.Holds {
		all = append(all, guardHold(&fleet.Holds[i]))
	}
	if len(fleet.Absent) > 0 {
		all = append(all, v.absentHold())
	}
	if t := fleet.UnknownToken; t != "" {
		h := Hold{
			Subject: "that claims are bound", Approve: proposal.ApproveLine(t), Since: fleet.Unknown,
			Message: "neither the store nor the status branch knew the fleet, and servers run that may serve these claims already",
		}
		for _, c := range v.Claims {
			if c.Server == "" {
				h.Effects = append(h.Effects, Effect{Text: "claim " + string(c.Name) + " is given a free server, which is installed for it"})
			}
		}
		all = append(all, h)
	}
	if t := fleet.GapToken; t != "" {
		h := Hold{
			Subject: "that servers are switched off", Approve: proposal.ApproveLine(t),
			Message: "these servers should be off, and were found running after no Ingot had run for long: they may serve claims",
		}
		for _, s := range v.Servers {
			if st := s.Record.Life.State; !s.Record.Life.FoundRunning.IsZero() && (st == model.StateAvailable || st == model.StateCleanup) {
				h.Effects = append(h.Effects, Effect{s.Name, "server " + string(s.Name) + ", which was found running, is switched off, and may be wiped and bound", ""})
			}
		}
		all = append(all, h)
	}
	for _, u := range fleet.Unreadable {
		all = append(all, Hold{
			Subject: "that the record of " + string(u.Server) + " is given up", Approve: proposal.ApproveLine(u.Token), Since: u.Since,
			Message: "no copy of the record of server " + string(u.Server) + " can be read",
			Effects: []Effect{{u.Server, "what was decided about server " + string(u.Server) + " is forgotten, also that a claim has it", ""}},
		})
	}
	leftOut = len(all)
	all = kept(all, (&room{maxShownList}).fits)
	leftOut -= len(all)
	r := room{maxShownList}
	for i := range all {
		n := len(all[i].Effects)
		all[i].Effects = kept(all[i].Effects, r.fits)
		all[i].LeftOut += n - len(all[i].Effects)
	}
	return all, leftOut
}

func guardHold(h *model.GuardHold) Hold {
	hold := Hold{
		Subject: text.Plural(len(h.Steps), "step") + " held by the guard", Message: guardText(h), Approve: proposal.ApproveLine(h.Token),
		Revert: proposal.Refuse(h.Revision), Since: h.Since, Until: h.Until,
	}
	for _, d := range h.Steps {
		hold.Effects = append(hold.Effects, Effect{Server: d.Server, Text: EffectText(d)})
	}
	return hold
}

func guardText(g *model.GuardHold) string {
	if g.Gap {
		return fmt.Sprintf("%s of revision %s wait for an approval: no Ingot had run for long, so later decisions may be lost, and these servers run",
			text.Plural(len(g.Steps), "step"), g.Revision)
	}
	scope := "the fleet"
	if g.Scope != "" {
		scope = "namespace " + g.Scope
	}
	message := fmt.Sprintf("%s of revision %s would be more than the limit of %d within the guard's window for %s", text.Plural(len(g.Steps), "step"), g.Revision, g.Limit, scope)
	if !g.Until.IsZero() {
		message += "; there is room at " + text.Time(g.Until)
	}
	return message
}

// EffectText says what a disruption does to its server.
func EffectText(d model.Disruption) string {
	server, claim := "server "+string(d.Server), "claim "+string(d.Claim)
	switch d.Action {
	case proposal.StepRelease:
		return server + " is taken from " + claim + ", powered off, wiped and free for others"
	case proposal.StepRetain:
		return server + " is taken from " + claim + " and powered off; its disks stay as they are"
	case proposal.StepWipe:
		return server + ", which " + claim + " had, is wiped and free for others"
	case proposal.StepReprovision:
		return server + " is installed again for " + claim + ": what is on its disks is lost"
	case proposal.StepMaintenance:
		return server + " of " + claim + " is taken out of service by ServerMaintenance " + d.Value
	case proposal.StepPowerOff:
		if d.Value != "" && d.Value != string(model.PowerOff) {
			return server + " of " + claim + ", which is out of service, is powered off by ServerMaintenance " + d.Value
		}
		return server + " is powered off, as " + claim + " asks for"
	case proposal.StepOperation:
		return server + " of " + claim + " has its operation: " + d.Value
	case proposal.StepDiscover:
		return "what runs on " + server + " is asked to shut down, and the server is discovered"
	}
	return server + " of " + claim + ": " + d.Action
}

func (v *view) absentHold() Hold {
	f := &v.in.Observed.Fleet
	n := len(f.Absent) + f.AbsentMore
	h := Hold{Subject: text.Plural(n, "object") + " absent without a commit", Message: absentText(n), Approve: proposal.ApproveLine(f.AbsentToken), Since: f.Absent[0].Since, LeftOut: f.AbsentMore}
	for _, a := range f.Absent {
		h.Effects = append(h.Effects, v.absentEffect(&a))
		if a.Since.Before(h.Since) {
			h.Since = a.Since
		}
	}
	return h
}

func absentText(n int) string {
	return text.Plural(n, "object") + " in force though Git lacks them or has them otherwise, and no commit that follows on the revision applied says so"
}

// absentEffect says what happens once an absence is approved.
func (v *view) absentEffect(a *model.Absence) Effect {
	e := Effect{Text: a.Identity.String() + " is removed", Approve: proposal.ApproveLine(a.Token)}
	if a.Blob != "" {
		e.Text = a.Identity.String() + " becomes what Git has in its place"
	}
	switch kind := a.Identity.Kind; {
	case kind == model.KindServerClaim, kind == model.KindServerBootConfiguration:
		switch e.Server = v.serverOf(a.Identity.ClaimName()); {
		case e.Server == "":
			e.Text += "; it has no server"
		case a.Blob != "":
			e.Text += "; it has server " + string(e.Server)
		default:
			e.Text += ": server " + string(e.Server) + " is powered off, wiped and free, or retained if its Server says so"
		}
	case kind == model.KindServerMaintenance && a.Blob == "":
		e.Text += ": its server goes back into service"
	case kind == model.KindBMC && a.Blob == "":
		e.Text += ": the servers behind it are left as they are"
	}
	e.Text += " (since " + text.Time(a.Since) + ", " + string(a.Cause) + ")"
	return e
}

func (v *view) serverOf(claim model.ClaimName) model.ServerName {
	for _, s := range v.Servers {
		if s.Record.Claim.Name == claim && !s.Record.ReleaseDecided() {
			return s.Name
		}
	}
	return ""
}
