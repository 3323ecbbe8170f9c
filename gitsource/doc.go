// Package gitsource is Ingot's whole dealing with Git: revisions of the watched
// branch come in and become the desired state, reports go out and become commits
// of the status branch.
//
// Source watches one branch. Fetching fills a bare store on disk; the pure
// function assemble decides which objects are in force, given what was in force
// before: a file that cannot be read, a history that was rewritten or a tree that
// is empty never takes an object away. What is in force is kept in a file beside
// the store and survives a restart.
//
// StatusBranch writes one commit per report. It keeps no repository: it knows
// the hash of every file and folder of the branch, builds the objects that differ
// into one pack, and hands that pack to the server in one session together with
// the head it expects there, so the server compares and swaps.
//
// go-git is used for what goes over the wire and into the store, and hidden from
// everybody else.
package gitsource
