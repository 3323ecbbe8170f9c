package holder

import (
	"strings"

	"ingot/model"
)

// Name is what is known of the name that a living Ingot holds.
type Name int

// What may be known of a name.
const (
	NameUnknown Name = iota // it could not be asked for from here
	NameFree
	NameTaken
)

// MayLive reports whether theirs, the Ingot that wrote the status branch last, may be alive.
// sameStore says that it had the store that ours has, or one that ours is a copy of.
func MayLive(theirs, ours model.Holder, sameStore bool) bool {
	name := NameUnknown
	if sameNamespace(theirs, ours) {
		name = lookUp(theirs.ID)
	}
	return mayLive(theirs, ours, sameStore, name)
}

// Owner returns the name of h in a lease: its host, its ID, and where its ID can be looked up, if that is known.
func Owner(h model.Holder) string {
	place := ""
	if sameNamespace(h, h) {
		place = digest("place", h.Machine+h.Boot+h.Namespace)[:12]
	}
	return h.Host + "/" + h.ID + "/" + place
}

// HasDied reports whether the process that owns a lease ran where ours runs, and has ended.
func HasDied(owner string, ours model.Holder) bool {
	theirs := ours
	_, id, _ := strings.Cut(owner, "/")
	theirs.ID, _, _ = strings.Cut(id, "/")
	return sameNamespace(ours, ours) && owner == Owner(theirs) && lookUp(theirs.ID) == NameFree
}

func lookUp(id string) Name {
	switch held, err := NameHeld(id); {
	case err != nil:
		return NameUnknown
	case held:
		return NameTaken
	}
	return NameFree
}

// mayLive compares what both published: an unknown value does not prove that theirs is dead.
// A virtual machine that was copied with its store has the ID of the machine that it is a copy of,
// so a machine that was started again proves nothing of the same store.
func mayLive(theirs, ours model.Holder, sameStore bool, name Name) bool {
	switch {
	case theirs.ID == "" || theirs.ID == ours.ID:
		return false
	case sameNamespace(theirs, ours):
		return name != NameFree
	case sameStore:
		return true
	}
	restarted := sameMachine(theirs, ours) && known(theirs.Boot, ours.Boot) && theirs.Boot != ours.Boot && theirs.Host == ours.Host
	return !restarted
}

// sameMachine reports whether both are known to be of one machine.
func sameMachine(a, b model.Holder) bool {
	return known(a.Machine, b.Machine) && a.Machine == b.Machine
}

// sameNamespace reports whether both are known to be of one boot of one machine and of
// one network namespace, so that each finds the name that the other holds.
func sameNamespace(a, b model.Holder) bool {
	return sameMachine(a, b) && known(a.Boot, b.Boot) && a.Boot == b.Boot && known(a.Namespace, b.Namespace) && a.Namespace == b.Namespace
}

func known(a, b string) bool { return a != "" && b != "" }
