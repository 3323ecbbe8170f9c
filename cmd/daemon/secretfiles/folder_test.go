package secretfiles

import (
	"cmp"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ingot/model"
	"ingot/model/must"
)

// world is a folder of secrets, and a Git that asks for nothing but what tests say.
type world struct {
	*testing.T
	Folder
	git *model.Desired
}

func newWorld(t *testing.T) *world {
	dir := filepath.Join(t.TempDir(), "secrets")
	must.Do(t, os.Mkdir(dir, 0o700))
	w := &world{T: t, git: model.NewDesired()}
	w.Folder = Folder{Dir: dir, Log: slog.New(slog.DiscardHandler), Git: func() *model.Desired { return w.git }}
	return w
}

// write writes files, by path, and takes away those without content.
func (w *world) write(files map[string]string) {
	w.Helper()
	for path, content := range files {
		file := filepath.Join(w.Dir, path)
		err := os.MkdirAll(filepath.Dir(file), 0o700)
		if err == nil && content == "" {
			err = os.RemoveAll(file)
		} else if err == nil {
			err = os.WriteFile(file, []byte(content), 0o600)
		}
		if err != nil {
			w.Fatal(err)
		}
	}
}

// manifests has Git ask for something.
func (w *world) manifests(text string) {
	w.Helper()
	objects, problems := model.Decode("git.yaml", []byte(text), model.DecodeOptions{AllowPlaintextSecrets: true})
	if model.HasErrors(problems) {
		w.Fatal(problems)
	}
	w.git = model.NewDesired()
	for _, o := range objects {
		w.git.Add(o)
	}
}

// see is what is desired, a line for each value and problem.
func (w *world) see() string {
	d := w.Desired()
	var lines []string
	note := func(o model.Object, values map[string]model.Sensitive) {
		for _, key := range slices.Sorted(maps.Keys(values)) {
			lines = append(lines, fmt.Sprintf("%s %s=%q", o.Identity(), key, values[key].Reveal()))
		}
	}
	for _, s := range d.BMCSecrets {
		note(s, s.Values)
	}
	for _, s := range d.Secrets {
		note(s, s.Values)
	}
	slices.Sort(lines)
	for _, p := range d.Problems {
		lines = append(lines, strings.ReplaceAll(p.String(), w.Dir, "DIR"))
	}
	return strings.Join(lines, "\n")
}

func (w *world) settle() {
	w.look(false)
	w.look(false)
}

const usesRack7 = "apiVersion: metal.ironcore.dev/v1alpha1\nkind: BMC\nmetadata: {name: b}\n" +
	"spec: {access: {ip: 192.0.2.1}, bmcSecretRef: {name: rack7}, protocol: {name: Redfish, port: 443, scheme: https}}\n"

const rack7 = `BMCSecret rack7 password="p"
BMCSecret rack7 username="u"`

