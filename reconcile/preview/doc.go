// Package preview says what a commit would do to which machine, before it is merged: what
// `ingot plan` shows in a pull request.
//
// It decides nothing. It reads the fleet as the status branch shows it, and runs reconcile/plan on Git
// without the commit and with it. All decisions of a plan are assumed to be done, and the next plan is
// made, until none is left. The effect of the commit is the difference between the proposals of both.
package preview
