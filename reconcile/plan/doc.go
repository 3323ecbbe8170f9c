// Package plan decides. Plan is a function of what Git wants, what is known and the time:
// it has no I/O, no clock and no randomness, so that the same input gives the same result.
//
// The result has what to do, at most one move for each server, and why each server, claim,
// BMC and device is where it is, who has to act and when to look again. Move.Settle decides
// what follows from the answers to the actions of a move. Nothing is decided elsewhere.
//
// Package world puts together what is known. The parts (life, boot, install, disks, power,
// service, settings) propose what could be done with a server, in the order of propose.go.
// Package laws checks each proposal, and choose.go takes the first one that no law holds
// and that finds its places. Package bind gives servers to claims, package bmcs decides
// which BMCs to read. The words that they share are in proposal, event, booting, policy
// and reading.
package plan
