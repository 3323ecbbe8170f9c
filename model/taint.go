package model

const (
	tolerationEqual  = "Equal"
	tolerationExists = "Exists"
)

// Tolerates reports whether the claim may bind to a server with these taints,
// and if not, the first taint that keeps it off. Only the effect NoBind keeps
// anything off.
func (o *ServerClaim) Tolerates(taints []Taint) (ok bool, first Taint) {
	for _, t := range taints {
		if t.Effect != TaintEvict && !o.tolerates(t) {
			return false, t
		}
	}
	return true, Taint{}
}

func (o *ServerClaim) tolerates(t Taint) bool {
	for i := range o.Spec.Tolerations {
		if o.Spec.Tolerations[i].covers(t) {
			return true
		}
	}
	return false
}

// covers reports whether the toleration is for the taint t, by the rules that
// Kubernetes has for Pods: an empty effect is for all effects, and an empty key
// with operator Exists for all taints.
func (l *Toleration) covers(t Taint) bool {
	if l.Effect != "" && l.Effect != TaintNoBind {
		return false
	}
	if l.Operator == tolerationExists {
		return l.Key == "" || l.Key == t.Key
	}
	return l.Key == t.Key && l.Value == t.Value
}
