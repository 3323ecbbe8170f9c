package features

import (
	"context"
	"encoding/base64"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/cucumber/godog"

	"ingot/model"
)

func initRepository(ctx context.Context) error {
	w := siteOf(ctx)
	fleet := filepath.Join(w.dir, "made", "fleet")
	args := []string{"init", fleet, "--url", w.repo.Dir, "--forge", "forgejo", "--owner", "@infra", "--no-git"}
	if _, err := runIngot(ctx, w.dir, args...); err != nil {
		return err
	}
	for _, args := range [][]string{
		{"init", "--quiet", "--initial-branch", gitBranch},
		{"add", "--all"},
		{"-c", "user.name=Ada", "-c", "user.email=ada@example.com", "commit", "--quiet", "-m", "begin"},
		{"push", "--quiet", "--force", w.repo.Dir, gitBranch},
	} {
		if _, err := gitIn(ctx, fleet, args...); err != nil {
			return err
		}
	}
	_, err := runIngot(ctx, fleet, "validate", "--strict-secrets", ".")
	return err
}

func importCluster(ctx context.Context, table *godog.Table) error {
	if err := known(table, "SERVER", "RUNS", "CLAIM"); err != nil {
		return err
	}
	w := siteOf(ctx)
	all := rows(table)
	if err := w.wire(all); err != nil {
		return err
	}
	var items []any
	for _, row := range all {
		items = append(items, w.clustered(row)...)
	}
	dump := filepath.Join(w.dir, "cluster.yaml")
	list := text(map[string]any{"apiVersion": "v1", "kind": "List", "items": items})
	if err := os.WriteFile(dump, []byte(list), 0o600); err != nil {
		return err
	}
	fleet := filepath.Join(w.dir, "made", "fleet")
	out, err := runIngot(ctx, w.dir, "import", fleet, dump, "--plaintext-secrets", "--no-git")
	if err != nil {
		return err
	}
	if !strings.Contains(out, "Ingot adopts the servers of 2 claims as they run.") || strings.Contains(out, "Look at this") {
		return fmt.Errorf("ingot import says:\n%s", out)
	}
	files := make(map[string]string)
	err = filepath.WalkDir(fleet, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		inside, _ := filepath.Rel(fleet, path)
		files[filepath.ToSlash(inside)] = string(content)
		return err
	})
	if err == nil {
		_, err = w.repo.Commit(files, "take over the cluster")
	}
	return err
}

func (w *site) clustered(row map[string]string) []any {
	m := w.machines[row["SERVER"]]
	var all []any
	add := func(o map[string]any, status map[string]any) {
		o["status"] = status
		meta := o["metadata"].(map[string]any)
		meta["uid"], meta["resourceVersion"], meta["generation"] = "u-"+row["SERVER"], "7", 1
		meta["managedFields"] = []any{map[string]any{"manager": "metal-operator", "operation": "Update"}}
		meta["finalizers"] = []any{"metal.ironcore.dev/any"}
		if secret, ok := o["stringData"].(map[string]any); ok {
			for key, value := range secret {
				secret[key] = base64.StdEncoding.EncodeToString([]byte(value.(string)))
			}
			o["data"] = secret
			delete(o, "stringData")
			delete(o, "status")
		}
		all = append(all, o)
	}
	bmc := object(model.KindBMC, m.bmc, nil)
	host, port, _ := net.SplitHostPort(m.BMC().Addr())
	number, _ := strconv.Atoi(port)
	spec(bmc)["access"] = map[string]any{"ip": host, "macAddress": m.BMC().MAC()}
	spec(bmc)["bmcSecretRef"] = map[string]any{"name": m.bmc}
	spec(bmc)["protocol"] = map[string]any{"name": "Redfish", "scheme": "https", "port": number}
	add(bmc, map[string]any{"state": "Enabled"})
	add(secretOf(m.bmc), nil)

	server := object(model.KindServer, row["SERVER"], nil)
	spec(server)["systemUUID"], spec(server)["bmcRef"] = strings.ToLower(m.UUID()), map[string]any{"name": m.bmc}
	state, power := "Available", "Off"
	if name := row["CLAIM"]; name != "" {
		state, power = "Reserved", "On"
		w.taken[m.UUID()] = claimName(name)
		_ = w.claim(map[string]string{"CLAIM": name}) // without an image nothing could fail
		claim := maps.Clone(w.claims[name])
		meta := maps.Clone(claim["metadata"].(map[string]any))
		claim["metadata"] = meta
		spec(server)["power"], spec(server)["serverClaimRef"] = "On", map[string]any{
			"apiVersion": model.APIVersion, "kind": "ServerClaim", "namespace": meta["namespace"], "name": meta["name"], "uid": "u",
		}
		add(claim, map[string]any{"phase": "Bound"})
		add(w.ignitionOf(name), nil)
	}
	add(server, map[string]any{"state": state, "powerState": power})
	return all
}
