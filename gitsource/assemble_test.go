package gitsource

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"ingot/model"
)

// history is a random history of a repository, as its files.
type history struct {
	*rand.Rand
	reader  reader
	decoded map[[2]string]*decoded // by path and content
	files   map[string]string
	former  []map[string]string
	good    map[string]string // the files when nothing was wrong last, if something is
}

func newHistory(seed uint64, tenants model.Tenants) *history {
	opts := withModel(Options{AllowPlaintextSecrets: true, Tenants: tenants}, nil)
	h := &history{
		Rand: rand.New(rand.NewPCG(seed, 0)), decoded: make(map[[2]string]*decoded), files: make(map[string]string),
		reader: reader{decode: opts.Decode, count: func() {}, tenants: tenants},
	}
	h.files["infra/login.yaml"] = realHead + "BMCSecret\nmetadata: {name: login}\nstringData: {username: u, password: p}\n"
	for i := range 6 { // what others name
		team := []string{"team-a", "team-b"}[i%2]
		h.files[fmt.Sprintf("%s/secret-%d.yaml", team, i/2)] = secretOfTeam(team, i/2, 0)
		h.files[fmt.Sprintf("infra/endpoint-%d.yaml", i)] = endpointAt(i, i)
	}
	return h
}

func secretOfTeam(team string, i, value int) string {
	return fmt.Sprintf("apiVersion: v1\nkind: Secret\nmetadata: {name: key-%d, namespace: %s}\nstringData: {ignition: \"%d\"}\n", i, team, value)
}

func endpointAt(i, at int) string {
	return fmt.Sprintf(realHead+"Endpoint\nmetadata: {name: e%d}\nspec: {macAddress: \"aa:bb:cc:00:00:0%d\", ip: 10.0.0.%d}\n", i, at, at)
}

func oneOf[T any](h *history, all ...T) T { return all[h.IntN(len(all))] }

func (h *history) place(folder, kind string, i int) string {
	if h.IntN(60) == 0 {
		folder = oneOf(h, "team-a", "team-b", "infra", "elsewhere")
	}
	return fmt.Sprintf("%s/%s-%d.yaml", folder, kind, i)
}

func (h *history) someObject() (path, text string) {
	i := h.IntN(5)
	team := oneOf(h, "team-a", "team-b")
	clash := i
	if h.IntN(25) == 0 {
		clash = h.IntN(5)
	}
	switch h.IntN(9) {
	case 0, 1, 2:
		name, spec := fmt.Sprintf("web-%d", i), ""
		if h.IntN(4) == 0 {
			name += "-new"
		}
		if h.IntN(3) == 0 {
			spec = fmt.Sprintf("  ignitionSecretRef: {name: key-%d}\n", h.IntN(3))
		}
		if h.IntN(4) == 0 {
			spec += fmt.Sprintf("  serverRef: {name: s%d}\n", h.IntN(2))
		}
		return h.place(team, "claim", i), fmt.Sprintf(realHead+"ServerClaim\nmetadata: {name: %s, namespace: %s}\nspec:\n  power: \"On\"\n  image: example.com/os:%d\n%s",
			name, team, h.IntN(3), spec)
	case 3, 4:
		i %= 3
		return h.place(team, "secret", i), secretOfTeam(team, i, h.IntN(2))
	case 5:
		return h.place("infra", "endpoint", i), endpointAt(i, clash)
	case 6:
		return h.place("infra", "bmc", i), fmt.Sprintf(realHead+"BMC\nmetadata: {name: b%d}\nspec:\n  %s\n  bmcSecretRef: {name: login}\n  protocol: {name: Redfish, port: 443}\n",
			i, oneOf(h, fmt.Sprintf("access: {ip: 10.0.1.%d}", clash), fmt.Sprintf("endpointRef: {name: e%d}", i)))
	case 7:
		return "infra/boot.yaml", fmt.Sprintf(realHead+"ServerBootConfiguration\nmetadata: {name: boot, namespace: infra}\nspec: {serverRef: {name: s%d}, image: \"example.com/os:%d\"}\n",
			h.IntN(2), h.IntN(3))
	default:
		labels, spec := "", ""
		if h.IntN(3) == 0 {
			labels = fmt.Sprintf(", labels: {rack: r%d}", h.IntN(3))
		}
		if h.IntN(6) == 0 {
			labels += ", annotations: {ingot/unknown: x}" // a warning
		}
		if h.IntN(6) == 0 {
			spec = "  bootConfigurationRef: {namespace: infra, name: boot}\n"
		}
		if h.IntN(4) == 0 {
			spec += fmt.Sprintf("  bmc: {address: 10.0.2.%d, bmcSecretRef: {name: login}, protocol: {name: Redfish, port: 443}}\n", clash)
		}
		return h.place("infra", "server", i), fmt.Sprintf(realHead+"Server\nmetadata: {name: s%d%s}\nspec:\n  systemUUID: 0000000%d-0000-4000-8000-000000000000\n%s", i, labels, clash, spec)
	}
}

