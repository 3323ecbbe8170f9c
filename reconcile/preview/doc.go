// Package preview says what a commit would do to which machine, before it is merged: what
// `ingot plan` shows in a pull request.
//
// It decides nothing by itself. It reads the fleet as the status branch shows it, has
// reconcile/plan plan for what Git says before and after the merge, and follows each plan for
// as long as it only takes decisions: they are taken for recorded, as the loop would record
// them, and the next plan is made. A server of which something is asked is left there, like one
// whose move is under way. What the second way decides and the first does not is what the
// commit does. It is pure, as the plan is.
package preview
