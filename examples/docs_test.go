package examples

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"ingot/bootsvc/claimcheck"
	"ingot/bootsvc/ignition"
	"ingot/cmd/daemon/config"
	"ingot/model"
	"ingot/model/must"
	"ingot/model/testtool"
)

// pages are the README and all pages of docs.
func pages(t *testing.T) []string {
	t.Helper()
	all := []string{"../README.md"}
	for _, pattern := range []string{"../docs/*.md", "../docs/*/*.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, found...)
	}
	if len(all) < 30 {
		t.Fatalf("only %v were found", all)
	}
	return all
}

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	noSlug  = regexp.MustCompile(`[^\p{L}\p{N}_\- ]`)
	keyText = regexp.MustCompile("`([a-z]+[A-Za-z]*(?:\\.[a-z]+[A-Za-z]*)+)(?::[^`]*)?`")
)

func TestLinksOfTheDocumentationLeadSomewhere(t *testing.T) {
	for _, page := range pages(t) {
		for _, m := range link.FindAllStringSubmatch(read(t, page), -1) {
			path, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(path, "://") {
				continue
			}
			target := page
			if path != "" {
				target = filepath.Join(filepath.Dir(page), path)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s: %s leads nowhere", page, m[1])
			} else if anchor != "" && !slices.Contains(anchors(t, target), anchor) {
				t.Errorf("%s: %s: %s has no such heading", page, m[1], target)
			}
		}
	}
}

// anchors are the headings of a page, as forges name them in links.
func anchors(t *testing.T, page string) (all []string) {
	for _, m := range heading.FindAllStringSubmatch(read(t, page), -1) {
		all = append(all, strings.ReplaceAll(noSlug.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-"))
	}
	return all
}

// TestKeysThatTheDocumentationNamesExist: what looks like a key of the configuration is one, or a
// part of it that has keys.
func TestKeysThatTheDocumentationNamesExist(t *testing.T) {
	known := make(map[string]bool)
	for _, key := range keys("", reflect.TypeFor[config.Options]()) {
		for ; key != "" && !known[key]; key, _, _ = cutLast(key) {
			known[key] = true
		}
	}
	seen := 0
	for _, page := range pages(t) {
		for _, m := range keyText.FindAllStringSubmatch(read(t, page), -1) {
			section, rest, _ := strings.Cut(m[1], ".")
			if !known[section] || slices.Contains(fileNames, rest[strings.LastIndexByte(rest, '.')+1:]) || slices.Contains(otherNames, m[1]) {
				continue
			}
			seen++
			if !known[m[1]] {
				t.Errorf("%s: the configuration has no key %s", page, m[1])
			}
		}
	}
	if seen < 100 {
		t.Fatalf("only %d keys were found in the documentation", seen)
	}
}

// fileNames are ends of file names, which look like keys: status.go.
var fileNames = []string{"md", "go", "yaml", "feature", "conf", "sh", "db", "key", "efi", "service"}

// otherNames look like keys of the configuration and are fields of objects.
var otherNames = []string{
	"metadata.name", "metadata.namespace", "metadata.labels", "metadata.annotations",
	"status.phase", "status.image", "status.cleanup", "status.install", "status.taints", "status.otherSystems", "status.bootOrder",
}

func cutLast(key string) (string, string, bool) {
	i := strings.LastIndexByte(key, '.')
	if i < 0 {
		return "", key, false
	}
	return key[:i], key[i+1:], true
}

func read(t *testing.T, file string) string {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// indented matches a line of a code block.
var indented = regexp.MustCompile(`(?m)^    `)

func TestDocumentedRadvdConfigurationIsValid(t *testing.T) {
	_, block, _ := strings.Cut(read(t, "../docs/networks.md"), "`/etc/radvd.conf`")
	_, block, _ = strings.Cut(block, "\n\n")
	block, _, _ = strings.Cut(block, "\n\n")
	file := filepath.Join(t.TempDir(), "radvd.conf")
	must.Do(t, os.WriteFile(file, []byte(indented.ReplaceAllString(block, "")+"\n"), 0o600))
	if out, err := exec.CommandContext(t.Context(), testtool.Path(t, "radvd"), "--configtest", "-m", "stderr", "-C", file).CombinedOutput(); err != nil {
		t.Errorf("%v: %s\n%s", err, out, block)
	}
	for _, flag := range []string{"AdvManagedFlag on", "AdvOtherConfigFlag on"} {
		if !strings.Contains(block, flag) {
			t.Errorf("no %q in:\n%s", flag, block)
		}
	}
}

// yamlBlock matches a fenced block of YAML.
var yamlBlock = regexp.MustCompile("(?s)```yaml\n(.*?)```")

// TestDocumentedClaimConfiguresServer checks the manifests of a page with the rules of "ingot validate".
func TestDocumentedClaimConfiguresServer(t *testing.T) {
	const page = "../docs/use-a-server.md"
	var claim *model.ServerClaim
	var configured []string
	for _, block := range yamlBlock.FindAllStringSubmatch(read(t, page), -1) {
		if !strings.Contains(block[1], "kind:") {
			continue // a part of the claim
		}
		objects, problems := model.Decode(page, []byte(block[1]), model.DecodeOptions{AllowPlaintextSecrets: true})
		desired := model.NewDesired()
		for _, o := range objects {
			desired.Add(o)
			if c, is := o.(*model.ServerClaim); is {
				claim = c
			} else {
				claim.Spec.IgnitionSecretRef = &model.LocalRef{Name: o.Metadata().Name}
				configured = slices.AppendSeq(configured, maps.Keys(o.(*model.Secret).Values))
			}
		}
		desired.Add(claim)
		checker := claimcheck.Checker{Compiler: must.Get(ignition.New(ignition.Options{}))(t)}
		for _, p := range slices.Concat(problems, checker.Check(desired)) {
			t.Error(p.String())
		}
	}
	if !slices.Equal(configured, []string{"user-data", "ignition"}) {
		t.Errorf("the page configures a server by %q, want user-data and ignition", configured)
	}
}
