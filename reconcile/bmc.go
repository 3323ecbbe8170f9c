package reconcile

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"ingot/model"
)

// bmcView is all that is known of one BMC at one moment.
type bmcView struct {
	name   model.BMCName
	spec   *model.BMC
	rec    *model.BMCRecord
	facts  *model.BMCFacts
	target model.BMCTarget
	// why says why the BMC is not usable; "" = it is.
	why      Why
	problems []string // of systems that cannot become servers
}

// loadBMCs puts together what is known of each BMC in Git, in the order of names.
func (f *fleet) loadBMCs() {
	d := f.in.Desired
	f.bmcs = make([]*bmcView, 0, len(d.BMCs))
	f.bmcBy = make(map[model.BMCName]*bmcView, len(d.BMCs))
	all := make([]bmcView, 0, len(d.BMCs))
	for name, spec := range d.BMCs {
		all = append(all, bmcView{name: name, spec: spec, rec: f.in.Observed.BMCs[name], facts: f.in.Observed.BMCFacts[name]})
	}
	for i := range all {
		b := &all[i]
		if b.rec == nil {
			b.rec = &model.BMCRecord{Name: b.name}
		}
		b.target, b.why = f.bmcTarget(b)
		f.bmcs = append(f.bmcs, b)
		f.bmcBy[b.name] = b
	}
	slices.SortFunc(f.bmcs, func(a, b *bmcView) int { return strings.Compare(string(a.name), string(b.name)) })
}

// bmcTarget is how the BMC is reached, and why its servers must wait, if so:
// because it cannot be reached, or was not looked at since its address changed,
// for another machine may have taken that address (B34).
func (f *fleet) bmcTarget(b *bmcView) (model.BMCTarget, Why) {
	t := model.BMCTarget{Name: b.name, Scheme: b.spec.Spec.Protocol.Scheme, Fingerprint: b.rec.Fingerprint}
	if t.Scheme == "" {
		t.Scheme = "https"
	}
	since := b.rec.Since
	if b.spec.Annotations[model.AnnotationOperation] == model.OperationIgnore {
		return t, Why{"Ignored", "suspended by annotation " + model.AnnotationOperation + ": ignore", since, RackOperator}
	}
	ip := ""
	switch ref := b.spec.Spec.EndpointRef; {
	case b.spec.Spec.Access != nil:
		ip = b.spec.Spec.Access.IP
	case ref != nil && f.in.Desired.Endpoints[ref.Name] != nil:
		ip = f.in.Desired.Endpoints[ref.Name].Spec.IP
	case ref != nil:
		return t, Why{"EndpointMissing", fmt.Sprintf("Endpoint %s is not in Git", ref.Name), since, RackOperator}
	}
	t.Address = net.JoinHostPort(ip, strconv.Itoa(int(b.spec.Spec.Protocol.Port)))
	secret := f.in.Desired.BMCSecrets[b.spec.Spec.BMCSecretRef.Name]
	if secret == nil {
		return t, Why{"SecretMissing", fmt.Sprintf("BMCSecret %s is not in Git", b.spec.Spec.BMCSecretRef.Name), since, RackOperator}
	}
	t.Username, t.Password = secret.Values["username"].Reveal(), secret.Values["password"]
	switch {
	case b.rec.Reason != "":
		return t, Why{b.rec.Reason, b.rec.LastError, since, RackOperator}
	case b.facts == nil || b.rec.Address != t.Address:
		return t, Why{"Pending", "the BMC has not answered yet", since, Nobody}
	}
	return t, Why{}
}

// planBMCs plans the reading of BMCs that were not read yet, whose last reading
// failed, whose address changed, or whose facts are old.
func (f *fleet) planBMCs(r *Result) {
	for _, b := range f.bmcs {
		if f.in.BusyBMCs[b.name] || b.target.Address == "" || b.target.Username == "" && b.target.Password.IsZero() {
			continue
		}
		if b.spec.Annotations[model.AnnotationOperation] == model.OperationIgnore {
			continue
		}
		if due := f.bmcDue(b); !b.retryAsked() && f.in.Now.Before(due) {
			r.wake(due)
			continue
		}
		rec := b.retried()
		target := b.target
		target.Fingerprint = rec.Fingerprint
		rec.Address = target.Address
		r.BMCs[b.name] = &BMCMove{Target: target, Then: rec}
	}
}

// bmcDue is when the BMC's own facts are to be read next.
func (f *fleet) bmcDue(b *bmcView) time.Time {
	switch {
	case b.rec.Reason != "":
		return b.rec.NotBefore
	case b.facts == nil || b.rec.Address != b.target.Address:
		return f.in.Now
	}
	every := f.in.Policy.RefreshInterval
	return f.in.BMCRead[b.name].Add(every - time.Duration(jitter(b.name)/5*float64(every)))
}

// retryAsked reports whether Git asks anew for the BMC to be tried again.
func (b *bmcView) retryAsked() bool {
	name, value := b.spec.Operation()
	return name == model.OperationRetry && value != b.rec.HandledOperation
}

// retried is the record for the next reading: when Git asks for a retry anew,
// the certificate that was pinned is forgotten.
func (b *bmcView) retried() *model.BMCRecord {
	rec := *b.rec
	if b.retryAsked() {
		_, rec.HandledOperation = b.spec.Operation()
		rec.Fingerprint = ""
	}
	return &rec
}
