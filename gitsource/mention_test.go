package gitsource

import (
	"slices"
	"strings"
	"testing"

	"ingot/model"
)

const realWeb = realHead + "ServerClaim\nmetadata:\n  name: web\n  namespace: default\nspec:\n  power: \"On\"\n  image: x/y:1\n"

// mistakes are claims that nobody can name for certain, though a person sees whose manifest each is.
var mistakes = map[string]string{
	"a line that is not indented as it has to be": strings.Replace(realWeb, "spec:", " spec:", 1),
	"a tab":                 strings.Replace(realWeb, "  power", "\tpower", 1),
	"a merge conflict":      strings.Replace(realWeb, "  power", "<<<<<<< HEAD\n  power", 1),
	"a kind that is none":   strings.Replace(realWeb, "ServerClaim", "ServerClam", 1),
	"a name that is a list": strings.Replace(realWeb, "name: web", "name: [web]", 1),
	"a bracket too many, in JSON": `{"apiVersion": "metal.ironcore.dev/v1alpha1", "kind": "ServerClaim", ` +
		`"metadata": {"name": "web"}}, "spec": {"power": "On", "image": "x/y:1"}}`,
}

// withoutWeb is a watch with the real decoder, whose branch has claims web and db, and had web taken away.
func withoutWeb(t *testing.T, more ...act) *watch {
	t.Helper()
	w := realWatch(t)
	put(map[string]string{"web.yaml": realWeb, "db.yaml": strings.ReplaceAll(realWeb, "name: web", "name: db")})(w)
	for _, a := range more {
		a(w)
	}
	w.look()
	take("web.yaml")(w)
	w.look()
	return w
}

func (w *watch) isHeld() bool {
	web := model.ClaimName("default/web").Identity()
	_, removed := w.d.RemovalOf(web, "")
	return w.d.IsQuarantined(web) && !removed
}

func TestAClaimThatIsPutBackInAFileThatCannotBeReadIsNotRemoved(t *testing.T) {
	t.Parallel()
	for name, bad := range mistakes {
		t.Run(name, func(t *testing.T) {
			w := withoutWeb(t)
			removed := w.d.Removed
			put(map[string]string{"web.yaml": bad})(w)
			if w.look(); !w.isHeld() {
				t.Errorf("removed %v, quarantined %v, with %v", w.d.Removed, w.d.Quarantined, w.d.Problems)
			}
			w.s.close()
			b := records(w.d)
			b.Removed = removed // as it is on record while the server is being released
			w.s = begun(t, w.opts, b)
			if w.look(); !w.isHeld() {
				t.Errorf("after a restart: removed %v, quarantined %v", w.d.Removed, w.d.Quarantined)
			}
			take("web.yaml")(w)
			if w.look(); w.isHeld() || len(w.d.Removed) == 0 {
				t.Errorf("it is gone again: removed %v, quarantined %v", w.d.Removed, w.d.Quarantined)
			}
		})
	}
}

func TestAFileThatCannotBeReadHoldsUpNobodyElse(t *testing.T) {
	t.Parallel()
	w := withoutWeb(t)
	for name, text := range map[string]string{
		"one that names another":        strings.Replace(mistakes["a tab"], "name: web", "name: webs", 1),
		"one of another program":        "apiVersion: v1\nkind: Service\nmetadata:\n\tname: web\n",
		"another's, of another program": "kind: Pod\nmetadata: {name: web\n",
	} {
		put(map[string]string{"x.yaml": text})(w)
		if w.look(); w.isHeld() {
			t.Errorf("%s holds it: %v", name, w.d.Problems)
		}
	}
	other := withoutWeb(t)
	put(map[string]string{"x.yaml": strings.Replace(mistakes["a tab"], "name: web", "name: db", 1)})(other)
	if other.look(); other.isHeld() || other.d.Claims["default/db"] == nil {
		t.Errorf("quarantined %v, claims %v", other.d.Quarantined, claims(other.d))
	}
}

