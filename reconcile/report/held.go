package report

import (
	"cmp"
	"errors"
	"time"

	"ingot/model"
	"ingot/model/text"
	"ingot/reconcile/plan/proposal"
)

// Held is one list of what waits until a commit approves it.
type Held struct {
	// Subject says in a few words what is approved, Message why it waits.
	Subject string `json:"subject"`
	Message string `json:"message"`
	// Token is what Ingot-Approve names to approve all of the list.
	Token string    `json:"token"`
	Since time.Time `json:"since"`
	// Until is when it goes without an approval; zero = never.
	Until time.Time `json:"until,omitzero"`
	// Effects are what will happen, one by one; LeftOut is what else there is, for which the
	// status branch had no room: "12 steps".
	Effects []HeldEffect `json:"effects"`
	LeftOut string       `json:"leftOut,omitempty"`
}

// HeldEffect is what will happen to one object, and what approves that alone, if anything does.
type HeldEffect struct {
	Text  string `json:"text"`
	Token string `json:"token,omitempty"`
}

// Alone is the list of one effect that can be approved by itself.
func (h Held) Alone(e HeldEffect) Held {
	return Held{
		Subject: approves + "one of " + h.Subject[len(approves):], Message: h.Message, Token: e.Token, Since: h.Since, Effects: []HeldEffect{e},
	}
}

// approves begins each subject.
const approves = "approve "

// ReadHeld returns all that waits for an approval, of the files of the status branch, and
// the newest revision that Ingot has seen.
func ReadHeld(files map[string][]byte) (held []Held, observed model.Revision, err error) {
	if len(files[model.ReportRevision]) == 0 {
		return nil, "", errors.New("it has no " + model.ReportRevision + ": is it the status branch of Ingot?")
	}
	doc, err := ReadDocument(model.ReportRevision, files[model.ReportRevision])
	if err != nil {
		return nil, "", err
	}
	revision := doc.(*Revision)
	held, err = filesOf(files).held(revision)
	observed = cmp.Or(revision.Observed, revision.Applied)
	return held, observed, err
}

// HeldOf returns all that waits for an approval, of a report: the same as ReadHeld once it
// is published.
func HeldOf(r *model.Report) []Held {
	of := r.Documents[model.ReportRevision]
	if of == nil {
		return nil
	}
	doc, ok := of.Object.(*Revision)
	if !ok {
		return nil
	}
	held, _ := reportedBy(r).held(doc) // there is nothing to be read that could fail
	return held
}

// held lists what waits for an approval by a revision.yaml and what is beside it.
func (d documents) held(doc *Revision) (held []Held, err error) {
	serving, found, unbound, err := heldObjects(d)
	if err != nil {
		return nil, err
	}
	for i := range doc.Decided.Holds {
		held = append(held, heldByGuard(doc, i))
	}
	if len(doc.Decided.Absent) > 0 {
		held = append(held, heldAbsent(doc, serving))
	}
	if t := doc.Decided.UnknownToken; t != "" {
		held = append(held, Held{
			Subject: approves + "that claims are bound", Token: t, Since: doc.Decided.Unknown, Effects: unbound,
			Message: "neither the store nor the status branch knew the fleet, and servers run that may serve these claims already",
		})
	}
	if t := doc.Decided.GapToken; t != "" {
		held = append(held, Held{
			Subject: approves + "that servers are switched off", Token: t, Effects: found,
			Message: "these servers should be off, and were found running after no Ingot had run for long: they may serve claims",
		})
	}
	for _, u := range doc.Decided.Unreadable {
		held = append(held, Held{
			Subject: approves + "that the record of " + string(u.Server) + " is given up", Token: u.Token, Since: u.Since,
			Message: "no copy of the record of server " + string(u.Server) + " can be read",
			Effects: []HeldEffect{{Text: "what was decided about server " + string(u.Server) + " is forgotten, also that a claim has it"}},
		})
	}
	return held, nil
}

