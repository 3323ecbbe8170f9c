package gitsource

import (
	"bytes"
	stdcmp "cmp"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ingot/gitsource/gitserver"
	"ingot/model"
	"ingot/model/must"
)

func TestNothingIsJudgedBeforeTheRecordsAreRead(t *testing.T) {
	t.Parallel()
	w := newWatch(t, nil)
	put(map[string]string{"web.yaml": claimYAML("web", "a")})(w)
	w.look()
	b := records(w.d)
	w.s.close()
	take("web.yaml")(w)
	put(map[string]string{"db.yaml": claimYAML("db", "b")})(w)
	w.s = notBegun(t, w.opts)
	if d := mustSync(t, w.s); d != nil {
		t.Fatalf("in force before Begin: %v", claims(d))
	}
	w.s.Begin(b)
	w.s.Begin(Beginning{})
	w.look()
	want := seen{Claims: map[string]string{"db": "b"}, Removed: []string{"ServerClaim default/web"}}
	if diff := cmp.Diff(want, see(w.d)); diff != "" {
		t.Errorf("after Begin (-want +got):\n%s", diff)
	}
	if got, _ := w.d.RemovalOf(model.ClaimName("default/web").Identity(), ""); got.Revision != w.d.Revision || got.At.IsZero() ||
		got.Approved {
		t.Errorf("removal %+v, want it by %s", got, w.d.Revision)
	}
	if got := w.d.Applied(); got.URL != model.CanonicalURL(w.opts.URL) || got.Path != "." || got.Branch != "main" ||
		got.Commit != w.repo.Head("main") {
		t.Errorf("applied %+v", got)
	}
}

func TestWhatDependsOnTheBranch(t *testing.T) {
	t.Parallel()
	web := model.ClaimName("default/web").Identity()
	rec := func(name model.ServerName, tenant string) *model.ServerRecord {
		return &model.ServerRecord{RecordIdentity: model.RecordIdentity{Name: name}, Claim: model.RecordClaim{Name: "default/web", Tenant: tenant}}
	}
	removed := func(id model.Identity, tenant string) model.RemovedObject {
		return model.RemovedObject{Identity: id, Removal: model.Removal{Tenant: tenant}}
	}
	m, s1 := model.MaintenanceIdentity("m"), model.ServerName("s1").Identity()
	for name, c := range map[string]struct {
		servers []*model.ServerRecord
		removed []model.RemovedObject
		bound   []model.Identity
		owners  map[model.Identity]string
	}{
		"a claim": {
			servers: []*model.ServerRecord{rec("s1", "a")}, bound: []model.Identity{web},
			owners: map[model.Identity]string{web: "a"},
		},
		"a claim that was removed": {servers: []*model.ServerRecord{rec("s1", "a")}, removed: []model.RemovedObject{removed(web, "a")}},
		"one that was before":      {servers: []*model.ServerRecord{rec("s1", "")}, removed: []model.RemovedObject{removed(web, "a")}},
		"another's was removed": {
			servers: []*model.ServerRecord{rec("s1", "a")}, removed: []model.RemovedObject{removed(web, "b")},
			bound: []model.Identity{web}, owners: map[model.Identity]string{web: "a"},
		},
		"one of two of a name": {
			servers: []*model.ServerRecord{rec("s1", "b"), rec("s2", "a"), rec("s3", "b")},
			removed: []model.RemovedObject{removed(web, "b")}, bound: []model.Identity{web},
			owners: map[model.Identity]string{web: "a"},
		},
		"one that its server is taken from": {servers: []*model.ServerRecord{
			{RecordIdentity: model.RecordIdentity{Name: "s1"}, Life: model.RecordLife{State: model.StateReserved}, Claim: model.RecordClaim{Name: "default/web"}, Release: &model.Release{}},
			{RecordIdentity: model.RecordIdentity{Name: "s2"}, Life: model.RecordLife{State: model.StateMaintenance, Back: model.StateReleased}, Claim: model.RecordClaim{Name: "default/web"}},
		}},
		"a maintenance and a parked one": {
			servers: []*model.ServerRecord{{RecordIdentity: model.RecordIdentity{Name: "s1"}, Maintenance: model.RecordMaintenance{By: model.OperationPark}}, {RecordIdentity: model.RecordIdentity{Name: "s2"}, Maintenance: model.RecordMaintenance{By: "m"}}},
			bound:   []model.Identity{s1, m},
		},
		"those that were removed": {
			servers: []*model.ServerRecord{{RecordIdentity: model.RecordIdentity{Name: "s1"}, Maintenance: model.RecordMaintenance{By: model.OperationPark}}, {RecordIdentity: model.RecordIdentity{Name: "s2"}, Maintenance: model.RecordMaintenance{By: "m"}}},
			removed: []model.RemovedObject{removed(s1, ""), removed(m, "a")},
		},
	} {
		t.Run(name, func(t *testing.T) {
			observed := model.NewObserved()
			observed.Fleet.Removed = c.removed
			for _, r := range c.servers {
				observed.Servers[r.Name] = r
			}
			b := BeginningOf(observed)
			if !slices.Equal(b.Bound, c.bound) || !maps.Equal(b.Owners, c.owners) {
				t.Errorf("got %v of %v, want %v of %v", b.Bound, b.Owners, c.bound, c.owners)
			}
		})
	}
}

