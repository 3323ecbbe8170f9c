package report

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ingot/model"
	"ingot/reconcile/plan/bmcs"
	"ingot/reconcile/plan/proposal"
)

// EndpointSpec is a device and where it is.
type EndpointSpec struct {
	MACAddress string `json:"macAddress"`   // empty while its device is not known
	IP         string `json:"ip,omitempty"` // empty while nobody knows
}

// EndpointStatus is what is so of a device.
type EndpointStatus struct {
	Overview
	Network      string             `json:"network,omitempty"`
	Since        time.Time          `json:"since,omitzero"` // when it got its address
	BMC          model.BMCName      `json:"bmc,omitempty"`
	Prefix       string             `json:"macPrefix,omitempty"` // the entry that it was recognised by
	Manufacturer string             `json:"manufacturer,omitempty"`
	Conditions   []metav1.Condition `json:"conditions,omitempty"`
}

// endpointDocument shows a device: where it is, and the BMC that it is or why none; or what an
// Endpoint in Git waits for whose device is not known.
func (v *view) endpointDocument(e *bmcs.Endpoint) *Document {
	d := newDocument(model.KindEndpoint, e.Name)
	if e.Manifest != nil {
		d.Metadata.Labels = e.Manifest.Labels
	}
	d.Spec = EndpointSpec{e.MAC, e.IP}
	if e.Record == nil {
		d.Status = EndpointStatus{Overview: endpointOverview(e, ""), Conditions: []metav1.Condition{condition(typeRecognised, false, e.Why.Reason, e.Why.Text(), e.Why.Since)}}
		return d
	}
	st := EndpointStatus{Network: e.Record.Network, Since: e.Record.Since, BMC: e.DescribedBy, Prefix: e.Record.Prefix}
	if e.Prefix != nil {
		st.Manufacturer = e.Prefix.Manufacturer
	}
	if e.IsBMC {
		st.BMC = model.BMCName(e.Name)
	}
	switch {
	case e.Why.Reason != "":
		st.Conditions = append(st.Conditions, condition(typeRecognised, false, e.Why.Reason, e.Why.Text(), e.Why.Since))
	default:
		st.Conditions = append(st.Conditions, condition(typeRecognised, true, reasonMACPrefix, fmt.Sprintf("BMC %s, by entry %s of the MAC prefix database", e.Name, e.Prefix.Prefix), e.Record.Since))
	}
	if why := e.Lost(); why.Reason != "" {
		st.Conditions = append(st.Conditions, condition(typeReachable, false, why.Reason, why.Text(), why.Since))
	}
	st.Overview = endpointOverview(e, st.BMC)
	d.Status, d.Decided = st, e.Record
	return d
}

// endpointOverview is that of a device. A lost address matters more than an unknown device.
func endpointOverview(e *bmcs.Endpoint, bmc model.BMCName) (o Overview) {
	o.Summary = Summary{State: EndpointRecognised, BMC: bmc}
	if e.IP != "" {
		o.Summary.Addresses = []string{e.IP}
	}
	var lost proposal.Why
	if e.Record != nil {
		lost, o.Summary.Since = e.Lost(), e.Record.Since.UTC().Truncate(time.Second)
	}
	o.wait(lost, ways{})
	o.wait(e.Why, ways{})
	switch {
	case lost.Reason != "":
		o.Summary.State = EndpointLost
	case e.MAC == "":
		o.Summary.State = EndpointAwaited
	case e.Why.Reason != "":
		o.Summary.State = EndpointUnrecognised
	}
	if len(o.Waiting) > 0 {
		o.Summary.Since = o.Waiting[0].Since
	}
	return o
}
