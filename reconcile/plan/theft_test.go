package plan_test

import (
	"strings"
	"testing"
	"time"

	"ingot/model"
	"ingot/reconcile/plan"
	"ingot/reconcile/plan/booting"
	"ingot/reconcile/plan/proposal"
)

const thiefMAC = "02:00:00:00:00:66"

// setSecret gives the claim of a server a Secret with this Ignition.
func setSecret(in *input, rec *record, ignition string) *model.Secret {
	c := in.Desired.Claims[rec.Claim.Name]
	c.Spec.IgnitionSecretRef = &model.LocalRef{Name: "web"}
	s := &model.Secret{Meta: model.Meta{Namespace: c.Namespace, Name: "web"}, Values: map[string]model.Sensitive{"ignition": model.NewSensitive(ignition)}}
	in.Desired.Secrets[model.Named[model.ObjectName](c.Namespace, "web")] = s
	return s
}

func TestAStolenTicketIsArmedAnew(t *testing.T) {
	thefts := func(claim model.ClaimName, count int) change {
		return func(_ *input, rec *record) {
			rec.Boot.Theft = &model.Theft{Purpose: model.PurposeClaim, Claim: claim, Count: count}
		}
	}
	for name, tc := range map[string]struct {
		purpose model.TicketPurpose // "" = of a claim
		change  change
		want    bool
		fails   bool
	}{
		"of a claim":   {want: true},
		"of discovery": {purpose: model.PurposeDiscovery, want: true},
		"of a wipe":    {purpose: model.PurposeCleanup, want: true},
		"though the thief reports that it booted": {want: true, change: reported},
		"but the third in a row is an Error":      {want: true, change: thefts("default/c00000", 2), fails: true},
		"not the third since its server booted":   {want: true, change: thefts("default/c00000", 0)},
		"nor of another claim":                    {want: true, change: thefts("default/other", 2)},
		"never of a server that has an install": {change: func(in *input, rec *record) {
			rec.Install.Digest, rec.Install.Unconfirmed = rec.Boot.Ticket.Digest, in.Now
		}},
		"nor where its probe reported the card": {change: func(in *input, rec *record) {
			in.Observed.Probes[rec.Name] = &model.ProbeReport{Data: model.ProbeData{NICs: []model.ProbeNIC{{MAC: thiefMAC}}}}
		}},
		"nor where the card is known as the server's since": {change: func(in *input, rec *record) {
			in.Observed.ServerFacts[rec.Name].Inventory = &model.Inventory{MACAddresses: []string{thiefMAC}}
			rec.MACs = macs(model.MACByBMC, 0x66)
		}},
		"nor of one that may have an install": {change: mayBeInstalled},
		"nor of one that is being wiped": {purpose: model.PurposeCleanup, change: func(in *input, rec *record) {
			in.Observed.WipeProgress[rec.Name] = &model.WipeProgress{Ticket: "t", ReceivedAt: in.Now}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			in, rec := ticketedFor(tc.purpose, "")
			purpose, state, then := rec.Boot.Ticket.Purpose, rec.Life.State, "ask for power"
			if purpose == model.PurposeClaim {
				setSecret(in, rec, "{}")
				then = "arm boot ticket"
			}
			rec.Boot.Attempts = 1
			in.Observed.Progress[rec.Name] = &model.Progress{Ticket: "t", ScriptAt: in.Now, IgnitionAt: in.Now, Uses: []model.TicketUse{
				{What: model.ThingIgnition, Client: "192.0.2.66", MAC: thiefMAC, First: in.Now.Add(-time.Minute), Last: in.Now, Count: 1},
				{What: model.ThingScript, MAC: "02:00:00:00:00:01", Own: true, Refusal: model.RefusedReplay, First: in.Now, Last: in.Now, Count: 1},
			}}
			all(tc.change)(in, rec)
			st := stepOf(in, rec.Name)
			if got := st.After.Boot.Ticket.Ended == model.TicketSpent; got != tc.want || st.does() != "" && tc.want {
				t.Fatalf("it is Spent: %t, want %t: %+v; with it %q is done", got, tc.want, st.After.Boot.Ticket, st.does())
			}
			if fails := st.After.Life.State == model.StateError; fails != tc.fails || !fails && st.After.Life.State != state {
				t.Errorf("its server is %s", st.After.Life.State)
			}
			if !tc.want {
				return
			}
			if th := st.After.Boot.Theft; th == nil || th.Client != "192.0.2.66" || th.MAC != thiefMAC || th.Purpose != purpose {
				t.Errorf("on record is %+v", th)
			}
			if l := st.After.Life; tc.fails {
				if l.Reason != model.ReasonTicketStolen || !strings.Contains(l.Message, "192.0.2.66") || !strings.Contains(l.Message, "retry#1") {
					t.Errorf("the Error says %s: %s", l.Reason, l.Message)
				}
				return
			}
			if purpose == model.PurposeDiscovery && st.After.Boot.Attempts != 0 {
				t.Errorf("it counts as %d attempts", st.After.Boot.Attempts)
			}
			in.Observed.Servers[rec.Name] = st.After
			if next := stepOf(in, rec.Name).does(); !strings.HasPrefix(next, then) {
				t.Errorf("then %q is done", next)
			}
			if got := exposedText(in); purpose == model.PurposeClaim && !strings.Contains(got, "Secret web was served to 192.0.2.66 ("+thiefMAC+")") {
				t.Errorf("the claim says of its Secret %q", got)
			}
		})
	}
}

func TestASecretIsExposedUntilItIsAnother(t *testing.T) {
	in, rec := ticketed(model.StateReserved, model.PurposeClaim)
	secret := setSecret(in, rec, "old")
	rec.Install.Digest, rec.Boot.Ticket.Ended = rec.Boot.Ticket.Digest, model.TicketBooted
	theft := &model.Theft{Claim: rec.Claim.Name, MAC: thiefMAC, At: in.Now, Secret: booting.Digest(in.DigestKey, &proposal.Boot{SecretObject: secret})}
	says := func(when, want string) {
		t.Helper()
		if got := exposedText(in); !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("%s the claim says %q, want %q", when, got, want)
		}
	}
	rec.Boot.Theft = theft
	says("with the Secret that was served", "rotate")
	in.Desired.Claims[rec.Claim.Name].Spec.Image = "os:2"
	says("with another image", "rotate")
	rec.Boot.Theft = nil
	use := model.TicketUse{What: model.ThingIgnition, Client: "192.0.2.1"}
	served := func() { in.Observed.Progress[rec.Name] = &model.Progress{Ticket: "t", Uses: []model.TicketUse{use}} }
	served()
	says("of a client that may be its server", "")
	use.MAC = thiefMAC
	served()
	says("of another machine", "192.0.2.1 ("+thiefMAC+")")
	use.Own = true
	served()
	says("of its own server", "")
	rec.Boot.Theft = theft
	setSecret(in, rec, "new")
	says("with another Secret", "")
}

// exposedText says how the Secret of the first server's claim was exposed, "" if it was not.
func exposedText(in *input) string {
	if e := plan.Plan(in).Servers[0].Exposed; e != nil {
		return e.Message
	}
	return ""
}