func TestTheFolderIsButACache(t *testing.T) {
	t.Parallel()
	file := func(name string) func(*testing.T, Options) string {
		return func(_ *testing.T, o Options) string { return filepath.Join(o.Dir, name) }
	}
	overwrite := func(name, content string) act {
		return func(w *watch) {
			if err := os.WriteFile(file(name)(w.T, w.opts), []byte(content), 0o600); err != nil {
				w.Fatal(err)
			}
		}
	}
	commit := strings.Repeat("1", 40)
	tests := map[string]act{
		"a state of another format": overwrite("state.json", `{"version":2,"heads":[{"commit":"`+commit+`"}]}`),
		"a state that is no JSON":   overwrite("state.json", `{`),
		"a state of another repository": overwrite("state.json",
			`{"version":1,"heads":[{"url":"x","branch":"y","path":".","commit":"`+commit+`"}],`+
				`"held":[{"identity":{"kind":"ServerClaim","namespace":"default","name":"old"},"path":"old.yaml","blob":"1"}],`+
				`"blobs":{"1":""}}`),
		"no folder": func(w *watch) { _ = os.RemoveAll(w.opts.Dir) },
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWatch(t, nil)
			put(map[string]string{"web.yaml": claimYAML("web", "a"), "db.yaml": claimYAML("db", "a")})(w)
			w.look()
			w.s.close()
			change(w)
			take("web.yaml")(w)
			restart(w)
			w.look()
			want := seen{Claims: map[string]string{"db": "a"}, Removed: []string{"ServerClaim default/web"}}
			if diff := cmp.Diff(want, see(w.d)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestTokensStayValidAndAreNeverReused(t *testing.T) {
	t.Parallel()
	w := newWatch(t, nil)
	put(map[string]string{"web.yaml": claimYAML("web", "a"), "db.yaml": claimYAML("db", "a")})(w)
	w.look()
	rewrite(map[string]string{"db.yaml": claimYAML("db", "a")})(w)
	w.look()
	first, list := w.d.Absent[0], w.d.AbsentToken
	if len(first.Token) < 20 || len(list) < 20 || first.Token == list || first.Since.IsZero() {
		t.Fatalf("absence %+v, list %q", first, list)
	}
	lose(w)
	w.look()
	if diff := cmp.Diff([]model.Absence{first}, w.d.Absent); diff != "" || w.d.AbsentToken != list {
		t.Errorf("after a restart elsewhere the list is %q (-want +got):\n%s", w.d.AbsentToken, diff)
	}
	rewrite(map[string]string{"x.yaml": claimYAML("x", "a")})(w)
	replaceApplied(w)
	w.look()
	if len(w.d.Absent) != 2 || w.d.AbsentToken == list || w.d.Absent[1].Token != first.Token {
		t.Errorf("a list that grew has token %q as before: %+v", w.d.AbsentToken, w.d.Absent)
	}
}

func TestAnotherSource(t *testing.T) {
	t.Parallel()
	web, db := claimYAML("web", "a"), claimYAML("db", "b")
	files := map[string]string{"fleet/web.yaml": web, "fleet/db.yaml": db}
	all := map[string]string{"web": "a", "db": "b"}
	changed := []string{"ServerClaim default/web: SourceChanged"}
	justDB := map[string]string{"db": "b"}
	tests := map[string]struct {
		change func(w *watch)
		want   seen
	}{
		"another branch with the same content asks nothing": {
			change: func(w *watch) {
				ok[string](w.T)(w.repo.CommitTo("master", files, "master"))
				w.opts.Branch = "master"
			},
			want: seen{Claims: all},
		},
		"the same commit under another branch asks nothing": {
			change: func(w *watch) {
				if err := w.repo.SetBranch("master", w.repo.Head("main")); err != nil {
					w.Fatal(err)
				}
				w.opts.Branch = "master"
			},
			want: seen{Claims: all},
		},
		"another branch that lacks a claim takes nothing away": {
			change: func(w *watch) {
				ok[string](w.T)(w.repo.CommitTo("master", map[string]string{"fleet/db.yaml": db}, "master"))
				w.opts.Branch = "master"
			},
			want: seen{Claims: all, Absent: changed},
		},
		"another branch takes nothing away though it descends": {
			change: func(w *watch) {
				main := w.repo.Head("main")
				take("fleet/web.yaml")(w)
				if err := w.repo.SetBranch("master", w.repo.Head("main")); err != nil {
					w.Fatal(err)
				}
				if err := w.repo.SetBranch("main", main); err != nil {
					w.Fatal(err)
				}
				w.opts.Branch = "master"
			},
			want: seen{Claims: all, Absent: changed},
		},
		"another path takes nothing away": {
			change: func(w *watch) {
				put(map[string]string{"other/db.yaml": db})(w)
				w.opts.Path = "other"
			},
			want: seen{Claims: all, Absent: changed},
		},
		"another path in the same commit takes nothing away": {
			change: func(w *watch) { w.opts.Path = "sub" },
			want: seen{
				Claims: map[string]string{"web": "a", "db": "b", "sub": "a"},
				Absent: []string{"ServerClaim default/db: SourceChanged", changed[0]},
			},
		},
		"another URL takes nothing away": {
			change: func(w *watch) {
				other := newRepo(w.T)
				ok[string](w.T)(other.Commit(map[string]string{"fleet/db.yaml": db}, "other"))
				w.opts.URL = other.URL()
			},
			want: seen{Claims: all, Absent: changed},
		},
		"another URL takes nothing away on another machine": {
			change: func(w *watch) {
				other := newRepo(w.T)
				ok[string](w.T)(other.Commit(map[string]string{"fleet/db.yaml": db}, "other"))
				w.opts.URL, w.opts.Dir = other.URL(), filepath.Join(w.TempDir(), "git")
			},
			want: seen{
				Claims: justDB, Absent: []string{"ServerClaim default/web: AppliedUnknown"},
				Quarantined: []string{"ServerClaim default/web"},
			},
		},
		"another way to the same repository is no other source": {
			change: func(w *watch) {
				w.opts.URL = strings.TrimPrefix(w.opts.URL, "file://")
				take("fleet/web.yaml")(w)
			},
			want: seen{Claims: justDB, Removed: []string{"ServerClaim default/web"}},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWatch(t, func(o *Options) { o.Path = "fleet" })
			put(files)(w)
			put(map[string]string{"sub/sub.yaml": claimYAML("sub", "a")})(w)
			w.look()
			d := *w.d
			w.d = &d
			tt.change(w)
			restart(w)
			w.look()
			if diff := cmp.Diff(tt.want, see(w.d)); diff != "" {
				t.Fatalf("(-want +got):\n%s", diff)
			}
			if want := w.repo.Head(stdcmp.Or(w.opts.Branch, DefaultBranch)); w.opts.URL == w.repo.URL() && w.d.Applied().Commit != want {
				t.Errorf("in force is %s, want %s", w.d.Revision, want)
			}
			restart(w)
			w.look()
			if got := see(w.d); !slices.Equal(got.Absent, tt.want.Absent) || got.Removed != nil {
				t.Errorf("after a restart %+v, want %+v", got, tt.want)
			}
		})
	}
}

func TestTheSourceThatWasAppliedComesBack(t *testing.T) {
	t.Parallel()
	w := newWatch(t, nil)
	put(map[string]string{"web.yaml": claimYAML("web", "a"), "db.yaml": claimYAML("db", "b")})(w)
	w.look()
	ok[string](t)(w.repo.CommitTo("master", map[string]string{"db.yaml": claimYAML("db", "b")}, "master"))
	w.opts.Branch = "master"
	restart(w)
	w.look()
	w.opts.Branch = "main"
	restart(w)
	w.look()
	if diff := cmp.Diff(seen{Claims: map[string]string{"web": "a", "db": "b"}}, see(w.d)); diff != "" || w.d.Source.Reason != "" {
		t.Errorf("%+v (-want +got):\n%s", w.d.Source, diff)
	}
}

func TestAServerThatIsAskedForItsPastGivesIt(t *testing.T) {
	t.Parallel()
	w := newWatch(t, nil)
	must.Get(w.repo.Git("config", "uploadpack.allowReachableSHA1InWant", "true"))(t)
	put(map[string]string{"web.yaml": claimYAML("web", "a")})(w)
	w.look()
	must.Do(t, w.repo.SetBranch("keep", w.repo.Head("main")))
	ok[string](t)(w.repo.CommitTo("keep", nil, "keeps the old history"))
	rewrite(map[string]string{"db.yaml": claimYAML("db", "b")})(w)
	lose(w)
	w.look()
	want := seen{Claims: map[string]string{"web": "a", "db": "b"}, Absent: []string{webGone}}
	if diff := cmp.Diff(want, see(w.d)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAServerInTroubleIsAskedForThePastAgain(t *testing.T) {
	t.Parallel()
	w := newWatch(t, nil)
	must.Get(w.repo.Git("config", "uploadpack.allowReachableSHA1InWant", "true"))(t)
	posts := 0
	server := serveHTTP(t, w.repo, gitserver.HTTPOptions{Wrap: func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost {
				if posts++; posts == 2 { // the first is for the head
					out.WriteHeader(http.StatusBadGateway)
					return
				}
			}
			h.ServeHTTP(out, r)
		})
	}})
	w.opts.URL = server.URL
	w.s = newSource(t, w.opts)
	put(map[string]string{"web.yaml": claimYAML("web", "a")})(w)
	w.look()
	must.Do(t, w.repo.SetBranch("keep", w.repo.Head("main")))
	rewrite(map[string]string{"db.yaml": claimYAML("db", "b")})(w)
	posts = 0
	lose(w)
	if err := w.s.Sync(t.Context()); err == nil || w.s.Desired() != nil {
		t.Fatalf("error %v, in force: %v, want an error first", err, w.s.Desired())
	}
	w.look()
	want := seen{Claims: map[string]string{"web": "a", "db": "b"}, Absent: []string{webGone}}
	if diff := cmp.Diff(want, see(w.d)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func grow(t *testing.T, repo *servedRepo, n int) {
	t.Helper()
	var in bytes.Buffer
	from := "from " + repo.Head("main") + "\n"
	for i := range n {
		fmt.Fprintf(&in,
			"commit refs/heads/main\ncommitter A <a@example.com> %d +0000\ndata 5\ngrow\n\n"+
				"%sM 644 inline n.txt\ndata <<E\n%d\nE\n\n", 1800000000+i, from, i)
		from = ""
	}
	cmd := exec.CommandContext(t.Context(), "git", "-C", repo.Dir, "fast-import", "--quiet")
	cmd.Stdin = &in
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

func TestDescentIsFoundFarBack(t *testing.T) {
	onlyLong(t)
	t.Parallel()
	for name, filter := range map[string]string{"by commits alone": "true", "by a server without filters": "false"} {
		t.Run(name, func(t *testing.T) {
			w := newWatch(t, nil)
			must.Get(w.repo.Git("config", "uploadpack.allowFilter", filter))(t)
			w.opts.URL = serveHTTP(t, w.repo, gitserver.HTTPOptions{}).URL
			w.s = newSource(t, w.opts)
			put(map[string]string{"web.yaml": claimYAML("web", "a"), "db.yaml": claimYAML("db", "b")})(w)
			w.look()
			take("web.yaml")(w)
			grow(t, w.repo, 1500)
			w.look()
			want := seen{Claims: map[string]string{"db": "b"}, Removed: []string{"ServerClaim default/web"}}
			if diff := cmp.Diff(want, see(w.d)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if _, err := os.Stat(filepath.Join(w.opts.Dir, "commits.git")); err == nil {
				t.Error("the store of the search was left behind")
			}
		})
	}
}

func TestAHistoryRewrittenFarBackIsNoDescent(t *testing.T) {
	t.Parallel()
	onlyLong(t)
	w := newWatch(t, nil)
	must.Get(w.repo.Git("config", "uploadpack.allowFilter", "true"))(t)
	put(map[string]string{"web.yaml": claimYAML("web", "a"), "db.yaml": claimYAML("db", "b")})(w)
	w.look()
	rewrite(map[string]string{"db.yaml": claimYAML("db", "b")})(w)
	grow(t, w.repo, 1500)
	w.look()
	want := seen{Claims: map[string]string{"web": "a", "db": "b"}, Absent: []string{webGone}}
	if diff := cmp.Diff(want, see(w.d)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestServersThatGitNeverHadAreNotMissing(t *testing.T) {
	t.Parallel()
	w := realWatch(t)
	put(map[string]string{"web.yaml": realClaim("web", "web")})(w)
	w.look()
	b := records(w.d)
	b.Bound = append(b.Bound,
		model.Identity{Kind: model.KindServer, Name: "s1"}, model.Identity{Kind: model.KindServerMaintenance, Name: "m1"})
	w.s.close()
	w.s = begun(t, w.opts, b)
	w.look()
	if diff := cmp.Diff([]string{"ServerMaintenance m1: AppliedUnknown"}, see(w.d).Absent); diff != "" {
		t.Errorf("absent (-want +got):\n%s", diff)
	}
}

const realHead = "apiVersion: metal.ironcore.dev/v1alpha1\nkind: "

func realServer(taint string) string {
	return realHead + "Server\nmetadata: {name: s1}\nspec:\n  systemUUID: 123e4567-e89b-12d3-a456-426614174000\n  taints: [{key: " + taint +
		", effect: NoBind}]\n"
}

func realMaintenance(name string) string {
	return realHead + "ServerMaintenance\nmetadata: {name: " + name + "}\nspec: {serverRef: {name: s1}}\n"
}

func realSecret(name, value string) string {
	return "apiVersion: v1\nkind: Secret\nmetadata: {name: " + name + ", namespace: default}\nstringData: {ignition: " + value + "}\n"
}

func realClaim(name, secret string) string {
	return realHead + "ServerClaim\nmetadata: {name: " + name +
		", namespace: default}\nspec: {power: \"On\", image: ghcr.io/x/y:1, serverRef: {name: s1}, " +
		"ignitionSecretRef: {name: " + secret + "}}\n"
}

func realWatch(t *testing.T) *watch {
	return newWatch(t, func(o *Options) {
		o.Decode, o.Validate, o.CrossCheck, o.AllowPlaintextSecrets = nil, nil, nil, true
	})
}

func TestARewrittenHistoryLeavesServersAndMaintenancesAlone(t *testing.T) {
	t.Parallel()
	w := realWatch(t)
	put(map[string]string{
		"s1.yaml": realServer("a"),
		"m.yaml":  realMaintenance("m1"),
		"e.yaml":  realHead + "Endpoint\nmetadata: {name: e1}\nspec: {macAddress: \"aa:bb:cc:00:00:01\", ip: 10.0.0.1}\n",
	})(w)
	w.look()
	rewrite(map[string]string{
		"s1.yaml": realServer("b"),
		"m.yaml":  realMaintenance("m2"),
		"e.yaml":  realHead + "Endpoint\nmetadata: {name: e1}\nspec: {macAddress: \"aa:bb:cc:00:00:01\", ip: 10.0.0.2}\n",
	})(w)
	look := func(what string, maintenances []string, absent []string) {
		t.Helper()
		w.look()
		var names []string
		for name := range w.d.Maintenances {
			names = append(names, name)
		}
		slices.Sort(names)
		got := see(w.d).Absent
		if !slices.Equal(names, maintenances) || !slices.Equal(got, absent) || w.d.Endpoints["e1"].Spec.IP != "10.0.0.2" {
			t.Errorf("%s: maintenances %v, absent %q, problems %s", what, names, got, messages(w.d))
		}
	}
	absent := []string{
		"Server s1: HistoryRewritten, otherwise",
		"ServerMaintenance m1: HistoryRewritten",
		"ServerMaintenance m2: HistoryRewritten, otherwise",
	}
	look("rewritten", []string{"m1"}, absent)
	if got := w.d.Servers["s1"].Spec.Taints[0].Key; got != "a" {
		t.Errorf("the server's taint is %q, want the one in force", got)
	}
	restart(w)
	look("after a restart", []string{"m1"}, absent)
	approve("ServerMaintenance m2")(w)
	look("m2 approved", []string{"m1", "m2"}, absent[:2])
	approve("ServerMaintenance m1")(w)
	look("m1 approved", []string{"m2"}, absent[:1])
	put(map[string]string{"s1.yaml": realServer("c")})(w)
	look("s1 changed by a commit", []string{"m2"}, nil)
	if got := w.d.Servers["s1"].Spec.Taints[0].Key; got != "c" {
		t.Errorf("the server's taint is %q, want the commit's", got)
	}
}

func TestARenamedClaimHasTheSameSecret(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		files map[string]string
		want  map[model.ClaimName]model.ClaimName
	}{
		"the same Secret": {
			files: map[string]string{"web.yaml": realClaim("web2", "web")},
			want:  map[model.ClaimName]model.ClaimName{"default/web": "default/web2"},
		},
		"a Secret renamed along": {
			files: map[string]string{"web.yaml": realClaim("web2", "web2"), "secret.yaml": realSecret("web2", "x")},
			want:  map[model.ClaimName]model.ClaimName{"default/web": "default/web2"},
		},
		"a Secret with other content": {
			files: map[string]string{"web.yaml": realClaim("web2", "web"), "secret.yaml": realSecret("web", "y")},
			want:  map[model.ClaimName]model.ClaimName{},
		},
		"a Secret that is not there": {map[string]string{"web.yaml": realClaim("web2", "web2")}, map[model.ClaimName]model.ClaimName{}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := realWatch(t)
			put(map[string]string{"web.yaml": realClaim("web", "web"), "secret.yaml": realSecret("web", "x")})(w)
			w.look()
			if len(w.d.Claims) != 1 || len(w.d.Secrets) != 1 {
				t.Fatalf("problems: %s", messages(w.d))
			}
			put(tt.files)(w)
			w.look()
			if diff := cmp.Diff(tt.want, renamed(w.d)); diff != "" {
				t.Errorf("renamed (-want +got):\n%s", diff)
			}
			if _, removed := w.d.Removed[model.ClaimName("default/web").Identity()]; removed == (len(tt.want) > 0) {
				t.Errorf("removed: %v", w.d.Removed)
			}
		})
	}
}

// A fleet whose claims ask for the same may get other names as a whole: comparing each with each
// other took minutes and gigabytes.
func TestAllClaimsMayGetOtherNamesAtOnce(t *testing.T) {
	onlyLong(t)
	t.Parallel()
	const claimed = 3000
	claims := func(prefix string) map[string]string {
		files := make(map[string]string)
		for i := range claimed {
			files[fmt.Sprintf("%d.yaml", i)] = realHead + fmt.Sprintf("ServerClaim\nmetadata: {name: %s%d, namespace: default}\nspec: {power: \"On\", image: os}\n", prefix, i)
		}
		return files
	}
	repo := newRepo(t)
	opts := testOptions(t, repo.URL())
	opts.Decode, opts.Validate, opts.CrossCheck = nil, nil, nil
	ok[string](t)(repo.Commit(claims("web"), "first"))
	s := newSource(t, opts)
	mustSync(t, s)
	ok[string](t)(repo.Commit(claims("db"), "renamed"))
	d := mustSync(t, s)
	if n := len(renamed(d)); n != claimed || len(d.Removed) > 0 || d.NameNow("default/web7", "") != "default/db7" {
		t.Errorf("%d renamed, web7 is now %q, %d removed", n, d.NameNow("default/web7", ""), len(d.Removed))
	}
}

// renamed are all new names by old ones.
func renamed(d *model.Desired) map[model.ClaimName]model.ClaimName {
	names := make(map[model.ClaimName]model.ClaimName)
	for _, r := range d.Renamed {
		maps.Copy(names, r.Names)
	}
	return names
}

func TestAClaimMayChangeAlongWithItsName(t *testing.T) {
	t.Parallel()
	const onS1, onRack = "serverRef: {name: s1}, ", "serverSelector: {matchLabels: {rack: a}}, "
	// claim is a claim of file web.yaml with more in its spec, and with annotations.
	claim := func(name, image, more, annotations string) string {
		return realHead + "ServerClaim\nmetadata: {name: " + name + ", namespace: default, annotations: {" + annotations + "}}\n" +
			"spec: {power: \"On\", " + more + "image: \"ghcr.io/x/y:" + image + "\", ignitionSecretRef: {name: web}}\n"
	}
	off := func(s string) string { return strings.Replace(s, `power: "On"`, `power: "Off"`, 1) }
	const other = "is another claim than ServerClaim default/web, which left this file with the same commit: "
	tests := map[string]struct {
		before, after string
		more          map[string]string // files of the same commit
		says          string            // why it is another; "" = it is renamed
		unclear       bool              // there are two that it may have become
	}{
		"nothing else":  {before: claim("web", "1", "", ""), after: claim("web2", "1", "", "")},
		"its power":     {before: claim("web", "1", "", ""), after: off(claim("web2", "1", "", ""))},
		"an annotation": {before: claim("web", "1", onRack, ""), after: claim("web2", "1", onRack, "note: x")},
		"what it tolerates": {
			before: claim("web", "1", "", ""),
			after:  claim("web2", "1", "tolerations: [{operator: Exists}], ", ""),
		},
		"its image, on the server it names": {before: claim("web", "1", onS1, ""), after: claim("web2", "2", onS1, "")},
		"its image, on whatever server": {
			before: claim("web", "1", "", ""), after: claim("web2", "2", "", ""),
			says: "its spec.image is another",
		},
		"its image, on a server of the rack": {
			before: claim("web", "1", onRack, ""), after: claim("web2", "2", onRack, ""),
			says: "its spec.image is another",
		},
		"the server that it names": {
			before: claim("web", "1", onS1, ""), after: claim("web2", "1", "serverRef: {name: s2}, ", ""),
			says: "its spec.serverRef is another",
		},
		"its selector": {
			before: claim("web", "1", onRack, ""), after: claim("web2", "1", "", ""),
			says: "its spec.serverSelector is another",
		},
		"its Secret": {
			before: claim("web", "1", onS1, ""), after: off(claim("web2", "1", onS1, "")),
			more: map[string]string{"secret.yaml": realSecret("web", "y")}, says: "what its Secrets hold is another",
		},
		"and another comes along": {
			before: claim("web", "1", "", ""), unclear: true,
			after: off(claim("web2", "1", "", "")) + "---\n" + claim("web3", "2", "", ""),
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := realWatch(t)
			put(map[string]string{"web.yaml": tt.before, "secret.yaml": realSecret("web", "x")})(w)
			w.look()
			if len(w.d.Claims) != 1 || len(w.d.Secrets) != 1 {
				t.Fatalf("problems: %s", messages(w.d))
			}
			files := map[string]string{"web.yaml": tt.after}
			maps.Copy(files, tt.more)
			put(files)(w)
			w.look()
			renamed := w.d.NameNow("default/web", "") == "default/web2"
			if want := tt.says == "" && !tt.unclear; renamed != want {
				t.Errorf("renamed: %v, want %v", w.d.Renamed, want)
			}
			if _, removed := w.d.Removed[model.ClaimName("default/web").Identity()]; removed == renamed {
				t.Errorf("removed: %v", w.d.Removed)
			}
			said := messages(w.d)
			if (tt.says == "") != (said == "") || !strings.HasPrefix(said, "web.yaml: "+other+tt.says) && tt.says != "" {
				t.Errorf("it says %q, want %q", said, tt.says)
			}
		})
	}
}

func TestStoreIsBoundedWhileEachLookFindsACommit(t *testing.T) {
	w := newWatch(t, nil)
	put(map[string]string{"web.yaml": claimYAML("web", "a")})(w)
	w.look()
	w.s.keep = 20
	begin := descriptors(t)
	for i := range 60 {
		put(map[string]string{"web.yaml": claimYAML("web", fmt.Sprint("image", i))})(w)
		w.look()
		if n := w.s.store.packs(); n > w.s.keep {
			t.Fatalf("round %d: %d packs, want at most %d", i, n, w.s.keep)
		}
	}
	if n := descriptors(t); n > begin+maxDescriptors {
		t.Errorf("%d descriptors are open, %d at the beginning", n, begin)
	}
	if w.d.Source.Reason != "" || claims(w.d)["web"] != "image59" {
		t.Errorf("in force: %v %+v", claims(w.d), w.d.Source)
	}
}

func descriptors(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("no /proc")
	}
	return len(list)
}
