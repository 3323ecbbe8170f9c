package gitsource

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"ingot/model"
	"ingot/model/must"
)

// TestMergeForetellsWhatTheSourceDoes makes random commits, of which some break files, some mend them and
// some take claims away or give them other names, and compares what Merge makes of each, from what the
// status branch would say, with what a source does that has met all of them.
func TestMergeForetellsWhatTheSourceDoes(t *testing.T) {
	onlyLong(t)
	t.Parallel()
	for seed := range uint64(sample(12, 3)) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { newForetold(t, seed).run() })
	}
}

// foretold is a repository, and a source that is up to date with it.
type foretold struct {
	*proposal
	rnd     *rand.Rand
	files   map[string]string
	tenants model.Tenants
	now     outcome
	at      string // the commit
	did     []string
	n       int
}

func newForetold(t *testing.T, seed uint64) *foretold {
	f := &foretold{rnd: rand.New(rand.NewPCG(seed, 3)), files: map[string]string{"README.md": "fleet\n"}}
	if seed%2 == 1 {
		f.tenants = model.Tenants{{Path: "claims", Kinds: []model.Kind{model.KindServerClaim}, Namespaces: []string{"default"}}}
	}
	for i := range 3 {
		f.files[fmt.Sprintf("claims/c%d.yaml", i)] = claimText(fmt.Sprint("c", i), "os:1")
	}
	f.files["claims/two.yaml"] = claimText("d1", "os:1") + "---\n" + claimText("d2", "os:2")
	f.proposal = newProposal(t, f.files)
	f.at = f.repo.Head("main")
	return f
}

func (f *foretold) run() {
	c, dir := f.cloned()
	now := time.Unix(1e9, 0)
	m := merge{Clone: c, MergeOptions: MergeOptions{Source: model.Applied{Branch: "main", Path: "."}, Now: now, Tenants: f.tenants}}
	m.read, m.walker.rules = c.reader(&m.MergeOptions), m.MergeOptions.rules()
	met := func(at string, lineage lineage) {
		commit := must.Get(m.commit(at))(f.t)
		files := must.Get(m.manifests(commit, f.now.effective))(f.t)
		if lineage == lineageFirst {
			f.now.effective = newEffective()
		}
		f.now = next(f.now.effective, step{lineage: lineage, revision: m.revision(commit.Hash), at: now}, diffOf(f.now.effective.files, files), m.walker.rules)
		f.at = at
	}
	met(f.at, lineageFirst)
	for range 15 {
		before, at := f.now, f.at
		o := m.MergeOptions
		o.Base, o.LastGood = at, before.desired().LastGood
		o.Beginning = Beginning{Applied: model.Applied{Branch: "main", Path: ".", Commit: at}, Owners: make(map[model.Identity]string), Removed: before.effective.removed}
		var inForce []model.Identity
		for id, p := range before.effective.objects {
			inForce = append(inForce, id)
			if f.rnd.IntN(3) > 0 { // it has a server
				o.Beginning.Bound = append(o.Beginning.Bound, id)
				o.Beginning.Owners[id] = p.owner()
			}
		}
		o.Head = f.change()
		runGit(f.t, dir, "fetch", "--quiet", "origin")
		met(o.Head, lineageDescends)
		merged := must.Get(c.Merge(o))(f.t)
		actual := f.now.desired()
		for _, id := range inForce {
			if got, want := fate(merged.Head, id), fate(actual, id); got != want {
				f.t.Errorf("%s: %s was foretold, and the source says: %s", id, got, want)
			}
		}
		for _, name := range slices.Sorted(maps.Keys(actual.Claims)) {
			if got, want := fate(merged.Head, name.Identity()), fate(actual, name.Identity()); got != want {
				f.t.Errorf("%s: %s was foretold, and the source says: %s", name, got, want)
			}
		}
		f.saysWhy(actual)
		if f.t.Failed() {
			f.t.Fatal(strings.Join(f.did, "\n"))
		}
	}
}

func (f *foretold) saysWhy(d *model.Desired) {
	for _, o := range d.LastGood {
		named := func(p model.Problem) bool { return strings.Contains(p.Object+p.Message, o.Identity.String()) }
		if !slices.ContainsFunc(d.Problems, named) {
			f.t.Errorf("%s stays in force behind %q, and no problem says so: %v", o.Identity, o.Behind, d.Problems)
		}
	}
}

func fate(d *model.Desired, id model.Identity) string {
	name := id.ClaimName()
	switch {
	case d.Claims[name] != nil:
		return "in force with " + d.Claims[name].Spec.Image
	case d.IsQuarantined(id):
		return "in force, as it was"
	case d.NameNow(name, "") != name:
		return "called " + string(d.NameNow(name, ""))
	case len(d.Removed[id]) > 0:
		return "removed"
	}
	return "unknown"
}

func (f *foretold) change() string {
	f.did = append(f.did, "commit")
	changed := make(map[string]string)
	for len(changed) == 0 {
		for range 1 + f.rnd.IntN(3) {
			f.edit(changed)
		}
	}
	maps.Copy(f.files, changed)
	for path, text := range changed {
		if text == "" {
			delete(f.files, path)
		}
	}
	return f.commit("main", changed)
}

func (f *foretold) edit(changed map[string]string) {
	paths := slices.Sorted(maps.Keys(f.files))
	paths = slices.DeleteFunc(paths, func(p string) bool { return p == "README.md" || p == IgnoreFile || changed[p] != "" })
	f.n++
	fresh := fmt.Sprintf("%s/n%d.yaml", []string{"claims", "ops"}[f.rnd.IntN(2)], f.n)
	if f.rnd.IntN(8) == 0 {
		ignored := ""
		if f.files[IgnoreFile] == "" && len(paths) > 0 {
			ignored = "/" + paths[f.rnd.IntN(len(paths))] + "\n"
		}
		if f.files[IgnoreFile] != ignored {
			changed[IgnoreFile] = ignored
			f.did = append(f.did, "  ignored is "+ignored)
		}
		return
	}
	if len(paths) == 0 || f.rnd.IntN(6) == 0 {
		changed[fresh] = claimText(fmt.Sprint("n", f.n), "os:1")
		f.did = append(f.did, "  new "+fresh)
		return
	}
	path := paths[f.rnd.IntN(len(paths))]
	text := f.files[path]
	what := ""
	switch f.rnd.IntN(9) {
	case 0:
		what, text = "gone", ""
	case 1:
		what, text = "unknown field", strings.Replace(text, "power:", "powr:", 1)
	case 2:
		what, text = "no YAML", "a: [\n"+text
	case 3, 4:
		what, text = "mended", strings.ReplaceAll(strings.ReplaceAll(text, "powr:", "power:"), "a: [\n", "")
	case 5:
		what, text = "another name", strings.Replace(text, "  name: ", fmt.Sprintf("  name: r%d", f.n), 1)
	case 6:
		what, text = "another image", strings.Replace(text, "image: os:", fmt.Sprintf("image: os:%d", f.n), 1)
	case 7:
		what = "moved to " + fresh
		changed[fresh], text = text, ""
	case 8:
		if _, second, ok := strings.Cut(text, "---\n"); ok {
			what, text = "without its first", second
		}
	}
	if text != f.files[path] {
		changed[path] = text
		f.did = append(f.did, "  "+path+" "+what)
	}
}
