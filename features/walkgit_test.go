package features

import (
	"fmt"
	"maps"
	"strings"

	"ingot/model"
)

// any is one of the claims that Git has, "" if it has none.
func (k *walk) any() string {
	all := sortedKeys(k.paths)
	if len(all) == 0 {
		return ""
	}
	return all[k.chance.IntN(len(all))]
}

func (k *walk) anyServer() string {
	all := sortedKeys(k.machines)
	return all[k.chance.IntN(len(all))]
}

func (k *walk) change(claims ...string) error {
	files := make(map[string]string)
	for _, c := range claims {
		files[k.paths[c]] = k.claimFile(c)
	}
	_, err := k.repo.Commit(files, "change claims")
	return err
}

func (k *walk) newClaim() error {
	k.next++
	name := fmt.Sprintf("c%d", k.next)
	row := map[string]string{"CLAIM": name}
	if k.chance.IntN(2) == 0 {
		row["SERVER"] = k.anyServer()
	}
	if err := k.claim(row); err != nil {
		return err
	}
	k.paths[name] = claimPath(name)
	return k.change(name)
}

func (k *walk) removeClaim() error {
	c := k.any()
	if c == "" {
		return nil
	}
	path := k.paths[c]
	delete(k.paths, c)
	_, err := k.repo.Remove("release "+c, path)
	return err
}

func (k *walk) rename() error {
	old := k.any()
	if old == "" {
		return nil
	}
	k.next++
	name := fmt.Sprintf("c%d", k.next)
	o := maps.Clone(k.claims[old])
	o["metadata"] = maps.Clone(o["metadata"].(map[string]any))
	o["metadata"].(map[string]any)["name"] = name
	k.claims[name] = o
	k.ignition[name] = k.ignitionOf(old)["stringData"].(map[string]any)["ignition"].(string)
	spec(o)["ignitionSecretRef"] = map[string]any{"name": name}
	k.paths[name] = k.paths[old]
	delete(k.paths, old)
	return k.change(name)
}

func (k *walk) moveFile() error {
	c := k.any()
	if c == "" {
		return nil
	}
	old := k.paths[c]
	k.next++
	k.paths[c] = fmt.Sprintf("claims/moved-%d.yaml", k.next)
	files, err := k.repo.ReadBranch(gitBranch)
	if err != nil || files[old] == "" {
		return err
	}
	// git fast-import makes one commit of one change: the file is there twice for a moment
	if _, err := k.repo.Commit(map[string]string{k.paths[c]: files[old], old: "# moved\n"}, "move "+old); err != nil {
		return err
	}
	_, err = k.repo.Remove("remove what is empty", old)
	return err
}

func (k *walk) breakFile() error {
	c := k.any()
	if c == "" {
		return nil
	}
	broken := strings.Replace(k.claimFile(c), "power:", "powr:", 1)
	_, err := k.repo.Commit(map[string]string{k.paths[c]: broken}, "break "+c)
	return err
}

func (k *walk) mendFiles() error {
	if len(k.paths) == 0 {
		return nil
	}
	return k.change(sortedKeys(k.paths)...)
}

func (k *walk) annotated(server string, row map[string]string) error {
	row["SERVER"] = server
	if err := k.describe(row); err != nil {
		return err
	}
	_, err := k.repo.Commit(map[string]string{serverPath(server): text(k.servers[server])}, "change "+server)
	return err
}

func (k *walk) operation() error {
	k.next++
	all := []string{model.OperationHardRestart, model.OperationPowerCycle, model.OperationGracefulRestart}
	return k.annotated(k.anyServer(), map[string]string{"OPERATION": fmt.Sprintf("%s#%d", all[k.chance.IntN(len(all))], k.next)})
}

func (k *walk) reprovision() error {
	c := k.any()
	if c == "" {
		return nil
	}
	k.next++
	if err := k.claim(map[string]string{"CLAIM": c, "REPROVISION": fmt.Sprintf("again-%d", k.next)}); err != nil {
		return err
	}
	return k.change(c)
}

func (k *walk) maintenance() error { return commitMaintenance(k.ctx, k.anyServer(), "", "committed") }

func (k *walk) endMaintenance() error {
	files, err := k.repo.ReadBranch(gitBranch)
	if err != nil {
		return err
	}
	var all []string
	for path := range files {
		if strings.HasPrefix(path, "maintenance/") {
			all = append(all, path)
		}
	}
	if len(all) == 0 {
		return nil
	}
	_, err = k.repo.Remove("end maintenance", all...)
	return err
}

func (k *walk) approve() error {
	a, err := k.approvals()
	if err != nil {
		return nil // it may be garbled just now
	}
	tokens := []string{a.Decided.AbsentToken}
	for _, h := range a.Decided.Holds {
		tokens = append(tokens, h.Token)
	}
	for _, token := range tokens {
		if token == "" {
			continue
		}
		if err := approve(k.ctx, token); err != nil {
			return err
		}
	}
	return nil
}

func (k *walk) unrelated() error {
	k.next++
	_, err := k.repo.Commit(map[string]string{"README.md": fmt.Sprintf("number %d\n", k.next)}, "say more")
	return err
}

func (k *walk) forcePush() error {
	c := k.any()
	path := k.paths[c]
	delete(k.paths, c)
	return k.anew(func(files map[string]string) { delete(files, path) })
}

func (k *walk) pushOlder() error {
	log, err := k.repo.ReadLog(gitBranch)
	if err != nil || len(log) < 3 {
		return err
	}
	if err := k.repo.SetBranch(gitBranch, log[1+k.chance.IntN(2)].Hash); err != nil {
		return err
	}
	files, err := k.repo.ReadBranch(gitBranch)
	for c, path := range maps.Clone(k.paths) {
		if files[path] == "" {
			delete(k.paths, c)
		}
	}
	return err
}

func (k *walk) anotherBranch() error {
	files, err := k.repo.ReadBranch(gitBranch)
	if err != nil {
		return err
	}
	if c := k.any(); c != "" {
		delete(files, k.paths[c])
	}
	k.next++
	other := fmt.Sprintf("other-%d", k.next)
	if _, err := k.repo.CommitTo(other, files, "another branch"); err != nil {
		return err
	}
	if err := k.down(func() error { k.branch = other; return nil }); err != nil {
		return err
	}
	k.pause(3000)
	return k.down(func() error { k.branch = gitBranch; return nil })
}

func (k *walk) statusBack() error {
	k.tampered = true
	log, err := k.repo.ReadLog(statusBranch)
	if err != nil || len(log) < 2 {
		return err
	}
	return k.repo.SetBranch(statusBranch, log[1].Hash)
}

func (k *walk) loseStatus() error {
	k.tampered = true
	if k.repo.Head(statusBranch) == "" {
		return nil // it is lost already
	}
	return deleteStatus(k.ctx)
}

func (k *walk) statusGarbled() error {
	k.tampered = true
	if k.repo.Head(statusBranch) == "" {
		return nil // a branch of another's commits alone awaits a person's choice
	}
	_, err := k.repo.CommitTo(statusBranch, map[string]string{"servers/" + k.anyServer() + ".yaml": "decided: [\n"}, "garble it")
	return err
}