func (h *history) next() {
	h.former = append(h.former, maps.Clone(h.files))
	if h.good != nil && h.IntN(2) == 0 {
		h.files = maps.Clone(h.good)
	}
	for range 1 + h.IntN(2) {
		paths := slices.Sorted(maps.Keys(h.files))
		if h.IntN(3) > 0 {
			path, text := h.someObject()
			h.files[path] = text
			continue
		}
		path := oneOf(h, paths...)
		text := h.files[path]
		switch h.IntN(18) {
		case 0, 1, 2, 3:
			delete(h.files, path)
		case 4:
			h.files[strings.Replace(path, ".yaml", "-moved.yaml", 1)] = text
			delete(h.files, path)
		case 5: // the same place, another name
			h.files[path] = strings.Replace(text, "name: web-", "name: other-", 1)
		case 6: // a copy
			h.files[strings.Replace(path, ".yaml", "-copy.yaml", 1)] = text
		case 7:
			h.files[path] = broken
		case 8:
			h.files[path] = strings.Replace(text, "spec:", "spec: {wrong: 1}\nspec:", 1)
		case 9:
			h.files[path] = "services: {web: {ports: [80]}}\n" // something else
		case 10: // two objects in a file
			_, more := h.someObject()
			h.files[path] = text + "---\n" + more
		case 11: // a whole folder moves
			for _, p := range paths {
				if name, within := strings.CutPrefix(p, "team-a/"); within {
					h.files["team-b/"+name] = h.files[p]
					delete(h.files, p)
				}
			}
		case 12:
			h.files[path] = text + "# a comment\n"
		default: // what stood there once, or all as it was
			old := oneOf(h, h.former...)
			if h.IntN(4) == 0 {
				h.files = maps.Clone(old)
			} else if was, stood := old[path]; stood {
				h.files[path] = was
			}
		}
	}
}

func (h *history) manifests(inForce effective) []manifest {
	held := newHeldPaths(inForce.objects)
	var out []manifest
	for _, path := range slices.Sorted(maps.Keys(h.files)) {
		key := [2]string{path, h.files[path]}
		if h.decoded[key] == nil {
			h.decoded[key] = h.reader.parse(path, []byte(key[1]))
		}
		if d := h.decoded[key]; !d.foreign || held.has(path) {
			out = append(out, manifest{path, hashObject("blob", []byte(key[1])), d})
		}
	}
	return out
}

// A step that looks at what a commit changed has the same result as one that looks at everything. HISTORIES is how
// many there are of the plan's; a fifth of them is taken here.
func TestAStepDecidesAsOneThatLooksAtEverything(t *testing.T) {
	t.Parallel()
	histories := 40
	if n, err := strconv.Atoi(os.Getenv("HISTORIES")); err == nil {
		histories = n / 5
	}
	few, steps, renamed := 0, 0, 0
	for seed := range uint64(histories) {
		var tenants model.Tenants
		if seed%2 == 1 {
			tenants = model.Tenants{{Path: "team-a"}, {Path: "team-b"}, {Path: "infra", Kinds: []model.Kind{"*"}, Namespaces: []string{"*"}}}
		}
		h := newHistory(seed, tenants)
		opts := withModel(Options{Tenants: tenants}, nil)
		r := rules{validate: opts.Validate, crossCheck: opts.CrossCheck, stillFit: opts.StillFit, token: func() string { return "token" }, tenants: tenants}
		prev, good := newEffective(), map[string]string(nil)
		now := newClock().now
		for n := range 40 {
			if n > 0 {
				h.next()
			}
			s := step{
				lineage: lineageDescends, at: now.Add(time.Duration(n) * time.Minute), revision: model.Revision(fmt.Sprintf("main@sha1:%040d", n)),
				approvals: []string{"token"}, joined: h.IntN(10) == 0,
			}
			if n == 0 {
				s.lineage = lineageFirst
			}
			if h.IntN(40) == 0 {
				s.lineage, s.cause = rewritten, model.AbsentHistoryRewritten
			}
			if h.IntN(3) > 0 {
				s.approvals = nil
			}
			if h.IntN(3) > 0 {
				prev.undoable = nil // the planner has the revision
			}
			d := diffOf(prev.files, h.manifests(prev))
			part := next(prev, s, d, r)
			d.was, d.now, d.whole = nil, nil, true
			all := next(prev, s, d, r)
			if diff := differs(all, part); diff != "" {
				t.Fatalf("history %d, commit %d (-all +part):\n%s", seed, n, diff)
			}
			if steps++; len(prev.unsettled) == 0 && s.lineage == lineageDescends {
				few++
			}
			prev, renamed = part.effective, renamed+len(part.effective.renamed)-len(prev.renamed)
			if h.good = nil; len(prev.unsettled) > 0 {
				h.good = good
			} else {
				good = maps.Clone(h.files)
			}
		}
	}
	t.Logf("of %d steps %d looked at what changed alone, and %d gave claims other names", steps, few, renamed)
	if few < steps/5 || renamed == 0 {
		t.Errorf("too few of them can show a difference")
	}
}

