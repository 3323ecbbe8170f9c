package features

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/cucumber/godog"

	"ingot/gitsource/gitserver"
)

func theMachines(ctx context.Context, table *godog.Table) error {
	if err := known(table, "SERVER", "BMC", "RUNS", "FAULT"); err != nil {
		return err
	}
	w := siteOf(ctx)
	if err := w.wire(rows(table)); err != nil {
		return err
	}
	_, err := begun(ctx)
	return err
}

func theServers(ctx context.Context, table *godog.Table) error {
	if err := known(table, "SERVER", "BMC", "RUNS", "FAULT", "RACK", "STATE"); err != nil {
		return err
	}
	return siteOf(ctx).inhabit(ctx, rows(table))
}

// manyServers is theServers for a rack of which nobody cares for the names.
func manyServers(ctx context.Context, n int, alone string) error {
	each := 4 // servers of a BMC
	if alone != "" {
		each = 1
	}
	all := make([]map[string]string, n)
	for i := range all {
		all[i] = map[string]string{"SERVER": fmt.Sprintf("s%03d", i), "BMC": fmt.Sprintf("bmc-%02d", i/each)}
	}
	return siteOf(ctx).inhabit(ctx, all)
}

func (w *site) inhabit(ctx context.Context, all []map[string]string) error {
	if err := w.wire(all); err != nil {
		return err
	}
	files := make(map[string]string)
	for _, row := range all {
		if err := w.describe(row); err != nil {
			return err
		}
		files[serverPath(row["SERVER"])] = text(w.servers[row["SERVER"]])
	}
	for name := range w.bmcs {
		files[bmcPath(name)] = w.bmcFile(name, nil)
	}
	if _, err := w.repo.Commit(files, "add the servers"); err != nil {
		return err
	}
	if _, err := begun(ctx); err != nil {
		return err
	}
	limit := patience + time.Duration(len(all))*200*time.Millisecond
	return w.eventuallyWithin(ctx, limit, func(s summary) error {
		for _, row := range all {
			if err := serverIn(s, row["SERVER"], cmp.Or(row["STATE"], "Available")); err != nil {
				return err
			}
		}
		return nil
	})
}

func serverPath(name string) string { return "servers/" + name + ".yaml" }

func bmcPath(name string) string { return "bmcs/" + name + ".yaml" }

func claimsRunOn(ctx context.Context, claims, servers string) error {
	w := siteOf(ctx)
	on := names(servers)
	for i, c := range names(claims) {
		if err := w.claim(map[string]string{"CLAIM": c, "SERVER": on[i]}); err != nil {
			return err
		}
	}
	if err := w.commitClaims(names(claims)...); err != nil {
		return err
	}
	for i, c := range names(claims) {
		if err := claimIsOn(ctx, c, "Booted", on[i]); err != nil {
			return err
		}
	}
	return nil
}

// reachedOver serves the repository as many people have it. Nobody tells Ingot of pushes.
func reachedOver(ctx context.Context, transport string) error {
	w := siteOf(ctx)
	w.intervals = alone
	switch transport {
	case "HTTPS as a GitHub App":
		return w.asGitHubApp()
	case "SSH", "SSH with a key":
		s, err := w.repo.ServeSSH()
		if err != nil {
			return err
		}
		w.clients = append(w.clients, s.Close)
		w.remote = s.URL
		return w.authenticate(map[string][]byte{"sshKeyFile": s.ClientKey, "knownHostsFile": s.KnownHosts(s.Ed25519)})
	}
	s, err := w.repo.ServeHTTP(gitserver.HTTPOptions{RealGit: true, TLS: true, Username: "ingot", Password: "git-" + bmcPassword})
	if err != nil {
		return err
	}
	w.clients = append(w.clients, s.Close)
	w.remote = s.URL
	if transport == "HTTPS through a proxy" {
		if err := w.throughProxy(); err != nil {
			return err
		}
	}
	return w.authenticate(map[string][]byte{
		"usernameFile": []byte("ingot\n"), "passwordFile": []byte("git-" + bmcPassword + "\n"), "caFile": s.CA,
	})
}

func (w *site) authenticate(files map[string][]byte) error {
	var settings []string
	for _, key := range slices.Sorted(maps.Keys(files)) {
		file := filepath.Join(w.dir, key)
		if err := os.WriteFile(file, files[key], 0o600); err != nil {
			return err
		}
		settings = append(settings, fmt.Sprintf("%s: %q", key, file))
	}
	w.auth = ", auth: {" + strings.Join(settings, ", ") + "}"
	return nil
}

func serverIn(s summary, name, state string) error {
	for _, x := range s.Servers {
		if string(x.Name) != name {
			continue
		}
		if x.State != state {
			return fmt.Errorf("server %s is %s, not %s: %s", name, x.State, state, x.Why)
		}
		return nil
	}
	return fmt.Errorf("there is no server %s", name)
}
