// Package plan decides. Plan is a function of what Git wants, what is known and the time:
// it has no I/O, no clock and no chance, so that the same input gives the same result.
//
// The result holds what to do, at most one move a server, and why each server, claim,
// BMC and device is where it is, who has to act and when to look again. Move.Settle judges
// what became of a move by the answers to its actions. Nothing is decided elsewhere.
//
// The rules are where their names are: bind.go gives servers to claims, guard.go and
// window.go hold disruptions back, release.go, absence.go and maintenance.go take servers
// away, reserved.go installs, cleanup.go wipes, and server.go has the order in which they
// apply to one server.
package plan