// What a Source comes to that keeps what it knows is what one comes to that reads and
// assembles everything at each look.
func TestEachLookComesToTheSameAsFromScratch(t *testing.T) {
	t.Parallel()
	for seed := range uint64(3) {
		repo := newRepo(t)
		opts := Options{URL: repo.URL(), Clock: newClock().Now, Timeout: patience, AllowPlaintextSecrets: true}
		if seed%2 == 1 {
			opts.Tenants = model.Tenants{{Path: "team-a"}, {Path: "team-b"}, {Path: "infra", Kinds: []model.Kind{"*"}, Namespaces: []string{"*"}}}
		}
		keeps, scratch := opts, opts
		keeps.Dir, scratch.Dir = t.TempDir(), t.TempDir()
		a, b := newSource(t, keeps), newSource(t, scratch)
		h := newHistory(seed, opts.Tenants)
		var good map[string]string
		plain := 0
		for step := range 25 {
			if step > 0 {
				h.next()
			}
			switch h.IntN(6) {
			case 0:
				h.files[IgnoreFile] = oneOf(h, "team-a/\n", "*-copy.yaml\n*-moved.yaml\n", "infra/endpoint-*\n", "# nothing\n")
			case 1:
				delete(h.files, IgnoreFile)
			}
			if step%10 == 9 {
				ok[string](t)(repo.ForcePush(h.files, "rewritten"))
			} else {
				ok[string](t)(repo.Replace(h.files, "next"))
			}
			b.reader.last, b.reader.folders, b.effective.fits = nil, nil, false
			for id := range b.effective.objects {
				b.effective.unsettled[id] = true
			}
			inForce, want := mustSync(t, a), mustSync(t, b)
			if x, y := withoutTokens(want), withoutTokens(inForce); !reflect.DeepEqual(x, y) {
				t.Fatalf("history %d, commit %d (-from scratch +kept):\n%s", seed, step, gocmp.Diff(x, y, gocmp.Exporter(func(reflect.Type) bool { return true })))
			}
			if h.good = good; len(a.effective.unsettled) == 0 {
				good, h.good = maps.Clone(h.files), nil
				plain++
			}
		}
		t.Logf("history %d: nothing was wrong with %d of 25 revisions", seed, plain)
	}
}

// withoutTokens is a Desired without the tokens, which are random, and with its problems at
// one place in one order.
func withoutTokens(d *model.Desired) *model.Desired {
	c := *d
	c.Absent = slices.Clone(d.Absent)
	for i := range c.Absent {
		c.Absent[i].Token = ""
	}
	c.AbsentToken = ""
	c.Source.Message = strings.ReplaceAll(d.Source.Message, cmp.Or(d.AbsentToken, "none"), "TOKEN")
	c.Problems = tidyProblems(d.Problems)
	return &c
}

func tidyProblems(problems []model.Problem) []model.Problem {
	sorted := slices.Clone(problems)
	slices.SortFunc(sorted, func(a, b model.Problem) int { return cmp.Compare(a.String(), b.String()) })
	return slices.Concat(sorted)
}

// differs says how two outcomes do, "" if they do not.
func differs(a, b outcome) string {
	if reflect.DeepEqual(settled(a), settled(b)) {
		return ""
	}
	exported := gocmp.Exporter(func(reflect.Type) bool { return true })
	return cmp.Or(gocmp.Diff(settled(a), settled(b), exported), "they differ in what is empty and what is not there")
}

// settledOutcome is all that comes of an outcome.
type settledOutcome struct {
	Outcome outcome
	Desired *model.Desired
}

// settled has what is empty not be there, and problems at one place in one order.
func settled(o outcome) settledOutcome {
	s := settledOutcome{o, o.desired()}
	s.Outcome.problems, s.Outcome.notes = tidyProblems(o.problems), tidyProblems(o.notes)
	s.Desired.Problems = tidyProblems(s.Desired.Problems)
	return s
}
