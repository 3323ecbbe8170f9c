package gitsource

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ingot/model"
)

var twoOfOne = model.Tenants{
	{Path: "a", Namespaces: []string{"default"}}, {Path: "b", Namespaces: []string{"default"}}, {Path: "c"},
}

// otherPath has the first of them at another path, split has a part of his be another's,
// elsewhere has him define claims in another namespace.
var (
	elsewhere = model.Tenants{{Path: "a"}, twoOfOne[1]}
	otherPath = model.Tenants{{Path: "z", Namespaces: []string{"default"}}, twoOfOne[1]}
	split     = append(model.Tenants{{Path: "a/prod", Namespaces: []string{"default"}}}, twoOfOne...)
)

func tenants(of model.Tenants) act {
	return func(w *watch) { w.opts.Tenants = of }
}

// handOver is a claim that its tenant lets another one have.
func handOver(claim, to string) string {
	return strings.Replace(claim, "annotations: {", "annotations: {ingot/hand-over-to: "+to+", ", 1)
}

func unbound(w *watch) {
	w.s.close()
	b := records(w.d)
	b.Bound, b.Owners = nil, nil
	w.s = begun(w.T, w.opts, b)
}

// boundFor is a new process on another machine, whose records know that a tenant's claim
// is bound, whatever is in force of it.
func boundFor(tenant string) act {
	return func(w *watch) {
		w.s.close()
		_ = os.RemoveAll(w.opts.Dir)
		b, web := records(w.d), model.ClaimName("default/web").Identity()
		b.Bound, b.Owners[web] = append(b.Bound, web), tenant
		w.s = begun(w.T, w.opts, b)
	}
}

const webRemoved = "ServerClaim default/web"

