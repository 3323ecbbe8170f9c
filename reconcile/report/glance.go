package report

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ingot/model"
)

// Glance is what is said of one object at a glance, of whatever kind it is.
type Glance struct {
	Name     string
	State    string
	Since    time.Time // when State was entered
	Why      string    // what it waits for; empty when it is where it should be
	Actor    string    // who has to act; empty = nobody
	WhySince time.Time // since when it waits
}

// EndpointState is what has become of a device that DHCP found, or that Git names.
type EndpointState string

// The states of a device. Awaited says that it is not known which device it is, Recognised that it
// is known which BMC it is, Lost that it has its address no more.
const (
	EndpointAwaited      EndpointState = "Awaited"
	EndpointRecognised   EndpointState = "Recognised"
	EndpointUnrecognised EndpointState = "Unrecognised"
	EndpointLost         EndpointState = "Lost"
)

// GlanceOf is what is said of an object at a glance; false for one that has no line in a
// list of servers, claims, BMCs or endpoints.
func GlanceOf(d *Document) (Glance, bool) {
	switch st := d.Status.(type) {
	case ServerStatus:
		s := serverSummary(d, st)
		return glance(string(s.Name), string(s.State), s.Since, st.Conditions, s.Why), true
	case ClaimStatus:
		return claimGlance(d, st), true
	case BootConfigurationStatus:
		of, inGit := requested(d, st)
		if !inGit {
			return Glance{}, false
		}
		return claimGlance(d, of), true
	case BMCStatus:
		b := bmcSummary(d, st)
		return glance(string(b.Name), b.State, b.Since, st.Conditions, b.Why), true
	case EndpointStatus:
		return endpointGlance(d, st), true
	}
	return Glance{}, false
}

func claimGlance(d *Document, st ClaimStatus) Glance {
	c := claimSummary(d, st)
	return glance(string(c.Name), string(c.State), c.Since, st.Conditions, c.Why)
}

// endpointGlance is that of a device. One that is lost waits for its address before all.
func endpointGlance(d *Document, st EndpointStatus) Glance {
	conds, state := conditions(st.Conditions), EndpointUnrecognised
	if spec, _ := d.Spec.(EndpointSpec); spec.MACAddress == "" {
		state = EndpointAwaited
	}
	recognised, lost := conds.of(typeRecognised), conds.of(typeReachable)
	switch {
	case lost.Status == metav1.ConditionFalse:
		return glance(d.Metadata.Name, string(EndpointLost), lost.LastTransitionTime.Time, conds, conds.why(typeReachable))
	case recognised.Status == metav1.ConditionFalse:
		return glance(d.Metadata.Name, string(state), recognised.LastTransitionTime.Time, conds, conds.why(typeRecognised))
	}
	return glance(d.Metadata.Name, string(EndpointRecognised), st.Since, conds, "")
}

// glance is that of an object that waits for why, which one of its conditions says.
func glance(name, state string, since time.Time, conds conditions, why string) Glance {
	g := Glance{Name: name, State: state, Since: since}
	if why != "" {
		w := waitingOf(conds, why, since)
		g.Why, g.Actor, g.WhySince = w.why, w.actor, w.since
	}
	return g
}

// BMCAddress is where a BMC is, as host:port; empty while nobody knows.
func BMCAddress(d *Document, st BMCStatus) string { return bmcSummary(d, st).Address }

// Place is where a server is mounted, as its labels and annotations say it.
type Place struct {
	Location, Rack string
	Unit           int // the lowest that it takes, from 1 at the bottom; 0 = not known
	Height         int // in units
}

// PlaceOf reads the place of a server from its labels and the annotations of its manifest,
// which may be nil. Without a rack it is the zero Place.
func PlaceOf(labels map[string]string, s *model.Server) Place {
	p := placeOf(labels, s)
	return Place{p.location, p.rack, p.unit, p.height}
}
