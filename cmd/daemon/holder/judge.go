package holder

import (
	"fmt"

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

// Life is whether an Ingot lives.
type Life int

// The answers to whether an Ingot lives.
const (
	PerhapsAlive Life = iota
	Alive
	Dead
)

// MayLive reports whether the Ingot that wrote the status branch last, theirs,
// may be alive, and why. ours is this process, storesLast the holder that this
// process's store knows as its last one. It asks for the other's name if that would be
// found here.
//
// A store that several machines share grants the lead to one of them: there a holder
// that storesLast names lost it, whatever its machine; the caller then gives storesLast
// the machine of ours. One whose file was copied or moved gives none.
func MayLive(theirs, ours, storesLast model.Holder) (bool, string) {
	name := NameUnknown
	if sameNamespace(theirs, ours) {
		name = lookUp(theirs.ID)
	}
	life, why := Judge(theirs, ours, storesLast, name)
	return life != Dead, why
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

// Judge decides whether theirs lives by what is known of all: what it does not know is
// no reason to take it for dead. name is to be asked for only where theirs, if it
// lived, would be found: on its machine, in its network namespace.
func Judge(theirs, ours, storesLast model.Holder, name Name) (Life, string) {
	switch {
	case theirs.ID == "":
		return Dead, "the status branch names no holder: it was written before there were any, or never"
	case theirs.ID == ours.ID:
		return Dead, "this process wrote the status branch itself"
	case name == NameTaken && sameNamespace(theirs, ours):
		return Alive, "its process runs on this machine"
	case theirs.ID == storesLast.ID && (storesLast.Machine == "" || ours.Machine == "" || storesLast.Machine == ours.Machine):
		return Dead, "it had the store that this process has now"
	case sameMachine(theirs, ours) && known(theirs.Boot, ours.Boot) && theirs.Boot != ours.Boot && theirs.Host == ours.Host:
		return Dead, "it ran on this machine, which was started anew since"
	case name == NameFree && sameNamespace(theirs, ours):
		return Dead, "it ran on this machine, and its process is gone"
	case theirs.Host == "":
		return PerhapsAlive, "it runs on a machine without a name"
	}
	return PerhapsAlive, fmt.Sprintf("it runs, or ran, on %s", theirs.Host)
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