func TestTenants(t *testing.T) {
	t.Parallel()
	web, other, db := claimYAML("web", "a's"), claimYAML("web", "b's"), claimYAML("db", "d")
	first, heir := claimYAML("db", "shared"), claimYAML("web", "shared")
	mine := map[string]string{"web": "a's"}
	theirs := map[string]string{"web": "b's"}
	none := map[string]string{}
	readme := put(map[string]string{"README.md": "hello"})
	faulty := strings.Replace(web, "spec:", "spec:\n  broken: x", 1)
	broken := "apiVersion: metal.ironcore.dev/v1alpha1\nkind: [\n"
	for name, chapters := range map[string][]chapter{
		"what stands below no path, or where it may not, does not count": {
			{acts: []act{put(map[string]string{"web.yaml": web, "c/web.yaml": web, "a/web.yaml": web})}, want: seen{Claims: mine}},
			{acts: []act{take("a/web.yaml")}, want: seen{Claims: none, Removed: []string{webRemoved}}},
		},
		"an object belongs to whoever had it first, and the other's is a new one": {
			{acts: []act{put(map[string]string{"b/web.yaml": other})}, want: seen{Claims: theirs}},
			{acts: []act{put(map[string]string{"a/web.yaml": web})}, want: seen{Claims: theirs}},
			{acts: []act{readme, restart}, want: seen{Claims: theirs}},
			{acts: []act{unbound}, want: seen{Claims: theirs}},
			{acts: []act{lose}, want: seen{Claims: theirs}},
			{
				acts: []act{put(map[string]string{"b/web.yaml": db})},
				want: seen{Claims: map[string]string{"web": "a's", "db": "d"}, Removed: []string{webRemoved}},
			},
		},
		"one that both have had the same is a new one as well": {
			{acts: []act{put(map[string]string{"a/web.yaml": web})}, want: seen{Claims: mine}},
			{acts: []act{put(map[string]string{"b/web.yaml": web})}, want: seen{Claims: mine}},
			{acts: []act{take("a/web.yaml")}, want: seen{Claims: mine, Removed: []string{webRemoved}}},
		},
		"a commit hands a claim over with the consent of its tenant": {
			{
				acts: []act{put(map[string]string{"a/web.yaml": handOver(web, "b"), "a/db.yaml": db})},
				want: seen{Claims: map[string]string{"web": "a's", "db": "d"}},
			},
			{
				acts: []act{change(map[string]string{"b/web.yaml": web}, "a/web.yaml")},
				want: seen{Claims: map[string]string{"web": "a's", "db": "d"}},
			},
			{acts: []act{take("b/web.yaml")}, want: seen{Claims: map[string]string{"db": "d"}, Removed: []string{webRemoved}}},
		},
		"a commit hands no claim over without that": {
			{acts: []act{put(map[string]string{"a/web.yaml": web})}, want: seen{Claims: mine}},
			{acts: []act{change(map[string]string{"b/web.yaml": web}, "a/web.yaml")}, want: seen{Claims: mine, Removed: []string{webRemoved}}},
		},
		"nor with the consent to another tenant, or in the version that the other one has": {
			{acts: []act{put(map[string]string{"a/web.yaml": handOver(web, "c")})}, want: seen{Claims: mine}},
			{
				acts: []act{change(map[string]string{"b/web.yaml": handOver(web, "b")}, "a/web.yaml")},
				want: seen{Claims: mine, Removed: []string{webRemoved}},
			},
		},
		"two commits hand nothing over": {
			{acts: []act{put(map[string]string{"a/web.yaml": handOver(web, "b"), "a/db.yaml": db})}, want: seen{Claims: map[string]string{"web": "a's", "db": "d"}}},
			{
				acts: []act{take("a/web.yaml"), put(map[string]string{"b/web.yaml": handOver(web, "b")})},
				want: seen{Claims: map[string]string{"web": "a's", "db": "d"}, Removed: []string{webRemoved}},
			},
		},
		"a file that cannot be read hands nothing over": {
			{acts: []act{put(map[string]string{"a/web.yaml": web})}, want: seen{Claims: mine}},
			{acts: []act{put(map[string]string{"b/web.yaml": web, "a/web.yaml": broken})}, want: seen{Claims: mine}},
			{
				acts: []act{put(map[string]string{"a/web.yaml": claimYAML("web", "of a still")})},
				want: seen{Claims: map[string]string{"web": "of a still"}},
			},
		},
		"a rewritten history hands nothing over": {
			{acts: []act{put(map[string]string{"a/web.yaml": web})}, want: seen{Claims: mine}},
			{acts: []act{rewrite(map[string]string{"b/web.yaml": web})}, want: seen{Claims: mine, Absent: []string{webGone}}},
		},
		"a renamed claim's name is not another's at once": {
			{acts: []act{put(map[string]string{"a/web.yaml": web})}, want: seen{Claims: mine}},
			{acts: []act{put(map[string]string{"b/web.yaml": other})}, want: seen{Claims: mine}},
			{
				acts: []act{put(map[string]string{"a/web.yaml": claimYAML("www", "a's")})},
				want: seen{Claims: map[string]string{"www": "a's"}, Renamed: []string{"default/web > default/www"}},
			},
		},
		"a faulty file of one tenant holds up no other": {
			{
				acts: []act{put(map[string]string{"a/web.yaml": web, "a/db.yaml": db})},
				want: seen{Claims: map[string]string{"web": "a's", "db": "d"}},
			},
			{
				acts: []act{change(map[string]string{"b/x.yaml": broken, "c/x.yaml": broken, "x.yaml": broken}, "a/web.yaml")},
				want: seen{Claims: map[string]string{"db": "d"}, Removed: []string{webRemoved}},
			},
			{
				acts: []act{change(map[string]string{"a/x.yaml": broken + "# in a\n"}, "a/db.yaml")},
				want: seen{Claims: map[string]string{"db": "d"}, Removed: []string{webRemoved}},
			},
		},
		"nor does one that names what is another's": {
			{acts: []act{put(map[string]string{"a/web.yaml": web})}, want: seen{Claims: mine}},
			{acts: []act{put(map[string]string{"b/x.yaml": faulty, "c/x.yaml": faulty})}, want: seen{Claims: mine}},
			{acts: []act{take("a/web.yaml")}, want: seen{Claims: none, Removed: []string{webRemoved}}},
		},
		"what does not count any more stays in force": {
			{
				acts: []act{tenants(nil), restart, put(map[string]string{"web.yaml": web, "a/db.yaml": db})},
				want: seen{Claims: map[string]string{"web": "a's", "db": "d"}},
			},
			{acts: []act{tenants(twoOfOne), restart}, want: seen{Claims: map[string]string{"db": "d"}, Quarantined: []string{webRemoved}}},
			{acts: []act{readme}, want: seen{Claims: map[string]string{"db": "d"}, Quarantined: []string{webRemoved}}},
			{
				acts: []act{change(map[string]string{"a/web.yaml": web}, "web.yaml")},
				want: seen{Claims: map[string]string{"web": "a's", "db": "d"}},
			},
		},
		"what moves to where it does not count stays in force": {
			{acts: []act{put(map[string]string{"a/web.yaml": web})}, want: seen{Claims: mine}},
			{acts: []act{change(map[string]string{"c/web.yaml": web}, "a/web.yaml")}, want: seen{Claims: mine}},
			{acts: []act{readme}, want: seen{Claims: mine}},
			{
				acts: []act{change(map[string]string{"a/db.yaml": db}, "c/web.yaml")},
				want: seen{Claims: map[string]string{"db": "d"}, Removed: []string{webRemoved}},
			},
		},
		"what is known by name alone may move to where it does not count either": {
			{acts: []act{tenants(nil), restart, put(map[string]string{"claims/web.yaml": web})}, want: seen{Claims: mine}},
			{acts: []act{tenants(twoOfOne), restart}, want: seen{Claims: none, Quarantined: []string{webRemoved}}},
			{
				acts: []act{change(map[string]string{"old/claims/web.yaml": web}, "claims/web.yaml")},
				want: seen{Claims: none, Quarantined: []string{webRemoved}},
			},
			{
				acts: []act{change(map[string]string{"older/web.yaml": other}, "old/claims/web.yaml")},
				want: seen{Claims: none, Quarantined: []string{webRemoved}},
			},
			{
				acts: []act{change(map[string]string{"a/db.yaml": db}, "older/web.yaml")},
				want: seen{Claims: map[string]string{"db": "d"}, Removed: []string{webRemoved}},
			},
		},
		"what moves to below no path stays in force, also if it is written otherwise": {
			{acts: []act{put(map[string]string{"a/web.yaml": web})}, want: seen{Claims: mine}},
			{acts: []act{change(map[string]string{"old/web.yaml": other}, "a/web.yaml")}, want: seen{Claims: mine}},
			{acts: []act{change(map[string]string{"older/web.yaml": db + "---\n" + other}, "old/web.yaml")}, want: seen{Claims: mine}},
			{
				acts: []act{put(map[string]string{"older/web.yaml": db, "a/db.yaml": db})},
				want: seen{Claims: map[string]string{"db": "d"}, Removed: []string{webRemoved}},
			},
		},
		"and so does what moves within its tenant's folder": {
			{acts: []act{put(map[string]string{"a/web.yaml": web})}, want: seen{Claims: mine}},
			{acts: []act{put(map[string]string{"a/web.yaml": faulty})}, want: seen{Claims: mine}},
			{acts: []act{tenants(elsewhere), restart}, want: seen{Claims: mine}},
			{acts: []act{change(map[string]string{"a/x/web.yaml": other}, "a/web.yaml")}, want: seen{Claims: mine}},
			{
				acts: []act{change(map[string]string{"b/db.yaml": db}, "a/x/web.yaml")},
				want: seen{Claims: map[string]string{"db": "d"}, Removed: []string{webRemoved}},
			},
		},
		"but nobody else holds up a removal by what he may not define": {
			{acts: []act{put(map[string]string{"a/web.yaml": web})}, want: seen{Claims: mine}},
			{
				acts: []act{change(map[string]string{"c/web.yaml": other, "a/db.yaml": db}, "a/web.yaml")},
				want: seen{Claims: map[string]string{"db": "d"}, Removed: []string{webRemoved}},
			},
		},
		"nor does a copy below no path that was there before": {
			{acts: []act{put(map[string]string{"a/web.yaml": web, "old/web.yaml": other})}, want: seen{Claims: mine}},
			{
				acts: []act{change(map[string]string{"a/db.yaml": db}, "a/web.yaml")},
				want: seen{Claims: map[string]string{"db": "d"}, Removed: []string{webRemoved}},
			},
		},
		"a path that is renamed, and its folder after it, take nothing away": {
			{acts: []act{put(map[string]string{"a/web.yaml": web})}, want: seen{Claims: mine}},
			{acts: []act{tenants(otherPath), restart}, want: seen{Claims: none, Quarantined: []string{webRemoved}}},
			{acts: []act{change(map[string]string{"z/web.yaml": web}, "a/web.yaml")}, want: seen{Claims: mine}},
			{acts: []act{restart}, want: seen{Claims: mine}},
			{
				acts: []act{put(map[string]string{"z/web.yaml": db})},
				want: seen{Claims: map[string]string{"db": "d"}, Removed: []string{webRemoved}},
			},
		},
		"nor do they when what was moved cannot be read": {
			{acts: []act{put(map[string]string{"a/web.yaml": web})}, want: seen{Claims: mine}},
			{acts: []act{tenants(otherPath), restart}, want: seen{Claims: none, Quarantined: []string{webRemoved}}},
			{
				acts: []act{change(map[string]string{"z/web.yaml": broken}, "a/web.yaml")},
				want: seen{Claims: none, Quarantined: []string{webRemoved}},
			},
			{acts: []act{put(map[string]string{"z/web.yaml": web})}, want: seen{Claims: mine}},
		},
		"nor do they where tenants were turned off": {
			{acts: []act{put(map[string]string{"a/web.yaml": web})}, want: seen{Claims: mine}},
			{acts: []act{put(map[string]string{"a/web.yaml": broken}), tenants(nil), restart}, want: seen{Claims: mine}},
		},
		"nor does a folder that becomes a tenant's own": {
			{acts: []act{put(map[string]string{"a/prod/web.yaml": web})}, want: seen{Claims: mine}},
			{acts: []act{tenants(split), restart}, want: seen{Claims: mine}},
			{acts: []act{readme}, want: seen{Claims: mine}},
			{
				acts: []act{put(map[string]string{"a/prod/web.yaml": db})},
				want: seen{Claims: map[string]string{"db": "d"}, Removed: []string{webRemoved}},
			},
		},
		"nor does turning tenants off": {
			{acts: []act{put(map[string]string{"a/web.yaml": web})}, want: seen{Claims: mine}},
			{acts: []act{tenants(nil), restart}, want: seen{Claims: mine}},
			{
				acts: []act{put(map[string]string{"a/web.yaml": db})},
				want: seen{Claims: map[string]string{"db": "d"}, Removed: []string{webRemoved}},
			},
		},
		"what another tenant alone has after a restart is still not his": {
			{acts: []act{put(map[string]string{"a/web.yaml": web})}, want: seen{Claims: mine}},
			{
				acts: []act{change(map[string]string{"b/web.yaml": other}, "a/web.yaml"), lose},
				want: seen{Claims: theirs, Removed: []string{webRemoved}},
			},
		},
		"an heir that claims what is another's does not come into force, and holds up no release": {
			{
				acts: []act{put(map[string]string{"a/web.yaml": web, "a/db.yaml": first})},
				want: seen{Claims: map[string]string{"web": "a's", "db": "shared"}},
			},
			{acts: []act{put(map[string]string{"b/web.yaml": heir})}, want: seen{Claims: map[string]string{"web": "a's", "db": "shared"}}},
			{acts: []act{take("a/web.yaml")}, want: seen{Claims: map[string]string{"db": "shared"}, Removed: []string{webRemoved}}},
			{acts: []act{readme}, want: seen{Claims: map[string]string{"db": "shared"}, Removed: []string{webRemoved}}},
			{
				acts: []act{put(map[string]string{"b/web.yaml": faulty})},
				want: seen{Claims: map[string]string{"db": "shared"}, Removed: []string{webRemoved}},
			},
			{
				acts: []act{put(map[string]string{"b/web.yaml": heir}), restart},
				want: seen{Claims: map[string]string{"db": "shared"}, Quarantined: []string{webRemoved}},
			},
			{acts: []act{put(map[string]string{"b/web.yaml": other})}, want: seen{Claims: map[string]string{"db": "shared", "web": "b's"}}},
		},
		"nobody else gets what a renamed path had by writing it down alone": {
			{acts: []act{put(map[string]string{"a/web.yaml": web})}, want: seen{Claims: mine}},
			{acts: []act{tenants(otherPath), restart}, want: seen{Claims: none, Quarantined: []string{webRemoved}}},
			{acts: []act{put(map[string]string{"b/web.yaml": other})}, want: seen{Claims: none, Quarantined: []string{webRemoved}}},
			{acts: []act{put(map[string]string{"b/web.yaml": web})}, want: seen{Claims: none, Quarantined: []string{webRemoved}}},
			{acts: []act{boundFor("a")}, want: seen{Claims: none, Quarantined: []string{webRemoved}}},
			{acts: []act{change(map[string]string{"z/web.yaml": web}, "a/web.yaml")}, want: seen{Claims: mine}},
			{
				acts: []act{put(map[string]string{"z/web.yaml": db})},
				want: seen{Claims: map[string]string{"web": "a's", "db": "d"}, Removed: []string{webRemoved}},
			},
		},
		"nor by doing so while the folder moves and is written otherwise": {
			{acts: []act{put(map[string]string{"a/web.yaml": web})}, want: seen{Claims: mine}},
			{acts: []act{tenants(otherPath), restart}, want: seen{Claims: none, Quarantined: []string{webRemoved}}},
			{
				acts: []act{change(map[string]string{"b/web.yaml": other}, "a/web.yaml")},
				want: seen{Claims: none, Quarantined: []string{webRemoved}},
			},
			{acts: []act{readme}, want: seen{Claims: none, Quarantined: []string{webRemoved}}},
			{
				acts: []act{change(map[string]string{"b/db.yaml": db}, "b/web.yaml")},
				want: seen{Claims: map[string]string{"db": "d"}, Removed: []string{webRemoved}},
			},
		},
		"nor does writing it twice release it": {
			{acts: []act{put(map[string]string{"a/web.yaml": web})}, want: seen{Claims: mine}},
			{acts: []act{tenants(otherPath), restart}, want: seen{Claims: none, Quarantined: []string{webRemoved}}},
			{
				acts: []act{change(map[string]string{"b/web.yaml": web, "z/web.yaml": web}, "a/web.yaml")},
				want: seen{Claims: none, Quarantined: []string{webRemoved}},
			},
			{acts: []act{put(map[string]string{"a/web.yaml": web}), tenants(twoOfOne), boundFor("a")}, want: seen{Claims: mine}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWatch(t, func(o *Options) { o.Tenants = twoOfOne })
			for i, c := range chapters {
				for _, act := range c.acts {
					act(w)
				}
				w.look()
				if diff := cmp.Diff(c.want, see(w.d)); diff != "" {
					t.Fatalf("chapter %d (-want +got):\n%s\n%v", i+1, diff, w.d.Problems)
				}
			}
		})
	}
}

