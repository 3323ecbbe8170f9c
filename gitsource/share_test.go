package gitsource

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/google/go-cmp/cmp"

	"ingot/model"
)

// apart are an operator and tenants with a namespace in common, one of them within the
// folder of another.
var apart = model.Tenants{
	{Path: "ops", Kinds: []model.Kind{"*"}, Namespaces: []string{"*"}},
	{Path: "a", Namespaces: []string{"default"}},
	{Path: "a/in", Namespaces: []string{"default"}},
	{Path: "b", Namespaces: []string{"default"}},
}

func many(dir string, n int) map[string]string {
	files := make(map[string]string)
	for i := range n {
		files[fmt.Sprintf("%s/%d.yaml", dir, i)] = claimYAML(fmt.Sprint("many", i), "m")
	}
	return files
}

func TestATenantThatHasTooMuchDelaysItselfAlone(t *testing.T) {
	t.Parallel()
	deep := map[string]string{"a/" + strings.Repeat("d/", maxFolders+1) + "x.yaml": claimYAML("many0", "m")}
	for name, c := range map[string]struct {
		files map[string]string
		limit func(r *reader)
		why   string
	}{
		"more files than its share": {many("a", 30), func(r *reader) { r.files = 100 }, "a: holds more than 25 manifests, which"},
		"more bytes than its share": {
			many("a", 30), func(r *reader) { r.most = 32 << 10 }, "a: holds manifests of more than 8192 bytes, which",
		},
		"folders too deep to be read": {deep, func(*reader) {}, "a: holds more than 50 folders in one another, which"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWatch(t, func(o *Options) { o.Tenants = apart })
			begin := func() { c.limit(&w.s.reader) }
			begin()
			put(map[string]string{
				"a/web.yaml": claimYAML("web", "1"), "a/gone.yaml": claimYAML("gone", "1"),
				"a/in/in.yaml": claimYAML("in", "1"), "a/in/x.yaml": claimYAML("x", "1"),
				"b/db.yaml": claimYAML("db", "1"), "b/y.yaml": claimYAML("y", "1"), "ops/os.yaml": claimYAML("os", "1"),
			})(w)
			w.look()
			put(c.files)(w)
			put(map[string]string{
				"a/web.yaml": claimYAML("web", "2"), "a/in/in.yaml": claimYAML("in", "2"),
				"b/db.yaml": claimYAML("db", "2"), "b/web.yaml": claimYAML("web", "1"), "ops/os.yaml": claimYAML("os", "2"),
			})(w)
			take("a/gone.yaml", "a/in/x.yaml", "b/y.yaml")(w)
			w.look()
			want := seen{
				Claims:  map[string]string{"web": "1", "gone": "1", "in": "2", "db": "2", "os": "2"},
				Removed: []string{"ServerClaim default/x", "ServerClaim default/y"},
			}
			if diff := cmp.Diff(want, see(w.d)); diff != "" || !strings.HasPrefix(messages(w.d), c.why) {
				t.Fatalf("problems %q, want %q; (-want +got):\n%s", messages(w.d), c.why, diff)
			}
			if got := w.d.Claims["default/web"].Tenant; got != "a" {
				t.Fatalf("a copy of what cannot be read is taken for it: it belongs to %s", got)
			}
			for what, then := range map[string]act{"a restart": restart, "a commit": put(map[string]string{"README.md": "x"})} {
				then(w)
				begin()
				w.look()
				if got := see(w.d); !cmp.Equal(got.Claims, want.Claims) || len(got.Absent)+len(got.Quarantined) > 0 {
					t.Fatalf("after %s %+v", what, got)
				}
			}
			lose(w)
			begin()
			w.look()
			if got := see(w.d); len(got.Absent)+len(got.Removed) > 0 || len(got.Quarantined) != 2 {
				t.Fatalf("on another machine %+v, want the two that it cannot read", got)
			}
			var files []string
			for file := range c.files {
				files = append(files, file)
			}
			take(files...)(w)
			w.look()
			if got, want := claims(w.d), map[string]string{"web": "2", "in": "2", "db": "2", "os": "2"}; !cmp.Equal(got, want) {
				t.Errorf("once it has less %v is in force, want %v", got, want)
			}
			if _, removed := w.d.Removed[model.ClaimName("default/gone").Identity()]; !removed {
				t.Errorf("once it has less %v is removed", w.d.Removed)
			}
		})
	}
}

func TestAFolderWhoseListIsTooLargeDelaysItsTenantAlone(t *testing.T) {
	t.Parallel()
	w := newWatch(t, func(o *Options) { o.Tenants = apart })
	put(map[string]string{"a/w/web.yaml": claimYAML("web", "1"), "b/db.yaml": claimYAML("db", "1")})(w)
	w.look()
	put(map[string]string{"a/w/web.yaml": claimYAML("web", "2"), "b/db.yaml": claimYAML("db", "2")})(w)
	tree := strings.TrimSpace(ok[string](t)(w.repo.Git("rev-parse", "main:a/w")))
	w.s.store.left[plumbing.NewHash(tree)] = maxTree + 1
	w.look()
	const why = "a: holds a folder whose list has more than"
	if got := claims(w.d); !cmp.Equal(got, map[string]string{"web": "1", "db": "2"}) || !strings.Contains(messages(w.d), why) {
		t.Errorf("%v is in force: %s", got, messages(w.d))
	}
}

func TestTheSameFolderOfAnotherTenantIsReadAllTheSame(t *testing.T) {
	t.Parallel()
	w := newWatch(t, func(o *Options) { o.Tenants = apart })
	w.s.reader.files = 8
	// Nothing was read of the first when the second is listed.
	files := map[string]string{"a/0.yaml": claimYAML("0", "a"), "a/1.yaml": claimYAML("1", "a"), "a/2.yaml": claimYAML("2", "a")}
	files["a/z/web.yaml"], files["b/z/web.yaml"] = claimYAML("web", "b"), claimYAML("web", "b")
	put(files)(w)
	w.look()
	if got := claims(w.d); !cmp.Equal(got, map[string]string{"web": "b"}) {
		t.Errorf("%v is in force", got)
	}
}

func TestWhoMayDefineEverythingHasAllThatIsRead(t *testing.T) {
	t.Parallel()
	w := newWatch(t, func(o *Options) { o.Tenants = apart })
	w.s.reader.files = 40
	put(many("ops", 30))(w)
	w.look()
	if got := claims(w.d); len(got) != 30 {
		t.Errorf("%d claims are in force: %s", len(got), messages(w.d))
	}
}
