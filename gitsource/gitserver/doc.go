// Package gitserver makes Git repositories for the demo and for tests, and serves them
// over HTTP and SSH with the real git program.
//
// A Repo is a bare repository that is written to without a work tree, so a commit
// costs one process.
package gitserver
