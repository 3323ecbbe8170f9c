// Package gitsource is Ingot's whole dealing with Git: revisions of the watched
// branch come in and become the desired state, reports go out and become commits
// of the status branch.
//
// Source watches one branch. Fetching fills a bare store on disk; the pure
// function assemble decides which objects are in force, given what was in force
// before and how the two revisions relate. While nothing is wrong, or held, it looks only at
// the files that changed, see assembleChanged. An object goes only when a commit that
// descends from the revision in force took it away; what a file that cannot be read,
// a rewritten history or another branch lacks stays in force and is listed until a
// commit brings it back or approves that it is gone. Where all begins is a record,
// handed to Begin: the folder is a cache, and what it lost is fetched again.
//
// StatusBranch writes one commit per report. It keeps no repository: it knows
// the hash of every file and folder of the branch, builds the objects that differ
// into one pack, and hands that pack to the server in one session together with
// the head it expects there, so the server compares and swaps.
//
// go-git is used for what goes over the wire and into the store, and hidden from
// everybody else.
package gitsource
