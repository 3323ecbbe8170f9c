// Package merge tells which copy of each record counts when a process takes the lead:
// the store's or the status branch's. It is a function of both, and doubts where they
// contradict each other.
package merge