// A claim that is renamed with a mistake is not one that is removed.
func TestWhatVanishesAlongWithANewMistakeIsNotRemoved(t *testing.T) {
	t.Parallel()
	head := func(kind, name string) string {
		return realHead + kind + "\nmetadata: {name: " + name + ", namespace: default}\n"
	}
	claimOf := func(name, more string) string {
		return head("ServerClaim", name) + "spec: {power: \"On\", image: \"x/y:1\"" + more + "}\n"
	}
	maintenanceOf := func(name, more string) string {
		return realHead + "ServerMaintenance\nmetadata: {name: " + name + "}\nspec: {serverRef: {name: s1}" + more + "}\n"
	}
	serverOf := func(name, more string) string {
		return realHead + "Server\nmetadata: {name: " + name + "}\nspec: {reclaimPolicy: Retain" + more + "}\n"
	}
	for name, c := range map[string]struct {
		of func(name, more string) string
		id model.Identity
	}{
		"a claim":       {claimOf, model.ClaimName("default/old").Identity()},
		"a maintenance": {maintenanceOf, model.MaintenanceIdentity("old")},
		"a server":      {serverOf, model.ServerName("old").Identity()},
	} {
		t.Run(name, func(t *testing.T) {
			w := realWatch(t)
			put(map[string]string{"old.yaml": c.of("old", ""), "x.yaml": claimOf("x", "")})(w)
			w.look()
			move := func(more string) {
				ok[string](t)(w.repo.Replace(map[string]string{"sub/new.yaml": c.of("new", more), "x.yaml": claimOf("x", "")}, "move"))
			}
			stays := func() bool {
				_, inForce := w.s.effective.objects[c.id]
				return inForce && len(w.d.Removed[c.id]) == 0
			}
			move(", wrong: 1")
			if w.look(); !stays() {
				t.Fatalf("removed %v, with %v", w.d.Removed, w.d.Problems)
			}
			put(map[string]string{"README.md": "hello"})(w)
			if w.look(); !stays() {
				t.Fatalf("removed %v by a commit about something else", w.d.Removed)
			}
			restart(w)
			if w.look(); !stays() {
				t.Fatalf("removed %v by a restart", w.d.Removed)
			}
			move("")
			w.look()
			if now := w.d.NameNow("default/old", ""); c.id.Kind == model.KindServerClaim && now != "default/new" {
				t.Errorf("it is called %q, removed are %v", now, w.d.Removed)
			}
			if stays() {
				t.Error("it is still in force")
			}
		})
	}
}

func TestARemovalThatAnotherFileMayTakeBackIsNone(t *testing.T) {
	t.Parallel()
	w := withoutWeb(t, put(map[string]string{"old.yaml": mistakes["a merge conflict"]}))
	if w.d.Claims["default/web"] == nil || len(w.d.Removed) > 0 {
		t.Errorf("claims %v, removed %v, though old.yaml may define it", claims(w.d), w.d.Removed)
	}
	take("old.yaml")(w)
	if w.look(); w.d.Claims["default/web"] != nil || len(w.d.Removed) == 0 {
		t.Errorf("claims %v, removed %v", claims(w.d), w.d.Removed)
	}
}

func TestARemovalThatIsBeingActedUponIsKnownAtTheBeginning(t *testing.T) {
	t.Parallel()
	observed := model.NewObserved()
	release := &model.Release{Revision: "main@sha1:1", Claim: "default/web"}
	observed.Servers["s1"] = &model.ServerRecord{RecordIdentity: model.RecordIdentity{Name: "s1"}, Life: model.RecordLife{State: model.StateReserved}, Claim: model.RecordClaim{Name: "default/web", Tenant: "a"}, Release: release}
	web := model.ClaimName("default/web").Identity()
	if got := BeginningOf(observed).Removed[web]; !slices.Equal(got, []model.Removal{{Revision: "main@sha1:1", Tenant: "a"}}) {
		t.Errorf("removed %v", got)
	}
	observed.Servers["s2"] = &model.ServerRecord{RecordIdentity: model.RecordIdentity{Name: "s2"}, Life: model.RecordLife{State: model.StateReserved}, Claim: model.RecordClaim{Name: "default/web"}}
	if b := BeginningOf(observed); len(b.Removed) > 0 || !slices.Equal(b.Bound, []model.Identity{web}) {
		t.Errorf("removed %v, bound %v: another server has it by now", b.Removed, b.Bound)
	}
}
