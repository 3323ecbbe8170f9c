package gitsource

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"ingot/model"
)

func show(commit string) act {
	return func(w *watch) {
		if err := w.repo.SetBranch("main", commit); err != nil {
			w.Fatal(err)
		}
	}
}

var planned = cmp.Options{
	cmpopts.IgnoreFields(model.Desired{}, "Revision", "Time", "Approvals", "Source", "KeptOverRestart", "Problems"),
	cmp.Comparer(func(a, b model.Sensitive) bool { return a == b }),
}

func (w *watch) stays(reason string) {
	w.Helper()
	before := w.d
	w.look()
	if w.d == nil { // nothing begins, so nothing is planned
		w.d = before
	}
	if diff := cmp.Diff(before, w.d, planned); diff != "" || w.s.State().Reason != reason {
		w.Errorf("state %+v, want reason %q; in force (-before +now):\n%s", w.s.State(), reason, diff)
	}
}

func (w *watch) replayed() (commits [4]string) {
	w.Helper()
	bmc := func(address, password string) map[string]string {
		return map[string]string{
			"bmc.yaml": realHead + "BMC\nmetadata: {name: b1}\nspec: {access: {ip: " + address + "}, bmcSecretRef: {name: b1}, " +
				"protocol: {name: Redfish, port: 443}}\n---\n" + realHead + "BMCSecret\nmetadata: {name: b1}\n" +
				"stringData: {username: root, password: " + password + "}\n",
		}
	}
	web := func(power string) map[string]string {
		return map[string]string{"web.yaml": strings.Replace(realClaim("web", "web"), `power: "On"`, `power: "`+power+`"`, 1)}
	}
	steps := []act{
		func(w *watch) {
			put(bmc("10.0.0.1", "first"))(w)
			put(web("Off"))(w)
			put(map[string]string{"secret.yaml": realSecret("web", "first"), "m.yaml": realMaintenance("m1"), "s1.yaml": realServer("a")})(w)
		},
		func(w *watch) {
			take("web.yaml", "m.yaml")(w)
			put(bmc("10.0.0.2", "second"))(w)
		},
		func(w *watch) { put(web("Off"))(w) },
		func(w *watch) {
			put(bmc("10.0.0.3", "third"))(w)
			put(web("On"))(w)
			put(map[string]string{"secret.yaml": realSecret("web", "third"), "s1.yaml": realServer("b")})(w)
		},
	}
	for i, step := range steps {
		step(w)
		w.look()
		commits[i] = w.repo.Head("main")
	}
	if w.d.Claims["default/web"] == nil || w.d.BMCs["b1"] == nil || w.d.Servers["s1"] == nil || len(w.d.Secrets) != 1 {
		w.Fatalf("in force: %+v\n%s", w.d, messages(w.d))
	}
	restart(w) // which forgets removals that were acted upon
	w.look()
	return commits
}

func TestOlderCommitsChangeNothing(t *testing.T) {
	fetch := func(*watch) {}
	giving := func(w *watch) {
		if _, err := w.repo.Git("config", "uploadpack.allowAnySHA1InWant", "true"); err != nil {
			w.Fatal(err)
		}
		lose(w)
	}
	for name, between := range map[string]act{
		"one look after the other": fetch, "with restarts": restart, "with lost folders": lose,
		"with lost folders and a host that gives any commit": giving,
	} {
		t.Run(name, func(t *testing.T) {
			w := realWatch(t)
			c := w.replayed()
			for _, commit := range []string{c[0], c[1], c[2], c[1]} {
				show(commit)(w)
				between(w)
				w.stays(model.SourceOlder)
			}
			show(c[3])(w)
			between(w)
			w.stays("")
			take("web.yaml")(w)
			between(w)
			w.look()
			if got := see(w.d); len(got.Removed) != 1 || len(got.Claims) > 0 {
				t.Errorf("after a new commit removed the claim: %+v", got)
			}
		})
	}
}

