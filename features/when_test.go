package features

import (
	"context"
	"fmt"
	"maps"
	"net"
	"strconv"
	"strings"

	"github.com/cucumber/godog"

	"ingot/gitsource/gitserver"
	"ingot/model"
)

func commitBMC(ctx context.Context, name, what string) error {
	w := siteOf(ctx)
	if what == "removed" {
		return w.remove("remove BMC "+name, bmcPath(name))
	}
	files := map[string]string{bmcPath(name): w.bmcFile(name, nil)}
	if err := w.addSealed(files); err != nil {
		return err
	}
	return w.commit(files, "add BMC "+name)
}

func commitNamedBMC(ctx context.Context, name, whose string) error {
	w := siteOf(ctx)
	uuid := w.bmcs[name].UUID()
	if whose == "another" {
		uuid = "0b5e55ed-0000-4000-8000-000000000000"
	}
	file := strings.Replace(w.bmcFile(name, nil), "spec:\n", "spec:\n  bmcUUID: "+uuid+"\n", 1)
	return w.apply(ctx, map[string]string{bmcPath(name): file}, "give BMC "+name+" a UUID")
}

// commitWithin commits a Server that describes its BMC, of which Git says nothing else.
func commitWithin(ctx context.Context, m *machine) error {
	w := siteOf(ctx)
	host, port, err := net.SplitHostPort(w.bmcs[m.bmc].Addr())
	if err != nil {
		return err
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		return err
	}
	o := object(model.KindServer, m.name, nil)
	spec(o)["bmc"] = map[string]any{
		"address": host, "bmcSecretRef": map[string]any{"name": m.bmc},
		"protocol": map[string]any{"name": "Redfish", "scheme": "https", "port": number},
	}
	return w.apply(ctx, map[string]string{
		serverPath(m.name): text(o), "secrets/" + m.bmc + ".yaml": text(secretOf(m.bmc)),
	}, "add server "+m.name)
}

func removeServer(ctx context.Context, name string) error {
	w := siteOf(ctx)
	commit, err := w.repo.Remove("remove server "+name, serverPath(name))
	if err != nil {
		return err
	}
	return w.applied(ctx, commit)
}

func commitServers(ctx context.Context, table *godog.Table) error {
	if err := known(table,
		"SERVER", "RACK", "BURN-IN", "CORDONED", "RECLAIM", "TAINT", "OPERATION", "DISCOVER", "DISKS", "MACS", "BEHIND", "INDICATOR", "BOOTS FIRST", "UUID"); err != nil {
		return err
	}
	w := siteOf(ctx)
	files := make(map[string]string)
	for _, row := range rows(table) {
		if err := w.describe(row); err != nil {
			return err
		}
		files[serverPath(row["SERVER"])] = text(w.servers[row["SERVER"]])
	}
	return w.apply(ctx, files, "change servers")
}

func (w *site) commit(files map[string]string, message string) error {
	_, err := w.repo.Commit(files, message)
	return err
}

func (w *site) remove(message string, paths ...string) error {
	_, err := w.repo.Remove(message, paths...)
	return err
}

// apply commits files and waits until Ingot applies the commit.
func (w *site) apply(ctx context.Context, files map[string]string, message string) error {
	commit, err := w.repo.Commit(files, message)
	if err != nil {
		return err
	}
	return w.applied(ctx, commit)
}

func (w *site) applied(ctx context.Context, commit string) error {
	return w.eventually(ctx, func(s summary) error {
		if !strings.HasSuffix(string(s.Applied), commit) {
			return fmt.Errorf("revision %s is in force, not yet %s", s.Applied, commit)
		}
		return nil
	})
}

func commitClaims(ctx context.Context, table *godog.Table) error {
	err := known(table, "CLAIM", "SERVER", "RACK", "TOLERATES", "POWER", "PRIORITY", "REPROVISION", "BOOTED", "IMAGE", "APPROVES", "ROOT DEVICE", "OVERWRITE", "CONFIGURED BY", "SSH KEYS")
	if err != nil {
		return err
	}
	w := siteOf(ctx)
	var changed []string
	for _, row := range rows(table) {
		if err := w.claim(row); err != nil {
			return err
		}
		changed = append(changed, row["CLAIM"])
	}
	return w.commitClaims(changed...)
}

func commitManyClaims(ctx context.Context, n int) error {
	w := siteOf(ctx)
	var all []string
	for i := range n {
		name := fmt.Sprintf("claim-%03d", i)
		if err := w.claim(map[string]string{"CLAIM": name}); err != nil {
			return err
		}
		all = append(all, name)
	}
	return w.commitClaims(all...)
}

func (w *site) commitClaims(claims ...string) error {
	files := make(map[string]string)
	for _, c := range claims {
		files[claimPath(c)] = w.claimFile(c)
	}
	return w.commit(files, "claim servers for "+strings.Join(claims, ", "))
}

func removeClaims(ctx context.Context, list string) error {
	var paths []string
	for _, c := range names(list) {
		paths = append(paths, claimPath(c))
	}
	return siteOf(ctx).remove("release "+list, paths...)
}

// renameFolder moves the claims' files. What is committed of them from then on lies elsewhere.
func renameFolder(ctx context.Context) error {
	_, err := siteOf(ctx).repo.Move("claims are called fleet", "claims", "fleet/production")
	return err
}

