package features

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var laws = []string{
	"A removal is a commit", "Shown before done", "The status branch is the record", "Damage stays local",
	"Servers boot only their own images", "One Ingot acts", "Nothing counts as wiped that was not",
	"A tenant's file stays a tenant's file", "Ingot always says why",
}

var (
	lawHeading = regexp.MustCompile(`^\d\. (.*)\n`)
	evidence   = regexp.MustCompile("Kept by `[^`]+`(?:.|\n)*?\\.\\sProved by `features/\\w+\\.feature`(?:.|\n)*?\\.\n")
	quotedPath = regexp.MustCompile("`([^`]*)`")
)

// TestLawsNameTheirEvidence: the documentation has each law as a heading, with the code that keeps it and
// the features that prove it.
func TestLawsNameTheirEvidence(t *testing.T) {
	page, err := os.ReadFile("../docs/laws.md")
	if err != nil {
		t.Fatal(err)
	}
	var headings []string
	for _, section := range strings.Split(string(page)+"\n", "\n## ")[1:] {
		heading, named := lawHeading.FindStringSubmatch(section), evidence.FindString(section)
		if heading == nil || named == "" {
			t.Errorf("no number, or no code and features: %.80s", section)
			continue
		}
		headings = append(headings, heading[1])
		for _, path := range quotedPath.FindAllStringSubmatch(named, -1) {
			if _, err := os.Stat(filepath.Join("..", path[1])); err != nil {
				t.Errorf("%s: %v", heading[1], err)
			}
		}
	}
	if !slices.Equal(headings, laws) {
		t.Errorf("the headings are %q, want %q", headings, laws)
	}
}