func TestLayouts(t *testing.T) {
	for name, tt := range map[string]struct {
		files map[string]string
		link  map[string]string // from a path to another
		want  string
	}{
		"a BMCSecret":              {files: map[string]string{"rack7/username": "u", "rack7/password": "p\n"}, want: rack7},
		"one in a flat folder":     {files: map[string]string{"rack7_username": "u\r\n", "rack7_password": "p"}, want: rack7},
		"a Secret is as it is":     {files: map[string]string{"default/web/user-data": "#!\n"}, want: `Secret default/web user-data="#!\n"`},
		"one in a flat folder too": {files: map[string]string{"default_web_a_b": "x"}, want: `Secret default/web a_b="x"`},
		"a mount of Kubernetes": {
			files: map[string]string{"rack7/..2026/username": "u", "rack7/..2026/password": "p"},
			link:  map[string]string{"rack7/..data": "..2026", "rack7/username": "..data/username", "rack7/password": "..data/password"},
			want:  rack7,
		},
		"a flat mount of Kubernetes": {
			files: map[string]string{"..2026/rack7_username": "u", "..2026/rack7_password": "p"},
			link:  map[string]string{"..data": "..2026", "rack7_username": "..data/rack7_username", "rack7_password": "..data/rack7_password"},
			want:  rack7,
		},
		"other credentials of systemd": {files: map[string]string{"git-token": "t", "rack7_username": "u", "rack7_password": "p"}, want: rack7},
		"a name of both":               {files: map[string]string{"rack7/username": "u", "rack7/password": "p", "rack7/web/ignition": "i"}, want: rack7 + "\n" + `Secret rack7/web ignition="i"`},
		"without a password": {
			files: map[string]string{"rack7/username": "u"}, want: "DIR/rack7: BMCSecret rack7: has no password",
		},
		"in both layouts": {
			files: map[string]string{"rack7/username": "u", "rack7/password": "p", "rack7_password": "q"},
			want:  "DIR/rack7: BMCSecret rack7: stands there twice, as rack7 and rack7_…: take one of them away",
		},
		"a name that is none": {
			files: map[string]string{"Rack7/username": "u", "Rack7/password": "p"},
			want:  "DIR/Rack7: BMCSecret Rack7: the name of the object: want at most 253 lower-case letters, digits, \"-\" and \".\", with a letter or digit at either end of each part",
		},
		"a key that is none": {
			files: map[string]string{"default/web/user-data": "x", "default/web/user-data~": "x"},
			want: `Secret default/web user-data="x"` + "\n" +
				`DIR/default/web/user-data~: warning: is left out: the name of a key has letters, digits, "-", "_" and "."`,
		},
		"a folder too deep": {
			files: map[string]string{"a/b/c/d": "x"},
			want: "DIR/a/b: Secret a/b: has no keys\n" +
				"DIR/a/b/c: warning: is a folder where a key was expected: the layout is <namespace>/<name>/<key>",
		},
		"a value too large": {
			files: map[string]string{"default/web/a": strings.Repeat("x", maxValue+1)},
			want:  "DIR/default/web: Secret default/web: key a cannot be read: it has more than 1048576 bytes",
		},
		"a link that leads nowhere": {
			link: map[string]string{"rack7": "nowhere"}, want: "DIR/rack7: warning: cannot be read: no such file or directory",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.write(tt.files)
			for at, to := range tt.link {
				must.Do(t, os.Symlink(to, filepath.Join(w.Dir, at)))
			}
			w.Open()
			if got := w.see(); got != tt.want {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
		})
	}
}

// What changes is taken over, and nothing of what is in use is lost by a folder that is
// missing, empty or half filled.
func TestChanges(t *testing.T) {
	w := newWorld(t)
	w.manifests(usesRack7)
	w.write(map[string]string{"rack7/username": "u", "rack7/password": "p", "default/unused/a": "x"})
	w.Open()
	for _, step := range []struct {
		what  string
		files map[string]string
		do    func() error
		want  string
	}{
		{what: "nothing", want: rack7 + "\n" + `Secret default/unused a="x"`},
		{what: "one that nothing names goes", files: map[string]string{"default/unused": ""}, want: rack7},
		{
			what: "half of it", files: map[string]string{"rack7/password": ""},
			want: rack7 + "\nDIR/rack7: BMCSecret rack7: has no password; what it was before stays in use",
		},
		{
			what: "another password", files: map[string]string{"rack7/password": "q\n"},
			want: strings.Replace(rack7, `"p"`, `"q"`, 1),
		},
		{
			what: "an empty folder", files: map[string]string{"rack7": ""},
			want: strings.Replace(rack7, `"p"`, `"q"`, 1) + "\nDIR/rack7: warning: BMCSecret rack7: is gone, and what it was stays in use " +
				"until Ingot restarts: put it back, or take out what names it",
		},
		{
			what: "no folder", do: func() error { return os.RemoveAll(w.Dir) },
			want: strings.Replace(rack7, `"p"`, `"q"`, 1) + "\nDIR: secretFiles cannot be read: no such file or directory; what was read of it " +
				"before stays in use\nDIR/rack7: warning: BMCSecret rack7: is gone, and what it was stays in use until Ingot restarts: put it " +
				"back, or take out what names it",
		},
		{what: "all of it again", files: map[string]string{"rack7/username": "u", "rack7/password": "p"}, want: rack7},
	} {
		w.write(step.files)
		if step.do != nil {
			must.Do(t, step.do())
		}
		w.settle()
		if got := w.see(); got != step.want {
			t.Errorf("%s: got\n%s\nwant\n%s", step.what, got, step.want)
		}
		if first, second := w.Desired(), w.Desired(); first != second || w.look(false) {
			t.Errorf("%s: is another each time", step.what)
		}
	}
}

