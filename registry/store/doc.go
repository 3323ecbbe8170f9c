// Package store keeps values durably, by kind and name, and knows nothing of what they
// mean: in a bbolt file, or in Redis. Both pass the same tests.
//
// One process writes. It holds a fencing number, higher than that of all before, and a
// commit with a lower one than the newest is refused. Commits are numbered, and the values
// counted, so that a store which was emptied, replaced, rolled back or lost some of its
// values is told from one that is as it was left.
package store
