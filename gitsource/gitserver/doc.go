// Package gitserver makes Git repositories for the demo and for tests, and serves them
// over HTTP and SSH.
//
// A Repo is a bare repository. Commits, and the usual requests of go-git over HTTP, start
// no process. The real git can read and write the repository at any time.
package gitserver
