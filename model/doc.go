// Package model holds the words of Ingot: the kinds that people write in Git,
// the facts that are read from the world, the records of what was decided, and
// the report that the status branch shows.
//
// It has no I/O, no clock and no other package of ours below it; every other
// package speaks to its neighbours in these types.
package model