func TestOlderCommitsAreFarBehind(t *testing.T) {
	w := realWatch(t)
	c := w.replayed()
	grow(t, w.repo, 60)
	head := w.repo.Head("main")
	w.stays("")
	for _, commit := range []string{c[0], c[1], c[3]} {
		show(commit)(w)
		w.stays(model.SourceOlder)
	}
	lose(w)
	w.stays(model.SourceOlder)
	show(head)(w)
	w.stays("")
}

func TestACommitOnTopOfAnOlderOneCounts(t *testing.T) {
	w := newWatch(t, nil)
	put(map[string]string{"web.yaml": claimYAML("web", "a")})(w)
	w.look()
	c1 := w.repo.Head("main")
	put(map[string]string{"db.yaml": claimYAML("db", "b")})(w)
	w.look()
	c2 := w.repo.Head("main")
	show(c1)(w)
	w.stays(model.SourceOlder)
	if text := w.s.State().Message; !strings.HasPrefix(text, "the repository shows an older commit than the one in force") {
		t.Errorf("message %q", text)
	}
	put(map[string]string{"shop.yaml": claimYAML("shop", "c")})(w)
	w.look()
	fork := w.repo.Head("main")
	want := seen{
		Claims: map[string]string{"web": "a", "db": "b", "shop": "c"}, Absent: []string{"ServerClaim default/db: HistoryRewritten"},
	}
	if diff := cmp.Diff(want, see(w.d)); diff != "" || !cmp.Equal(w.d.Tips, []string{c2}) {
		t.Fatalf("tips %v (-want +got):\n%s", w.d.Tips, diff)
	}
	restart(w)
	show(c1)(w)
	w.stays(model.SourceOlder)

	show(c2)(w) // the push is undone
	w.look()
	want = seen{
		Claims: map[string]string{"web": "a", "db": "b", "shop": "c"}, Absent: []string{"ServerClaim default/shop: HistoryRewritten"},
	}
	if diff := cmp.Diff(want, see(w.d)); diff != "" || !cmp.Equal(w.d.Tips, []string{fork}) {
		t.Fatalf("tips %v (-want +got):\n%s", w.d.Tips, diff)
	}
	show(fork)(w)
	w.look()
	if diff := cmp.Diff([]string{"ServerClaim default/db: HistoryRewritten"}, see(w.d).Absent); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}

	ok[string](t)(w.repo.Merge(c2, map[string]string{"db.yaml": claimYAML("db", "b")}, "merge"))
	w.look()
	want = seen{Claims: map[string]string{"web": "a", "db": "b", "shop": "c"}}
	if diff := cmp.Diff(want, see(w.d)); diff != "" || len(w.d.Tips) > 0 {
		t.Errorf("tips %v after a merge of both (-want +got):\n%s", w.d.Tips, diff)
	}
	for _, commit := range []string{c2, fork, c1} {
		show(commit)(w)
		restart(w)
		w.stays(model.SourceOlder)
	}
}

