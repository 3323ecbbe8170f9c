package config

import (
	"strings"
	"testing"
)

func TestRemovedKeysAreRefused(t *testing.T) {
	for path, want := range removed {
		t.Run(path, func(t *testing.T) {
			_, got := load(t, valueAt(strings.Split(path, ".")))
			if !strings.HasSuffix(got, ": "+strings.ReplaceAll(path, "[]", "[0]")+": "+want) {
				t.Errorf("in the file\ngot  %s\nwant %s", got, want)
			}
			if strings.Contains(path, "[]") {
				return // entries of lists have no variables
			}
			if _, got := load(t, repository, variableOf(path)+"=1"); got != variableOf(path)+": "+want {
				t.Errorf("in the environment\ngot  %s\nwant %s", got, want)
			}
		})
	}
}

// valueAt returns a file that has only the key at path.
func valueAt(path []string) string {
	if len(path) == 0 {
		return "1"
	}
	key, inList := strings.CutSuffix(path[0], "[]")
	value := valueAt(path[1:])
	if inList {
		value = "[" + value + "]"
	}
	return "{" + key + ": " + value + "}"
}
