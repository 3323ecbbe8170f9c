package firstrack

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ingot/model/must"
)

func TestCommandsAreThoseOfThePage(t *testing.T) {
	page := "# Title\n\nText.\n\n```sh\nmake install\n```\n\n    not --this\n\n```yaml\nkey: value\n```\n\n1. Write:\n\n```sh\ncat >file <<'EOF'\na\nb\nEOF\n```\n"
	got := must.Get(Commands(page))(t)
	if diff := cmp.Diff([]string{"make install", "cat >file <<'EOF'\na\nb\nEOF"}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestABlockIsOneCommand(t *testing.T) {
	for block, want := range map[string]string{
		"git add .\ngit commit":          "there are several lines",
		"git add . && git commit":        "more than one command in a line",
		"cat >f <<EOF\na\nEOF\nrm f":     "there is something behind the document",
		"make install\n```\n```sh\nhalf": "a block is not closed",
	} {
		page := "```sh\n" + block
		if !strings.HasSuffix(block, "half") {
			page += "\n```\n"
		}
		if _, err := Commands(page); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", block, err, want)
		}
	}
	if _, err := Commands("nothing"); err == nil {
		t.Error("a page without a command is taken")
	}
}

// The page is for people who type: in a minute, and no more than ten commands.
func TestThePageIsShort(t *testing.T) {
	page := must.Get(os.ReadFile("../../../docs/first-rack.md"))(t)
	commands := must.Get(Commands(string(page)))(t)
	var s Session
	for _, c := range commands {
		s = append(s, Typed{Command: c})
	}
	if len(s) > 10 || s.Typing() > time.Minute {
		t.Errorf("%d commands, of which typing takes %s; want at most 10 and a minute", len(s), s.Typing())
	}
}
