package gitsource

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"ingot/gitsource/gitserver"
	"ingot/model"
	"ingot/model/must"
)

func TestReadSkipsWhatCannotBeRead(t *testing.T) {
	for _, filter := range []bool{false, true} {
		t.Run(fmt.Sprintf("filter=%t", filter), func(t *testing.T) {
			repo := newGitRepo(t)
			must.Get(repo.Git("config", "uploadpack.allowFilter", fmt.Sprint(filter)))(t)
			b := newStatus(t, repo.URL(), Auth{})
			r := held("a", 7, fleet)
			ok[Published](t)(b.Publish(t.Context(), r))
			message := ok[[]gitserver.Commit](t)(repo.ReadLog("status"))[0].Message // which makes it an edited commit of Ingot
			deep := strings.Repeat("d/", maxFolders+1) + "x"
			ok[string](t)(repo.CommitTo("status", map[string]string{
				"servers/large.yaml": strings.Repeat("x", maxStatusFile+1),
				"servers/full.yaml":  strings.Repeat("x", maxStatusFile),
				deep:                 "x",
			}, message))
			head := symlink(t, repo, "servers/link.yaml", message)

			snap := ok[Snapshot](t)(b.Read(t.Context()))
			want := slices.Sorted(maps.Keys(with(with(fleet, "servers/full.yaml", "x"), model.ReportFleet, "x")))
			if diff := cmp.Diff(want, slices.Sorted(maps.Keys(snap.Files))); diff != "" {
				t.Errorf("files (-want +got):\n%s", diff)
			}
			skipped := []string{strings.TrimSuffix(deep, "/x"), "servers/large.yaml", "servers/link.yaml"}
			if diff := cmp.Diff(skipped, slices.Sorted(maps.Keys(snap.Skipped))); diff != "" {
				t.Errorf("skipped (-want +got):\n%s", diff)
			}
			snap.Files, snap.Skipped = nil, nil
			newest := model.BranchHead{Kind: model.HeadOurs, Mark: r.Mark, Continues: 3, Fence: 5, Writer: r.Holder}
			if diff := cmp.Diff(Snapshot{Exists: true, Head: head, Newest: newest}, snap, anyTime); diff != "" {
				t.Errorf("snapshot (-want +got):\n%s", diff)
			}
			// What is not ours does not stay.
			ok[Published](t)(b.Publish(t.Context(), held("a", 8, with(fleet, "README.md", "new\n"))))
			got := ok[Snapshot](t)(b.Read(t.Context()))
			if len(got.Files) != len(fleet)+1 || len(got.Skipped) != 0 {
				t.Errorf("read %v, skipped %v", slices.Sorted(maps.Keys(got.Files)), got.Skipped)
			}
		})
	}
}

func symlink(t *testing.T, r *servedRepo, path, message string) string {
	t.Helper()
	hash := ok[string](t)(r.Git("rev-parse", "status:README.md"))
	index := writeFile(t, nil) + ".index"
	git := func(args ...string) string {
		t.Helper()
		out, err := r.Git(append([]string{"-c", "core.bare=false", "-c", "user.name=x", "-c", "user.email=x@example.com"}, args...)...)
		if err != nil {
			t.Fatal(args, err, out)
		}
		return strings.TrimSpace(out)
	}
	t.Setenv("GIT_INDEX_FILE", index)
	git("read-tree", "status")
	git("update-index", "--add", "--cacheinfo", "120000,"+strings.TrimSpace(hash)+","+path)
	tree := git("write-tree")
	commit := git("commit-tree", tree, "-p", "status", "-m", message+"\nTree: "+tree)
	must.Do(t, r.SetBranch("status", commit))
	return commit
}

func TestAFolderThatCannotBeReadIsNamed(t *testing.T) {
	st := ok[*store](t)(openStore(t.TempDir()))
	defer st.close()
	skipped := make(map[string]error)
	files, folders := listing(st, hashObject("tree", []byte("not there")), skipped)
	if len(files)+len(folders) != 0 || len(skipped) != 1 || skipped[""] == nil {
		t.Errorf("files %v, folders %v, skipped %v: want the root named", files, folders, skipped)
	}
}

