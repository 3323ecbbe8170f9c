// Package forgeserver stands for the host of a repository in tests: it serves the repository
// by Git over HTTP, announces pushes, takes commit statuses, and refuses pushes by rules of
// its own, each as GitHub, GitLab, Gitea and Forgejo document it.
//
// It shares no code with package forge: that would hide its mistakes.
package forgeserver
