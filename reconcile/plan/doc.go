// Package plan decides. Plan is a function of what Git wants, what is known and the time:
// it has no I/O, no clock and no chance, so that the same input gives the same result.
//
// The result holds what to do, at most one move a server, and why each server, claim,
// BMC and device is where it is, who has to act and when to look again. Move.Settle judges
// what became of a move by the answers to its actions. Nothing is decided elsewhere.
//
// The rules are where their names are. plan.go has the order of one plan, server.go the
// order in which rules apply to one server, step.go what a rule answers with. Package bind
// gives servers to claims. initial.go, discovery.go, available.go, reserved.go, install.go,
// reprovision.go and cleanup.go are the life of a server, maintenance.go and operation.go
// what interrupts it. release.go and disruption.go take something from a server's user,
// guard.go counts that, and window.go says how much of it may be done. trust.go, absence.go
// and doubt.go say what does not count as decided.
package plan