func TestAClaimIsOfTheTenantsThatAreNow(t *testing.T) {
	t.Parallel()
	web := put(map[string]string{"a/prod/web.yaml": claimYAML("web", "x")})
	move := move("a/prod/web.yaml", "z/web.yaml")
	for name, c := range map[string]struct {
		tenants model.Tenants
		then    act
		want    string
	}{
		"a path that is renamed": {otherPath, move, "z"},
		"a path that is split":   {split, func(*watch) {}, "a/prod"},
		"no tenants any more":    {nil, func(*watch) {}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWatch(t, func(o *Options) { o.Tenants = twoOfOne })
			web(w)
			w.look()
			tenants(c.tenants)(w)
			restart(w)
			w.look()
			c.then(w)
			w.look()
			if got := w.d.Claims["default/web"]; got == nil || got.Tenant != c.want {
				t.Errorf("got %+v, want it to belong to %q", got, c.want)
			}
		})
	}
}

func TestTheProblemSaysWhatAFolderMay(t *testing.T) {
	t.Parallel()
	w := newWatch(t, func(o *Options) { o.Tenants = twoOfOne })
	put(map[string]string{"c/x.yaml": claimYAML("web", "x"), "a/x.yaml": claimYAML("web", "x"), "docs/x.yaml": "kind: [\n"})(w)
	w.look()
	var got []string
	for _, p := range w.d.Problems {
		got = append(got, p.String())
	}
	want := []string{
		"c/x.yaml:1: ServerClaim: below c only namespace c (git.tenants), not default",
		"docs/x.yaml: warning: is below no path of git.tenants, so nothing in it counts",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestWhoMayHaveWhatARenamedPathHadIsTold(t *testing.T) {
	t.Parallel()
	w := newWatch(t, func(o *Options) { o.Tenants = twoOfOne })
	put(map[string]string{"a/web.yaml": claimYAML("web", "x")})(w)
	w.look()
	tenants(otherPath)(w)
	restart(w)
	put(map[string]string{"b/web.yaml": claimYAML("web", "y")})(w)
	w.look()
	want := "b/web.yaml: belongs to a, which is no path of git.tenants any more"
	if got := messages(w.d); !strings.Contains(got, want) {
		t.Errorf("got %q, want %q among it", got, want)
	}
}

func TestWhatOnlyOneMayDefineIsHisUnseen(t *testing.T) {
	t.Parallel()
	w := newWatch(t, func(o *Options) { o.Tenants = model.Tenants{{Path: "a", Namespaces: []string{"default"}}, {Path: "c"}} })
	put(map[string]string{"a/web.yaml": claimYAML("web", "x"), "c/x.yaml": claimYAML("x", "x")})(w)
	w.look()
	tenants(model.Tenants{{Path: "z", Namespaces: []string{"default"}}, {Path: "c"}})(w)
	rewrite(map[string]string{"z/web.yaml": claimYAML("web", "x")})(w)
	replaceApplied(w)
	lose(w)
	w.look()
	if got := w.d.Claims["default/web"]; got == nil || got.Tenant != "z" {
		t.Errorf("got %+v, want it to belong to z", got)
	}
}

func TestWhatASplitPathHadIsRemovedForWhoTheRecordsName(t *testing.T) {
	t.Parallel()
	w := newWatch(t, func(o *Options) { o.Tenants = twoOfOne })
	put(map[string]string{"a/prod/web.yaml": claimYAML("web", "x"), "a/db.yaml": claimYAML("db", "d")})(w)
	w.look()
	tenants(split)(w)
	restart(w)
	take("a/prod/web.yaml")(w)
	w.look()
	for _, tenant := range []string{"a", "a/prod"} {
		if _, removed := w.d.RemovalOf(model.ClaimName("default/web").Identity(), tenant); !removed {
			t.Errorf("no commit took away that of %q: %v", tenant, w.d.Removed)
		}
	}
}

func TestAnHeirThatClashesIsTold(t *testing.T) {
	t.Parallel()
	w := newWatch(t, func(o *Options) { o.Tenants = twoOfOne })
	put(map[string]string{"a/web.yaml": claimYAML("web", "x"), "a/db.yaml": claimYAML("db", "shared")})(w)
	w.look()
	put(map[string]string{"b/web.yaml": claimYAML("web", "shared")})(w)
	w.look()
	take("a/web.yaml")(w)
	w.look()
	if got, want := messages(w.d), "b/web.yaml: shares its image\n"; !strings.Contains(got, want) {
		t.Errorf("got %q, want %q among it", got, want)
	}
}

func TestEachRemovalOfANameIsKept(t *testing.T) {
	t.Parallel()
	w := newWatch(t, func(o *Options) { o.Tenants = twoOfOne })
	put(map[string]string{"a/web.yaml": claimYAML("web", "a's"), "c/c.yaml": claimYAML("db", "d")})(w)
	w.look()
	put(map[string]string{"b/web.yaml": claimYAML("web", "b's")})(w)
	w.look()
	taken := func(file string) model.Revision {
		take(file)(w)
		w.look()
		return w.d.Revision
	}
	of := func(tenant string) model.Revision {
		r, _ := w.d.RemovalOf(model.ClaimName("default/web").Identity(), tenant)
		return r.Revision
	}
	a, b := taken("a/web.yaml"), taken("b/web.yaml")
	if of("a") != a || of("b") != b || of("c") != "" || of("") != b {
		t.Errorf("%q took away a's, %q b's, %q c's, want %q, %q and none", of("a"), of("b"), of("c"), a, b)
	}
	put(map[string]string{"b/web.yaml": claimYAML("web", "b's")})(w)
	w.look()
	if of("a") != a || of("b") != "" {
		t.Errorf("once b's is back %q took away a's, %q b's, want %q and none", of("a"), of("b"), a)
	}
	again := taken("b/web.yaml")
	if of("a") != a || of("b") != again {
		t.Errorf("%q took away a's, %q b's, want %q and %q", of("a"), of("b"), a, again)
	}
}

func TestAnHeirThatIsBrokenHoldsUpNoRemovalOfAnothers(t *testing.T) {
	t.Parallel()
	web := claimYAML("web", "b's")
	for name, broken := range map[string]act{
		"it cannot be read, and was there before": put(map[string]string{
			"b/web.yaml": strings.Replace(web, "spec:", "spec:\n  broken: x", 1),
		}),
		"it is written down twice":    put(map[string]string{"b/web.yaml": web, "b/web2.yaml": web}),
		"it claims what is another's": put(map[string]string{"b/web.yaml": claimYAML("web", "shared")}),
	} {
		t.Run(name, func(t *testing.T) {
			w := newWatch(t, func(o *Options) { o.Tenants = twoOfOne })
			put(map[string]string{"a/web.yaml": claimYAML("web", "a's"), "a/db.yaml": claimYAML("db", "shared")})(w)
			w.look()
			for _, act := range []act{put(map[string]string{"b/web.yaml": web}), take("a/web.yaml"), take("b/web.yaml"), broken} {
				act(w)
				w.look()
			}
			id := model.ClaimName("default/web").Identity()
			if _, removed := w.d.RemovalOf(id, "a"); !removed || !w.d.IsQuarantined(id) {
				t.Errorf("a's was removed: %t; b's is known to stand there: %t", removed, w.d.IsQuarantined(id))
			}
			if _, removed := w.d.RemovalOf(id, "b"); removed {
				t.Error("b's is removed, though it stands in Git")
			}
		})
	}
}

// A server takes trees that nobody can check out: what a name with a slash says of folders is not
// believed.
func TestANameWithASlashLeadsIntoNoOtherFolder(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"x/../../b/evil.yaml", "x/../../evil.yaml", "x/../../../evil.yaml", "b/evil.yaml", "/evil.yaml", "x/../db.yaml"} {
		repo := newRepo(t)
		ok[string](t)(repo.Commit(map[string]string{"a/web.yaml": claimYAML("web", "a's"), "b/db.yaml": claimYAML("db", "b's")}, "begin"))
		opts := testOptions(t, repo.URL())
		opts.Tenants = model.Tenants{{Path: "a", Namespaces: []string{"default"}}, {Path: "b", Namespaces: []string{"default"}}}
		s := newSource(t, opts)
		mustSync(t, s)
		ok[string](t)(repo.CommitEntry("a", "100644", name, ok[string](t)(repo.Blob(claimYAML("evil", "a's"))), "evil"))
		d := mustSync(t, s)
		if diff := cmp.Diff(map[string]string{"web": "a's", "db": "b's"}, claims(d)); diff != "" {
			t.Errorf("%s: in force (-want +got):\n%s", name, diff)
		}
		if want := "a/" + strings.ReplaceAll(name, "/", "%2F") + ": is an entry of its folder whose name has a slash"; !strings.Contains(messages(d), want) {
			t.Errorf("%s: got problems %q, want %q", name, messages(d), want)
		}
		ok[string](t)(repo.Remove("removed", "b/db.yaml"))
		if diff := cmp.Diff(map[string]string{"web": "a's"}, claims(mustSync(t, s))); diff != "" {
			t.Errorf("%s: in force once the other tenant removed his (-want +got):\n%s", name, diff)
		}
	}
}

// A path is as long as those of all folders together, and each file below has it.
func TestAPathThatIsTooLongIsRefused(t *testing.T) {
	t.Parallel()
	repo := newRepo(t)
	long := strings.Repeat("x", maxPath-len("a/")-len("/web.yaml"))
	ok[string](t)(repo.Commit(map[string]string{
		"a/" + long + "/web.yaml": claimYAML("web", "a"), "a/" + long + "yy/db.yaml": claimYAML("db", "a"),
		"b/" + strings.Repeat("x", 2*maxPath) + "/www.yaml": claimYAML("www", "a"),
	}, "begin"))
	s := newSource(t, testOptions(t, repo.URL()))
	d := mustSync(t, s)
	if diff := cmp.Diff(map[string]string{"web": "a"}, claims(d)); diff != "" {
		t.Errorf("in force (-want +got):\n%s", diff)
	}
	for _, want := range []string{"yy/db.yaml: is in folders whose names", "b/" + strings.Repeat("x", maxMessage) + "…: is in folders whose names"} {
		if !strings.Contains(messages(d), want) {
			t.Errorf("got problems %s, want %s", messages(d), want)
		}
	}
}

// Nor is what servers take and give a damaged store, if Git would not make it so.
func TestAFolderThatGitWouldNotMakeHoldsUpNobodyElse(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ mode, ofTenant, ofAll string }{
		"a folder under the name of a file": {
			"100644", "a/evil.yaml: is another folder or a commit under the name of a file", "a/evil.yaml: is another folder or a commit",
		},
		"a mode that is none": {
			"777777777777777100644", "a: holds a folder whose list is not as Git writes it: none of it is read", "cannot be read: a folder's list is not as Git writes it",
		},
	} {
		for problem, tenants := range map[string]model.Tenants{
			tc.ofTenant: {{Path: "a", Namespaces: []string{"default"}}, {Path: "b", Namespaces: []string{"default"}}},
			tc.ofAll:    nil,
		} {
			repo := newRepo(t)
			ok[string](t)(repo.Commit(map[string]string{"a/web.yaml": claimYAML("web", "a's"), "b/db.yaml": claimYAML("db", "b's")}, "begin"))
			ok[string](t)(repo.CommitTo("side", map[string]string{"x": "x"}, "side"))
			folder := strings.TrimSpace(ok[string](t)(repo.Git("rev-parse", "side^{tree}")))
			opts := testOptions(t, repo.URL())
			opts.Tenants = tenants
			s := newSource(t, opts)
			mustSync(t, s)
			ok[string](t)(repo.CommitEntry("a", tc.mode, "evil.yaml", folder, "evil"))
			ok[string](t)(repo.Remove("removed", "b/db.yaml"))
			d := mustSync(t, s)
			want := map[string]string{"web": "a's"}
			if strings.HasPrefix(problem, "cannot be read") { // no commit counts meanwhile
				want["db"] = "b's"
			}
			if says := messages(d) + s.State().Message; !strings.Contains(says, problem) {
				t.Errorf("%s: got %q, want %q", name, says, problem)
			}
			if diff := cmp.Diff(want, claims(d)); diff != "" {
				t.Errorf("%s, %d tenants: in force (-want +got):\n%s", name, len(tenants), diff)
			}
			ok[string](t)(repo.Replace(map[string]string{"a/web.yaml": claimYAML("web", "b")}, "mended"))
			if diff := cmp.Diff(map[string]string{"web": "b"}, claims(mustSync(t, s))); diff != "" {
				t.Errorf("%s, %d tenants: once it is mended (-want +got):\n%s", name, len(tenants), diff)
			}
		}
	}
}