// heldObjects are the servers by the claims that they serve, those that were found running though
// they should be off, and the claims that have no server.
func heldObjects(d documents) (serving map[model.ClaimName]model.ServerName, found, unbound []HeldEffect, err error) {
	serving = make(map[model.ClaimName]model.ServerName)
	for _, path := range d.paths {
		if path == model.ReportRevision || path == model.ReportProblems {
			continue
		}
		of, err := d.at(path)
		if err != nil {
			return nil, nil, nil, err
		}
		doc, _ := of.(*Document)
		if doc == nil {
			continue
		}
		if st, claim := doc.Status.(ClaimStatus); claim && st.Server == "" {
			name := claimSummary(doc, st).Name
			unbound = append(unbound, HeldEffect{Text: "claim " + string(name) + " is given a free server, which is installed for it"})
		}
		rec, _ := doc.Decided.(*model.ServerRecord)
		if rec == nil {
			continue
		}
		if rec.Claim.Name != "" && !rec.ReleaseDecided() {
			serving[rec.Claim.Name] = rec.Name
		}
		if !rec.Life.FoundRunning.IsZero() && (rec.Life.State == model.StateAvailable || rec.Life.State == model.StateCleanup) {
			found = append(found, HeldEffect{Text: "server " + string(rec.Name) + ", which was found running, is switched off, and may be wiped and bound"})
		}
	}
	return serving, found, unbound, nil
}

func heldByGuard(doc *Revision, i int) Held {
	h := &doc.Decided.Holds[i]
	held := Held{
		Subject: approves + text.Plural(len(h.Steps), "step") + " held by the guard", Message: guardText(h),
		Token: h.Token, Since: h.Since, Until: h.Until,
	}
	for _, d := range h.Steps {
		held.Effects = append(held.Effects, HeldEffect{Text: EffectText(d)})
	}
	if i < len(doc.Guard) && doc.Guard[i].LeftOut != "" {
		held.Message, held.LeftOut = doc.Guard[i].Message, doc.Guard[i].LeftOut
		held.Subject = approves + "a list of steps held by the guard"
	}
	return held
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

func heldAbsent(doc *Revision, serving map[model.ClaimName]model.ServerName) Held {
	f := &doc.Decided
	n := len(f.Absent) + f.AbsentMore
	if doc.Absent != nil {
		n = doc.Absent.Count
	}
	held := Held{
		Subject: approves + text.Plural(n, "object") + " absent without a commit", Message: absentText(n),
		Token: f.AbsentToken, Since: f.Absent[0].Since,
	}
	if n > len(f.Absent) {
		held.LeftOut = text.Plural(n-len(f.Absent), "object")
	}
	for _, a := range f.Absent {
		held.Effects = append(held.Effects, HeldEffect{Text: absentEffect(&a, serving), Token: a.Token})
		if a.Since.Before(held.Since) {
			held.Since = a.Since
		}
	}
	return held
}

// absentEffect says what happens once an absence is approved.
func absentEffect(a *model.Absence, serving map[model.ClaimName]model.ServerName) string {
	says, verb := a.Identity.String(), " is removed"
	if a.Blob != "" {
		verb = " becomes what Git has in its place"
	}
	says += verb
	switch a.Identity.Kind {
	case model.KindServerClaim, model.KindServerBootConfiguration:
		server := serving[a.Identity.ClaimName()]
		switch {
		case server == "":
			return says + "; it has no server"
		case a.Blob != "":
			return says + "; it has server " + string(server)
		}
		return says + ": server " + string(server) + " is powered off, wiped and free, or retained if its Server says so"
	case model.KindServerMaintenance:
		if a.Blob == "" {
			return says + ": its server goes back into service"
		}
	case model.KindBMC:
		if a.Blob == "" {
			return says + ": the servers behind it are left as they are"
		}
	default:
	}
	return says
}
