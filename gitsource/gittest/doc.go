// Package gittest makes Git repositories for tests and for the demo, and serves
// them over HTTP and SSH with the real git program.
//
// A Repo is a bare repository that is written to without a work tree, so a
// commit costs one process. Nothing here imports testing: functions return
// errors, and NewRepo takes what it needs of a *testing.T.
package gittest
