package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ingot/model"
	"ingot/model/text"
	"ingot/reconcile/plan/bmcs"
	"ingot/reconcile/plan/proposal"
)

// BMCSpec is a BMC as Git has it, or would.
type BMCSpec struct {
	EndpointRef  *model.LocalRef       `json:"endpointRef,omitempty"`
	Access       *model.InlineEndpoint `json:"access,omitempty"`
	BMCSecretRef model.LocalRef        `json:"bmcSecretRef"`
	Protocol     model.Protocol        `json:"protocol"`
	BMCUUID      string                `json:"bmcUUID,omitempty"`
	Hostname     string                `json:"hostname,omitempty"`
}

// The states of a BMC.
const (
	BMCEnabled = "Enabled"
	BMCPending = "Pending" // it was not read yet
	BMCError   = "Error"   // it cannot be used
)

// BMCStates are the states of a BMC.
func BMCStates() []string { return []string{BMCEnabled, BMCPending, BMCError} }

// BMCState is the state of a BMC that waits for why.
func BMCState(why proposal.Why) string {
	switch why.Reason {
	case "":
		return BMCEnabled
	case model.ReasonPending:
		return BMCPending
	}
	return BMCError
}

// BMCStatus is what is so of a BMC.
type BMCStatus struct {
	Overview
	State           string             `json:"state"` // one of BMCStates
	MACAddress      string             `json:"macAddress,omitempty"`
	IP              string             `json:"ip,omitempty"`
	Manufacturer    string             `json:"manufacturer,omitempty"`
	Model           string             `json:"model,omitempty"`
	SKU             string             `json:"sku,omitempty"`
	SerialNumber    string             `json:"serialNumber,omitempty"`
	FirmwareVersion string             `json:"firmwareVersion,omitempty"`
	PowerState      model.Power        `json:"powerState,omitempty"`
	Servers         []model.ServerName `json:"servers,omitempty"`
	// OtherSystems are the systems behind it that are no servers, each with why.
	OtherSystems []string           `json:"otherSystems,omitempty"`
	Conditions   []metav1.Condition `json:"conditions,omitempty"`
}

// findings are the conditions of a usable BMC: problems of its systems that keep them from being servers, and of its account.
func (v *view) findings(b *bmcs.BMC, facts *model.BMCFacts) (all []metav1.Condition) {
	why := func(reason model.Reason, message string) string {
		return proposal.Why{Actor: model.BMCAdvice[reason].Actor, Message: message}.Text()
	}
	if len(facts.Systems) == 0 {
		says := strings.Join(append([]string{"it shows no server"}, facts.Others...), "; ")
		all = append(all, condition(model.ReasonNoServers, true, model.ReasonNoServers, why(model.ReasonNoServers, says), b.Record.Since))
	}
	unnamed := make(map[model.Reason][]string)
	for _, sys := range facts.Systems {
		is := func(name model.ServerName) bool { return v.servers[name].Record.SystemURI == sys.URI }
		if !sys.Unread && sys.UUID == "" && !slices.ContainsFunc(v.behind[b.Name], is) {
			reason := facts.Unidentified(sys)
			unnamed[reason] = append(unnamed[reason], sys.URI)
		}
	}
	if uris := unnamed[model.ReasonUUIDMissing]; len(uris) > 0 {
		all = append(all, condition(model.ReasonUUIDMissing, true, model.ReasonUUIDMissing, why(model.ReasonUUIDMissing, text.List(uris, ", ")), b.Record.Since))
	}
	if uris := unnamed[model.ReasonNotIdentifiable]; len(uris) > 0 {
		all = append(all, condition(model.ReasonNotIdentifiable, true, model.ReasonNotIdentifiable, why(model.ReasonNotIdentifiable, text.List(uris, ", ")), b.Record.Since))
	}
	return all
}

func (v *view) bmcDocument(b *bmcs.BMC) *Document {
	d := newDocument(model.KindBMC, string(b.Name))
	d.Metadata.Labels = b.Manifest.Labels
	said := &b.Manifest.Spec
	d.Spec = BMCSpec{said.EndpointRef, said.Access, said.BMCSecretRef, said.Protocol, said.BMCUUID, said.Hostname}
	why, facts := b.Why, v.in.Observed.BMCFacts[b.Name]
	st := BMCStatus{State: BMCState(why)}
	since := why.Since
	if st.State == BMCEnabled {
		since = b.Record.Since
	}
	st.Summary = Summary{State: st.State, Since: since.UTC().Truncate(time.Second)}
	st.wait(why, ways{})
	if st.State == BMCEnabled {
		st.Conditions = append(st.Conditions, condition(typeReady, true, reasonConnected, "", b.Record.Since))
	} else {
		st.Conditions = append(st.Conditions, condition(typeReady, false, why.Reason, why.Text(), why.Since))
	}
	if facts != nil {
		st.MACAddress, st.Manufacturer, st.Model, st.SKU = facts.MACAddress, facts.Manufacturer, facts.Model, facts.SKU
		st.SerialNumber, st.FirmwareVersion, st.PowerState = facts.SerialNumber, facts.FirmwareVersion, facts.Power
		st.OtherSystems = facts.Others
		problems := slices.Concat(facts.Problems, b.Problems)
		if len(problems) > 0 {
			st.Conditions = append(st.Conditions, condition(typeComplete, false, reasonPartsUnreadable, strings.Join(problems, "; "), b.Record.Since))
		}
		st.Conditions = append(st.Conditions, v.findings(b, facts)...)
		if b.Target.Default && st.State == BMCEnabled {
			why := proposal.Why{Reason: model.ReasonDefaultCredentials, Actor: proposal.RackOperator, Since: b.Record.Since, Message: fmt.Sprintf(
				"it uses the default password of user %q from the MAC prefix database: set a new one on the BMC, and commit it as BMCSecret %s", b.Target.Username, b.Name)}
			st.Conditions = append(st.Conditions, condition(model.ReasonDefaultCredentials, true, model.ReasonDefaultCredentials, why.Text(), why.Since))
			st.wait(why, ways{})
		}
		if len(b.Duplicates) > 0 {
			why := proposal.Why{Actor: proposal.RackOperator, Message: fmt.Sprintf("%s, so it is no server of its own, and nothing is armed for either until that "+
				"is gone: %s", text.List(b.Duplicates, "; "), bmcs.DuplicateAdvice)}
			st.Conditions = append(st.Conditions, condition(model.ReasonDuplicateUUID, true, model.ReasonDuplicateUUID, why.Text(), b.Record.Since))
		}
	}
	switch {
	case b.Manifest.Spec.Access != nil:
		st.IP = b.Manifest.Spec.Access.IP
		st.MACAddress = cmp.Or(st.MACAddress, b.Manifest.Spec.Access.MACAddress)
	case b.Endpoint != nil:
		st.IP = b.Endpoint.IP
		st.MACAddress = cmp.Or(st.MACAddress, b.Endpoint.MAC)
	}
	if st.IP != "" {
		st.Summary.Addresses = []string{said.Protocol.Address(st.IP)}
	}
	st.Servers = v.behind[b.Name]
	d.Status, d.Decided = st, Decided(b.Record)
	return d
}