// What is seen once only may be half of a change.
func TestAChangeIsTakenOverOnceItIsSeenTwice(t *testing.T) {
	w := newWorld(t)
	w.write(map[string]string{"rack7/username": "u", "rack7/password": "p"})
	w.Open()
	w.write(map[string]string{"rack7/username": "v"})
	if w.look(false) || w.see() != rack7 {
		t.Errorf("taken over at once: %s", w.see())
	}
	w.write(map[string]string{"rack7/password": "q"})
	if w.look(false) || w.see() != rack7 {
		t.Errorf("taken over while it changes: %s", w.see())
	}
	if !w.look(false) || w.see() != strings.NewReplacer(`"u"`, `"v"`, `"p"`, `"q"`).Replace(rack7) {
		t.Errorf("not taken over: %s", w.see())
	}
}

// Git and the folder together: what stands in both, and what stands in neither.
func TestGitAndFolder(t *testing.T) {
	secret := "---\napiVersion: metal.ironcore.dev/v1alpha1\nkind: BMCSecret\nmetadata: {name: rack7}\nstringData: {username: a, password: b}\n"
	for name, tt := range map[string]struct {
		git   string
		files map[string]string
		want  string
	}{
		"in both": {
			git: usesRack7 + secret, files: map[string]string{"rack7/username": "u", "rack7/password": "p"},
			want: "BMCSecret rack7 password=\"b\"\nBMCSecret rack7 username=\"a\"\n" +
				"DIR/rack7: BMCSecret rack7: is also defined in Git, which counts: take it out of one of them",
		},
		"in neither": {
			git: usesRack7,
			want: "git.yaml:4:54: warning: BMC b: spec.bmcSecretRef.name: BMCSecret rack7 is neither in Git nor in secretFiles: commit it " +
				"encrypted, or put its keys into DIR/rack7",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.manifests(tt.git)
			w.write(tt.files)
			w.Open()
			if got := w.see(); got != tt.want {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
		})
	}
	w := newWorld(t)
	w.write(map[string]string{"rack7/username": "u", "rack7/password": "p"})
	w.Open()
	w.git.Quarantined[model.Identity{Kind: model.KindBMCSecret, Name: "rack7"}] = []string{""}
	if got := w.see(); !strings.Contains(got, "is also defined in Git") || strings.Contains(got, `"p"`) {
		t.Errorf("one that Git has and cannot be read: got %s", got)
	}
}

// Files that everybody can read are used, with a warning, if everybody gets to them.
func TestPublicFiles(t *testing.T) {
	for name, tt := range map[string]struct {
		dir, file mode
		want      bool
	}{
		"nobody else":       {dir: 0o700, file: 0o600},
		"behind a folder":   {dir: 0o700, file: 0o644},
		"read by anybody":   {dir: 0o755, file: 0o644, want: true},
		"a group's":         {dir: 0o755, file: 0o640},
		"written by them":   {dir: 0o711, file: 0o602, want: true},
		"a folder of all's": {dir: 0o711, file: 0o600},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.write(map[string]string{"rack7_username": "u", "rack7_password": "p"})
			file := filepath.Join(w.Dir, "rack7_password")
			must.Do(t, cmp.Or(os.Chmod(file, tt.file), os.Chmod(w.Dir, tt.dir)))
			w.Open()
			want := rack7
			if tt.want {
				want += "\nDIR/rack7_password: warning: can be read or changed by anybody on this machine, one of 1 file of that kind: chmod o-rwx DIR"
			}
			if got := w.see(); got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

type mode = os.FileMode

// A secret outside Git is the tenant's who may define it.
func TestOwners(t *testing.T) {
	tenants := model.Tenants{
		{Path: "ops", Kinds: []model.Kind{"*"}, Namespaces: []string{"*"}}, {Path: "teams/a"}, {Path: "teams/b"},
	}
	for id, want := range map[model.Identity]string{
		{Kind: model.KindBMCSecret, Name: "rack7"}:                 "ops",
		{Kind: model.KindSecret, Namespace: "a", Name: "ignition"}: "teams/a",
		{Kind: model.KindSecret, Namespace: "c", Name: "ignition"}: "ops",
	} {
		if got := tenants.SecretOwner(id); got != want {
			t.Errorf("%s: got %q, want %q", id, got, want)
		}
	}
}
