package smallfile

import (
	"os"
	"path/filepath"
	"testing"

	"ingot/model/must"
)

func TestAFileThatIsTooLargeIsNotRead(t *testing.T) {
	dir := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(dir, name)
		must.Do(t, os.WriteFile(path, []byte(content), 0o600))
		return path
	}
	for title, tc := range map[string]struct {
		name, want, err string
	}{
		"a file of as many bytes as are allowed":         {name: file("most", "1234"), want: "1234"},
		"an empty file":                                  {name: file("empty", "")},
		"a file of one byte more":                        {name: file("more", "12345"), err: "it is larger than 4 bytes; is it the right file?"},
		"a file without an end is not read to it":        {name: "/dev/zero", err: "it is larger than 4 bytes; is it the right file?"},
		"a file that is not there, for who names it too": {name: filepath.Join(dir, "none"), err: "no such file or directory"},
		"a folder": {name: dir, err: "is a directory"},
	} {
		t.Run(title, func(t *testing.T) {
			got, err := Read(tc.name, 4)
			says := ""
			if err != nil {
				says = Cause(err).Error()
			}
			if string(got) != tc.want || says != tc.err {
				t.Errorf("got %q, %q; want %q, %q", got, says, tc.want, tc.err)
			}
		})
	}
}

func TestAFileIsReplacedAsAWhole(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "new")
	name := filepath.Join(folder, "state")
	for _, content := range []string{"longer than the next", "next"} {
		must.Do(t, Replace(name, []byte(content)))
		if got, err := Read(name, 100); err != nil || string(got) != content {
			t.Errorf("got %q, %v; want %q", got, err, content)
		}
	}
	left, err := os.ReadDir(folder)
	info, statErr := os.Stat(name)
	if err != nil || statErr != nil || len(left) != 1 || info.Mode().Perm() != 0o600 {
		t.Errorf("%v are there (%v), of mode %v (%v); want one file for its owner", left, err, info, statErr)
	}
	if err := Replace(filepath.Join(name, "below"), nil); err == nil {
		t.Error("a file is replaced below another file")
	}
	if err := Replace(folder, nil); err == nil {
		t.Error("a folder is replaced")
	}
	if left, err := os.ReadDir(filepath.Dir(folder)); err != nil || len(left) != 1 {
		t.Errorf("%v are there (%v) after a failure, want the folder alone", left, err)
	}
}
