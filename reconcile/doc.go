// Package reconcile makes the world as Git wants it, one move a server at a time.
//
// Package plan decides: a function of what Git wants, what is known and the time, so
// that the same input gives the same moves, and says why each object is where it is.
// Package report says what is so, from the same input and result; package merge tells at
// a start which copy of each record counts. Loop carries the moves out and saves what
// became of them, and Publisher keeps the status branch in step: neither decides.
package reconcile
