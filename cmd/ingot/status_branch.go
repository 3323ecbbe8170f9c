package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"ingot/gitsource"
)

// gitAuthFlags name the files with the credentials for a repository.
type gitAuthFlags struct {
	UsernameFile   string `type:"path" placeholder:"FILE" help:"With --git: file that holds the user's name."`
	PasswordFile   string `type:"path" placeholder:"FILE" help:"With --git: file that holds the password or token."`
	SSHKeyFile     string `name:"ssh-key-file" type:"path" placeholder:"FILE" help:"With --git: SSH key."`
	KnownHostsFile string `type:"path" placeholder:"FILE" help:"With --git: known hosts, needed with an SSH key."`
	CAFile         string `name:"ca-file" type:"path" placeholder:"FILE" help:"With --git: certificates to trust."`
}

func (f gitAuthFlags) auth() gitsource.Auth {
	return gitsource.Auth{
		UsernameFile: f.UsernameFile, PasswordFile: f.PasswordFile,
		SSHKeyFile: f.SSHKeyFile, KnownHostsFile: f.KnownHostsFile, CAFile: f.CAFile,
	}
}

// readStatusBranch reads the files of the status branch of a repository: of a clone, what
// was fetched of it if that is newer than its own.
func readStatusBranch(ctx context.Context, c *console, repository, name string, auth gitAuthFlags) (map[string][]byte, error) {
	if info, err := os.Stat(repository); err == nil && info.IsDir() {
		if g, err := openClone(ctx, c, repository, "origin"); err == nil {
			if b, err := g.branch(ctx, name); err == nil {
				return g.files(ctx, b)
			}
		}
	}
	return readBranch(ctx, c, repository, name, auth)
}

// readBranch reads the files of a branch of a repository, as that has it.
func readBranch(ctx context.Context, c *console, repository, name string, auth gitAuthFlags) (map[string][]byte, error) {
	branch, err := gitsource.NewStatusBranch(gitsource.StatusOptions{
		URL: repositoryURL(repository), Branch: name, Auth: auth.auth(), Log: c.log,
	})
	if err != nil {
		return nil, err
	}
	defer branch.Close()
	snapshot, err := branch.Read(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the status branch: %w", err)
	}
	if !snapshot.Exists {
		return nil, fmt.Errorf("%s has no branch %s: the daemon writes it once it runs with this repository", repository, name)
	}
	for path, err := range snapshot.Skipped {
		c.log.Warn("file of the status branch cannot be read", "path", path, "err", err)
	}
	return snapshot.Files, nil
}

// repositoryURL makes the path of a folder absolute, because what reads it may have another
// working directory.
func repositoryURL(url string) string {
	if info, err := os.Stat(url); err == nil && info.IsDir() {
		if abs, err := filepath.Abs(url); err == nil {
			return abs
		}
	}
	return url
}
