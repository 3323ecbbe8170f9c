// Package forge speaks with the host of the repository beside Git: it hears of pushes by
// webhook, and says of a commit what became of it by a commit status.
//
// Both are a convenience. A webhook carries nothing but the wish to look at the branch, so
// that one which is forged, repeated or lost does no harm; a commit status that cannot be
// posted holds up nothing. The status branch remains what counts.
//
// Webhook is the handler for pushes, Poster posts the statuses; VerdictOf decides what is
// said of a commit, as a function of what Git says and what is in force.
package forge