func TestADocumentThatIsTooLargeKeepsItsRecord(t *testing.T) {
	repo := newGitRepo(t)
	b := newStatus(t, repo.URL(), Auth{})
	large := strings.Repeat("x", maxStatusFile)
	type object map[string]any
	r := report(1, fleet)
	r.Documents["servers/s3.yaml"] = &model.Document{
		Object: object{"kind": "Server", "status": large, "decided": object{"name": "s3", "claim": "default/web"}},
	}
	r.Documents["servers/s4.yaml"] = &model.Document{Object: object{"kind": "Server", "status": "x", "decided": large}}
	r.Documents["servers/s5.yaml"] = &model.Document{Object: object{"status": large}}
	r.Documents["servers/s1.yaml"] = text(large + "x")
	for i, want := range []int{4, 3} { // what cannot be written is named each time
		p := ok[Published](t)(b.Publish(t.Context(), r))
		if len(p.Skipped) != want {
			t.Errorf("publication %d: skipped %v", i, p.Skipped)
		}
	}
	snap := ok[Snapshot](t)(b.Read(t.Context()))
	if len(snap.Skipped) != 0 {
		t.Errorf("skipped when read: %v", snap.Skipped)
	}
	if diff := cmp.Diff("decided:\n  claim: default/web\n  name: s3\nkind: Server\n", string(snap.Files["servers/s3.yaml"])); diff != "" {
		t.Errorf("file (-want +got):\n%s", diff)
	}
	for _, path := range []string{"servers/s1.yaml", "servers/s4.yaml", "servers/s5.yaml"} {
		if snap.Files[path] != nil {
			t.Errorf("%s was written", path)
		}
	}
	r.Documents["servers/s3.yaml"] = &model.Document{Object: object{"kind": "Server", "status": "small", "decided": object{"name": "s3"}}}
	ok[Published](t)(b.Publish(t.Context(), r))
	got := ok[Snapshot](t)(b.Read(t.Context())).Files["servers/s3.yaml"]
	var doc object
	if err := yaml.Unmarshal(got, &doc); err != nil || doc["status"] != "small" {
		t.Errorf("file %q, %v", got, err)
	}
}

func TestRetryAfter(t *testing.T) {
	repo := newGitRepo(t)
	var header string
	code := http.StatusOK
	server := serveHTTP(t, repo, gitserver.HTTPOptions{Wrap: func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if code == http.StatusOK {
				h.ServeHTTP(w, r)
				return
			}
			if header != "" {
				w.Header().Set("Retry-After", header)
			}
			w.WriteHeader(code)
		})
	}})
	tests := map[string]struct {
		code   int
		header string
		want   time.Duration
	}{
		"a server that is asked too often":        {http.StatusTooManyRequests, "90", 90 * time.Second},
		"a server that is busy":                   {http.StatusServiceUnavailable, "30", 30 * time.Second},
		"a forge whose limit is met":              {http.StatusForbidden, "60", time.Minute},
		"a server that asks for too much":         {http.StatusTooManyRequests, "86400", maxRetryAfter},
		"a server that is busy and says no more":  {http.StatusServiceUnavailable, "", 0},
		"a server that does not know credentials": {http.StatusUnauthorized, "", 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			b := newStatus(t, server.URL, Auth{})
			code, header = test.code, test.header
			_, publish := b.Publish(t.Context(), report(1, fleet))
			look := b.Look(t.Context())
			_, read := b.Read(t.Context())
			for what, err := range map[string]error{"publish": publish, "look": look, "read": read} {
				if got, said := RetryAfter(err); err == nil || got != test.want || said != (test.want > 0) {
					t.Errorf("%s: %v: %s, %t, want %s", what, err, got, said, test.want)
				}
			}
			code = http.StatusOK
			if err := b.Look(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}
