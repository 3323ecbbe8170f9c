// Package window is the guard's limit (law 2): so many disruptions within a window of time,
// and the others once a commit approves their list.
package window
