package bootsvc

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ingot/bootsvc/bootfiles"
	"ingot/model/must"
)

func fileFolder(t testing.TB, names ...string) (dir string, change func(*Options)) {
	t.Helper()
	dir = t.TempDir()
	for _, name := range names {
		path := filepath.Join(dir, name)
		must.Do(t, os.MkdirAll(filepath.Dir(path), 0o755))
		if err := os.WriteFile(path, []byte("this is "+name), 0o644); err != nil { //nolint:gosec // everybody may read it
			t.Fatal(err)
		}
	}
	f := bootfiles.New(dir, nil)
	return dir, func(o *Options) { o.Files = f }
}

func TestFilesOverHTTP(t *testing.T) {
	dir, change := fileFolder(t, "switches/leaf1.cfg", "memtest.efi", ".git/config", "ipxe.efi")
	changed := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	must.Do(t, os.Chtimes(filepath.Join(dir, "switches/leaf1.cfg"), changed, changed))
	const leaf = "/files/switches/leaf1.cfg"
	h := newServer(t, newDesk(), func(o *Options) { change(o); o.Loaders = loaders(t, "snponly.efi") }).Handler()
	tag := ask(h, "GET", leaf).Header().Get("Etag")
	if len(tag) < 4 {
		t.Fatalf("no entity tag: %q", tag)
	}
	for title, tc := range map[string]struct {
		method, target string
		header         []string
		code           int
		body           string
		want           map[string]string
	}{
		"a file": {"GET", leaf, nil, 200, "this is switches/leaf1.cfg", map[string]string{
			"Content-Length": "26", "Content-Type": "application/octet-stream", "Last-Modified": "Sun, 01 Mar 2026 12:00:00 GMT", "Accept-Ranges": "bytes",
			"Cache-Control": "no-cache",
		}},
		"its length":                        {"HEAD", leaf, nil, 200, "", map[string]string{"Content-Length": "26", "Etag": tag}},
		"a slash too many":                  {"GET", "//files//switches/leaf1.cfg", nil, 200, "this is switches", nil},
		"a program for UEFI":                {"GET", "/files/memtest.efi", nil, 200, "this is memtest", map[string]string{"Content-Type": "application/efi"}},
		"the rest":                          {"GET", leaf, []string{"Range", "bytes=17-"}, 206, "leaf1.cfg", map[string]string{"Content-Range": "bytes 17-25/26"}},
		"behind the end":                    {"GET", leaf, []string{"Range", "bytes=26-"}, 416, "", nil},
		"one that the client has":           {"GET", leaf, []string{"If-None-Match", tag}, 304, "", nil},
		"one that has not changed since":    {"GET", leaf, []string{"If-Modified-Since", "Sun, 01 Mar 2026 12:00:00 GMT"}, 304, "", nil},
		"the rest of what is the same":      {"GET", leaf, []string{"Range", "bytes=17-", "If-Range", tag}, 206, "leaf1.cfg", nil},
		"the rest of what has changed":      {"GET", leaf, []string{"Range", "bytes=17-", "If-Range", `"0-1a"`}, 200, "this is switches", nil},
		"a file that is not there":          {"GET", "/files/missing", nil, 404, "no boot file of this name", nil},
		"the folder":                        {"GET", "/files/", nil, 404, "nothing here", nil},
		"a folder":                          {"GET", "/files/switches/", nil, 404, "no boot file", nil},
		"a hidden file":                     {"GET", "/files/.git/config", nil, 404, "no boot file", nil},
		"a path that climbs":                {"GET", "/files/../files/memtest.efi", nil, 404, "no boot file", nil},
		"a file is not a loader":            {"GET", "/loader/ipxe.efi", nil, 404, "no boot loader", nil},
		"nor is a loader a file":            {"GET", "/files/snponly.efi", nil, 404, "no boot file", nil},
		"files are only read":               {"PUT", leaf, nil, 405, "only GET and HEAD", nil},
		"a file is under its own path only": {"GET", "/memtest.efi", nil, 404, "nothing here", nil},
	} {
		t.Run(title, func(t *testing.T) {
			w := ask(h, tc.method, tc.target, tc.header...)
			if w.Code != tc.code || !strings.Contains(w.Body.String(), tc.body) || tc.body == "" && tc.code < 400 && w.Body.Len() > 0 {
				t.Errorf("%d %q", w.Code, w.Body)
			}
			for name, want := range tc.want {
				if got := w.Header().Get(name); got != want {
					t.Errorf("%s: got %q, want %q", name, got, want)
				}
			}
		})
	}
	must.Do(t, os.WriteFile(filepath.Join(dir, "switches/leaf1.cfg"), []byte("THIS IS switches/leaf1.cfg"), 0o600))
	if w := ask(h, "GET", leaf, "If-None-Match", tag); w.Code != http.StatusOK || !strings.HasPrefix(w.Body.String(), "THIS") {
		t.Errorf("once it has changed: %d %q", w.Code, w.Body)
	}
	if w := ask(newServer(t, newDesk(), nil).Handler(), "GET", leaf); w.Code != http.StatusNotFound {
		t.Errorf("without a folder: %d", w.Code)
	}
}
