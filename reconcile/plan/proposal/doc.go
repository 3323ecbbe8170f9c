// Package proposal has the words of a plan: the actions that can be taken with a server and
// their answers, what was read of its power, the policy, and why something waits. All packages
// of the plan share it, and it imports none of them.
package proposal