func moveClaims(ctx context.Context, list, namespace string) error {
	w := siteOf(ctx)
	files := make(map[string]string)
	for _, c := range names(list) {
		moved := strings.ReplaceAll(w.claimFile(c), "namespace: "+model.DefaultNamespace+"\n", "namespace: "+namespace+"\n")
		if moved == w.claimFile(c) {
			return fmt.Errorf("the manifest of claim %s names no namespace:\n%s", c, moved)
		}
		files[claimPath(c)] = moved
	}
	return w.commit(files, "move to "+namespace)
}

func commitBroken(ctx context.Context, name string) error {
	w := siteOf(ctx)
	if err := w.claim(map[string]string{"CLAIM": name}); err != nil {
		return err
	}
	broken := strings.Replace(w.claimFile(name), "power:", "powr:", 1)
	return w.commit(map[string]string{claimPath(name): broken}, "change "+name)
}

func commitIgnored(ctx context.Context) error {
	return siteOf(ctx).commit(map[string]string{
		".ingotignore": "claims/\ncharts/\n", "charts/values.yaml": "{{ .Values }}\n", "renovate.json": `{"extends": []}`,
	}, "leave out what is not for Ingot")
}

func commitTwice(ctx context.Context, name, server string) error {
	w := siteOf(ctx)
	o := maps.Clone(w.claims[name])
	o["spec"] = maps.Clone(spec(o))
	spec(o)["serverRef"] = map[string]any{"name": server}
	return w.commit(map[string]string{"claims/again/" + name + ".yaml": text(o)}, "claim it again")
}

func commitMaintenance(ctx context.Context, server, how, what string) error {
	w := siteOf(ctx)
	path := maintenancePath(server)
	if what == "removed" {
		return w.remove("end maintenance of "+server, path)
	}
	return w.commit(map[string]string{path: maintenanceOf(server, how)}, "begin maintenance of "+server)
}

func maintenancePath(server string) string { return "maintenance/" + server + ".yaml" }

func maintenanceOf(server, how string) string {
	o := object(model.KindServerMaintenance, "of-"+server, nil)
	spec(o)["serverRef"] = map[string]any{"name": server}
	spec(o)["policy"] = model.MaintenanceEnforced
	if strings.Contains(how, " asks its owner") {
		spec(o)["policy"] = model.MaintenanceOwnerApproval
	}
	if _, power, said := strings.Cut(how, " leaves it "); said {
		spec(o)["serverPower"] = power
	}
	return text(o)
}

func removeAndMaintain(ctx context.Context, claim, server string) error {
	w := siteOf(ctx)
	files, err := w.repo.ReadBranch(gitserver.Branch)
	if err != nil {
		return err
	}
	delete(files, claimPath(claim))
	files[maintenancePath(server)] = maintenanceOf(server, "")
	_, err = w.repo.Replace(files, "release "+claim+" and begin maintenance of "+server)
	return err
}

func commitBootConfiguration(ctx context.Context, name, server, what string) error {
	w := siteOf(ctx)
	path := "boot/" + name + ".yaml"
	if what == "removed" {
		return w.remove("remove boot configuration "+name, path)
	}
	o := object(model.KindServerBootConfiguration, name, nil)
	spec(o)["serverRef"] = map[string]any{"name": server}
	spec(o)["image"] = w.image["linux"]
	spec(o)["ignitionSecretRef"] = map[string]any{"name": name}
	secret := w.ignitionOf(bootConfigurationMark + name)
	secret["metadata"].(map[string]any)["namespace"] = model.DefaultNamespace
	return w.commit(map[string]string{path: text(o, secret)}, "boot "+name+" on "+server)
}

// gitBranch is the branch that Ingot follows, statusBranch the one it writes.
const (
	gitBranch    = "main"
	statusBranch = "status"
)

// count reads "once" and "2 times".
func count(times string) int {
	n, err := strconv.Atoi(strings.TrimSuffix(times, " times"))
	if err != nil {
		return 1
	}
	return n
}

func commitWrongClaims(ctx context.Context) error {
	files := make(map[string]string)
	for i := range 30 {
		var all []map[string]any
		for j := range 190 {
			o := object(model.KindServerClaim, fmt.Sprintf("wrong-%d-%d", i, j), nil)
			spec(o)["powr"] = "On"
			all = append(all, o)
		}
		files[fmt.Sprintf("wrong/%02d.yaml", i)] = text(all...)
	}
	return siteOf(ctx).commit(files, "add what is wrong")
}

// commitRule commits a rule that keeps its taint on servers without a label.
func commitRule(ctx context.Context, name, mode string) error {
	o := object(model.KindServerReadinessRule, name, nil)
	spec(o)["conditions"] = []any{map[string]any{"type": burnInLabel, "requiredStatus": "True"}}
	spec(o)["enforcementMode"] = mode
	spec(o)["taint"] = map[string]any{"key": name}
	return siteOf(ctx).apply(ctx, map[string]string{"rules/" + name + ".yaml": text(o)}, "add rule "+name)
}

func removeRule(ctx context.Context, name string) error {
	return siteOf(ctx).remove("remove rule "+name, "rules/"+name+".yaml")
}

func maintainAll(ctx context.Context) error {
	w := siteOf(ctx)
	files := make(map[string]string)
	for server := range w.servers {
		files[maintenancePath(server)] = maintenanceOf(server, "")
	}
	return w.commit(files, "begin maintenance of all")
}