func TestTagsThatMoveBack(t *testing.T) {
	tag := func(name, commit string) act {
		return func(w *watch) { ok[string](w.T)(w.repo.Git("tag", "--force", name, commit)) }
	}
	untag := func(name string) act {
		return func(w *watch) { ok[string](w.T)(w.repo.Git("tag", "--delete", name)) }
	}
	follow := func(ref Ref) act {
		return func(w *watch) {
			w.opts.Ref = ref
			restart(w)
		}
	}
	for name, tt := range map[string]struct {
		ref  Ref
		tags [2]string // of the first and of the second commit
		back act       // shows the first commit
		want string    // the reason after that; "" = the first commit is in force
	}{
		"a version that is deleted": {
			ref: Ref{Semver: ">=1.0.0"}, tags: [2]string{"v1.0.0", "v2.0.0"}, back: untag("v2.0.0"), want: model.SourceOlder,
		},
		"another range": {
			ref: Ref{Semver: ">=1.0.0"}, tags: [2]string{"v1.0.0", "v2.0.0"}, back: follow(Ref{Semver: "~1.0"}),
		},
		"a tag that is moved": {
			ref: Ref{Tag: "stable"}, tags: [2]string{"before", "stable"}, want: model.SourceOlder,
			back: func(w *watch) { tag("stable", ok[string](w.T)(w.repo.Git("rev-parse", "before"))[:40])(w) },
		},
		"another tag":    {ref: Ref{Tag: "new"}, tags: [2]string{"old", "new"}, back: follow(Ref{Tag: "old"})},
		"another branch": {ref: Ref{Branch: "main"}, tags: [2]string{"old", "new"}, back: follow(Ref{Tag: "old"})},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWatch(t, func(o *Options) { o.Ref = tt.ref })
			put(map[string]string{"web.yaml": claimYAML("web", "a")})(w)
			tag(tt.tags[0], "main")(w)
			put(map[string]string{"db.yaml": claimYAML("db", "b")})(w)
			tag(tt.tags[1], "main")(w)
			w.look()
			first, second := w.d, w.repo.Head("main")
			tt.back(w)
			w.look()
			if tt.want != "" {
				if diff := cmp.Diff(first, w.d, planned); diff != "" || w.d.Source.Reason != tt.want {
					t.Fatalf("state %+v, in force (-before +now):\n%s", w.d.Source, diff)
				}
				return
			}
			want := seen{Claims: map[string]string{"web": "a", "db": "b"}, Absent: see(w.d).Absent}
			if diff := cmp.Diff(want, see(w.d)); diff != "" || len(want.Absent) != 1 || !cmp.Equal(w.d.Tips, []string{second}) {
				t.Errorf("tips %v, in force (-want +got):\n%s", w.d.Tips, diff)
			}
		})
	}
}

func TestAHistoryThatMayBeOlderWaits(t *testing.T) {
	w := newWatch(t, nil)
	put(map[string]string{"web.yaml": claimYAML("web", "a"), "db.yaml": claimYAML("db", "b")})(w)
	w.look()
	applied := w.d.Revision
	rewrite(map[string]string{"db.yaml": claimYAML("db", "b")})(w)
	lose(w)
	w.stays(model.SourceOlder)
	if text := w.s.State().Message; w.s.Desired() != nil || !strings.Contains(text, "Ingot-Approve: "+string(applied)) {
		t.Fatalf("in force: %v, message %q", w.s.Desired(), text)
	}
	restart(w)
	w.stays(model.SourceOlder)
	replaceApplied(w)
	w.look()
	want := seen{
		Claims: map[string]string{"db": "b"}, Absent: []string{"ServerClaim default/web: AppliedUnknown"},
		Quarantined: []string{"ServerClaim default/web"},
	}
	if diff := cmp.Diff(want, see(w.d)); diff != "" || !cmp.Equal(w.d.Tips, []string{applied.Commit()}) {
		t.Errorf("tips %v (-want +got):\n%s", w.d.Tips, diff)
	}
}

func TestTipsAreBounded(t *testing.T) {
	w := newWatch(t, nil)
	put(map[string]string{"web.yaml": claimYAML("web", "0")})(w)
	w.look()
	base := w.repo.Head("main")
	for i := range maxTips + 1 {
		show(base)(w)
		put(map[string]string{"web.yaml": claimYAML("web", fmt.Sprint(i))})(w)
		w.look()
		if w.d.Source.Reason == model.SourceOlder {
			t.Fatalf("push %d: %+v", i, w.d.Source)
		}
	}
	if len(w.d.Tips) != maxTips {
		t.Fatalf("%d tips, want %d", len(w.d.Tips), maxTips)
	}
	show(base)(w)
	put(map[string]string{"web.yaml": claimYAML("web", "last")})(w)
	w.stays(model.SourceOlder)
	replaceApplied(w)
	w.look()
	if w.d.Source.Reason == model.SourceOlder || len(w.d.Tips) != maxTips {
		t.Errorf("%d tips, state %+v", len(w.d.Tips), w.d.Source)
	}
}
