// Package ledger is an independent bookkeeper of what was done to machines, and of
// what commits asked for.
//
// It knows three things alone: the commits of the watched branch in the order in
// which they were pushed, the configurations that ran, and what really happened to
// each machine. It never looks at Ingot's store, log, API or status branch (but for
// AtRest, which asks whether what is not so has a reason). It replays commits and
// events side by side and reports each event that no commit named:
//
//  1. A push whose head descends from the one before asks for what it changed. One
//     that does not descend asks for nothing, until a later commit approves what it
//     dropped.
//  2. Switching off, restarting or wiping a machine that a claim owns, because its
//     disk holds what was installed for that claim, or that a person has running,
//     uses up one older request that names it. It is switched on only if its claim
//     wants it On, and boots from its disk. A ServerMaintenance excuses the power state that
//     it names, and one that asks the owner of the claim only what the claim agreed to.
//  3. An installation is for a claim that Git has, on a machine that is empty or was
//     wiped since its last owner, while no other disk holds the claim; or it was asked
//     for again.
//  4. The Ignition of a claim is served to its owner's machine alone: the one that the claim
//     names, and the one that it is installed on.
//  5. At rest each claim has one disk, or the status branch names a reason.
//
// Where the bookkeeper cannot know, such as how long a decision may take to be carried
// out after it was withdrawn, it takes Ingot's side: what it reports is wrong.
package ledger
