package gitsource

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"ingot/gitsource/gitserver"
	"ingot/model"
	"ingot/model/must"
)

// servedRepo is a repository and the URL at which a test reaches it.
type servedRepo struct {
	*gitserver.Repo
	url string
}

func (r *servedRepo) URL() string { return r.url }

func newRepo(t testing.TB) *servedRepo {
	t.Helper()
	r := newGitRepo(t)
	s := must.Get(r.ServeHTTP(gitserver.HTTPOptions{}))(t)
	t.Cleanup(s.Close)
	r.url = s.URL
	return r
}

func newGitRepo(t testing.TB) *servedRepo {
	t.Helper()
	r := must.Get(gitserver.New(t.TempDir(), "fleet"))(t)
	return &servedRepo{r, r.URL()}
}

func claimYAML(name, image string) string {
	return fmt.Sprintf(`apiVersion: metal.ironcore.dev/v1alpha1
kind: ServerClaim
metadata:
  name: %s
  namespace: default
  annotations: {note: "%s"}
spec:
  power: "On"
  image: %s
`, name, strings.Repeat("x", 200), image)
}

// decode is a small decoder of several documents in a file: claims and BMCs. A
// document with a field "broken" is an error of its object, one that is no YAML an
// error without an object.
func decode(file string, data []byte) ([]model.Object, []model.Problem) {
	var objects []model.Object
	var problems []model.Problem
	line := 1
	for doc := range strings.SplitSeq(string(data), "---\n") {
		o, p := decodeOne(file, line, doc)
		if o != nil {
			objects = append(objects, o)
		}
		problems = append(problems, p...)
		line += strings.Count(doc, "\n") + 1
	}
	return objects, problems
}

func decodeOne(file string, line int, doc string) (model.Object, []model.Problem) {
	var in struct {
		Kind     model.Kind
		Metadata struct {
			Name, Namespace string
			Annotations     map[string]string
		}
		Spec struct{ Image, Broken string }
	}
	fail := func(object, text string) (model.Object, []model.Problem) {
		return nil, []model.Problem{{Severity: model.SeverityError, File: file, Line: line, Object: object, Message: text}}
	}
	if err := yaml.Unmarshal([]byte(doc), &in); err != nil {
		return fail("", "syntax error")
	}
	var root yaml.Node
	if err := yaml.Unmarshal([]byte(doc), &root); err != nil || root.IsZero() {
		return nil, nil
	}
	if in.Kind == "" {
		return fail("", "no kind")
	}
	meta := model.Meta{Name: in.Metadata.Name, Source: fmt.Sprintf("%s:%d", file, line)}
	if in.Kind == model.KindBMC {
		return &model.BMC{Meta: meta}, nil
	}
	meta.Namespace, meta.Annotations = model.DefaultNamespace, in.Metadata.Annotations
	claim := &model.ServerClaim{Meta: meta, Spec: model.ServerClaimSpec{Image: in.Spec.Image}}
	if in.Spec.Broken != "" {
		return fail(claim.Identity().String(), "unknown field spec.broken")
	}
	return claim, nil
}

func validate(_, after model.Object) []model.Problem {
	if c, ok := after.(*model.ServerClaim); ok && c.Spec.Image == "immutable" {
		return []model.Problem{{
			Severity: model.SeverityError, Object: c.Identity().String(), Field: "spec.image", Message: "may not change",
		}}
	}
	return nil
}

// crossCheck lets only one claim have the image "shared".
func crossCheck(d *model.Desired) []model.Problem {
	var problems []model.Problem
	for _, c := range d.Claims {
		if c.Spec.Image == "shared" {
			file, _, _ := strings.Cut(c.Source, ":")
			problems = append(problems, model.Problem{
				Severity: model.SeverityError, File: file, Object: c.Identity().String(), Message: "shares its image",
			})
		}
	}
	if len(problems) < 2 {
		return nil
	}
	return problems
}

// clock stands still until it is moved.
type clock struct{ now time.Time }

func (c *clock) Now() time.Time { return c.now }

func newClock() *clock { return &clock{time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)} }

// patience is how long one look may take: with the race detector, and all else that is
// tested meanwhile, a thousand commits take half a minute.
const patience = 4 * time.Minute

func testOptions(t *testing.T, url string) Options {
	t.Helper()
	return Options{
		URL: url, Dir: filepath.Join(t.TempDir(), "git"), Clock: newClock().Now, Timeout: patience,
		Checks: Checks{Decode: decode, Validate: validate, CrossCheck: crossCheck},
	}
}

func newSource(t *testing.T, opts Options) *Source {
	t.Helper()
	return begun(t, opts, Beginning{})
}

func begun(t *testing.T, opts Options, b Beginning) *Source {
	t.Helper()
	s := notBegun(t, opts)
	s.Begin(b)
	return s
}

func notBegun(t *testing.T, opts Options) *Source {
	t.Helper()
	s := must.Get(New(opts))(t)
	t.Cleanup(s.close)
	return s
}

// records are what the daemon has written down once it acted upon a revision: each
// claim that it knows is bound.
func records(d *model.Desired) Beginning {
	if d == nil {
		return Beginning{}
	}
	b := Beginning{Applied: d.Applied(), Tips: d.Tips, Absent: d.Absent, AbsentToken: d.AbsentToken, Owners: make(map[model.Identity]string)}
	for name, c := range d.Claims {
		b.Bound = append(b.Bound, name.Identity())
		b.Owners[name.Identity()] = c.Tenant
	}
	return b
}

func mustSync(t *testing.T, s *Source) *model.Desired {
	t.Helper()
	must.Do(t, s.Sync(t.Context()))
	return s.Desired()
}

// ok fails the test on an error and else passes a value through.
func ok[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func writeFile(t *testing.T, content []byte) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "file")
	must.Do(t, os.WriteFile(name, content, 0o600))
	return name
}

func serveHTTP(t *testing.T, r *servedRepo, opts gitserver.HTTPOptions) *gitserver.HTTPServer {
	t.Helper()
	s := must.Get(r.ServeHTTP(opts))(t)
	t.Cleanup(s.Close)
	return s
}

func claims(d *model.Desired) map[string]string {
	out := make(map[string]string)
	for name, c := range d.Claims {
		out[strings.TrimPrefix(string(name), "default/")] = c.Spec.Image
	}
	return out
}

// messages are the problems as "file: message".
func messages(d *model.Desired) string {
	var b bytes.Buffer
	for _, p := range d.Problems {
		fmt.Fprintf(&b, "%s: %s\n", p.File, p.Message)
	}
	return b.String()
}

// long reports whether "make test-long" runs the test: it sets HISTORIES.
func long() bool { return os.Getenv("HISTORIES") != "" }

// onlyLong skips a test that takes too long for "make test".
func onlyLong(t *testing.T) {
	t.Helper()
	if !long() {
		t.Skip("takes long: set HISTORIES to run it")
	}
}

func sample(all, few int) int {
	if !long() {
		return few
	}
	return all
}

func git(b testing.TB, stdin io.Reader, dir string, args ...string) {
	cmd := exec.Command("git", append([]string{"-C", dir}, args...)...)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_TERMINAL_PROMPT=0")
	cmd.Stdin = stdin
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("git %v: %v: %s", args, err, out)
	}
}

func must2[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
