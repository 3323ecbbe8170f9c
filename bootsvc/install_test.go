package bootsvc

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"ingot/bootsvc/ignition"
	"ingot/model"
	"ingot/model/must"
)

// shelf is a DiskImages with one image.
type shelf struct {
	dir    string
	digest string
	err    error // what Open returns
}

func newShelf(t testing.TB, digest string, table, chunks []byte) *shelf {
	t.Helper()
	s := &shelf{dir: t.TempDir(), digest: digest}
	for name, raw := range map[string][]byte{"table": table, "chunks": chunks} {
		must.Do(t, os.WriteFile(filepath.Join(s.dir, name), raw, 0o600))
	}
	return s
}

func (s *shelf) Open(_ context.Context, image *model.DiskImage) (*DiskChunks, error) {
	switch {
	case s.err != nil:
		return nil, s.err
	case image.Digest != s.digest:
		return nil, errors.New("another image")
	}
	table, err := os.Open(filepath.Join(s.dir, "table"))
	if err != nil {
		return nil, err
	}
	chunks, err := os.Open(filepath.Join(s.dir, "chunks"))
	return &DiskChunks{Table: table, Chunks: chunks, TableDigest: "sha256:table"}, err
}

// install is a server that a disk image is written to.
type install struct {
	*desk
	*shelf
	service *Server
	ticket  *model.Ticket
	now     time.Time
	chunks  []byte
}

func newInstall(t testing.TB) *install {
	t.Helper()
	in := &install{desk: newDesk(), now: armed.Add(time.Second), ticket: scriptTicket(), chunks: pattern(9<<20, 3)}
	in.ticket.Disk = &model.DiskImage{Ref: "https://images.example/os.raw", Digest: "sha512:1"}
	in.shelf = newShelf(t, in.ticket.Disk.Digest, []byte("the table"), in.chunks)
	in.service = newServer(t, in.desk, func(o *Options) {
		o.DiskImages = in.shelf
		o.Clock = func() time.Time { return in.now }
	})
	compiler := must.Get(ignition.New(ignition.Options{}))(t)
	payload := must.Get(compiler.ForDisk(ignition.DiskBoot{
		ClaimBoot:   ignition.ClaimBoot{UUID: uuid1, BootStateURL: "http://registry.example/r/t/bootstate", InstanceID: in.ticket.ID, Hostname: "web"},
		RegistryURL: "http://registry.example", Token: model.NewSensitive(testToken), Image: *in.ticket.Disk,
	}))(t)
	in.arm(in.ticket, payload.Reveal())
	return in
}

func (in *install) reported(d model.DiskInstall) {
	o := in.holders[uuid1]
	p := model.Progress{Ticket: in.ticket.ID}
	if o.Progress != nil {
		p = *o.Progress
	}
	p.Install = &d
	in.holders[uuid1] = &model.TicketHolder{Server: o.Server, Ticket: in.ticket, Progress: &p}
}

func (in *install) end() {
	ended := *in.ticket
	ended.Ended = model.TicketSpent
	in.holders[uuid1] = &model.TicketHolder{Server: ended.Server, Ticket: &ended, Progress: in.holders[uuid1].Progress}
}

func (in *install) get(path string, header ...string) (code int, body string) {
	w := ask(in.service.Handler(), http.MethodGet, path, header...)
	return w.Code, w.Body.String()
}

func (in *install) path(boot int, part string) string {
	return "/install/" + uuid1 + "/" + key.Config(in.ticket, boot).Reveal() + "/" + part
}

func TestAnInstallIsServed(t *testing.T) {
	in := newInstall(t)
	_, script := in.get("/ipxe/" + uuid1)
	if !strings.Contains(script, "/ignition/"+uuid1+"/"+tokenOf(in.ticket).Reveal()) {
		t.Errorf("the script boots no probe:\n%s", script)
	}
	_, probe := in.get("/ignition/" + uuid1 + "/" + tokenOf(in.ticket).Reveal())
	if want := "--install=http://boot.example:8082" + in.path(0, "document"); !strings.Contains(probe, want) {
		t.Errorf("the probe's Ignition has no %s:\n%s", want, probe)
	}
	in.now = in.now.Add(time.Hour) // writing takes its time
	code, text := in.get(in.path(0, "document"))
	var document model.InstallDocument
	if err := json.Unmarshal([]byte(text), &document); err != nil || code != http.StatusOK {
		t.Fatal(code, text, err)
	}
	if document.Install != in.ticket.ID || document.TableDigest != "sha256:table" || document.Seed == nil || document.Chunks != "chunks" {
		t.Errorf("the document is %+v", document)
	}
	if code, table := in.get(in.path(0, document.Table)); code != http.StatusOK || table != "the table" {
		t.Errorf("the table: %d %q", code, table)
	}
	if code, all := in.get(in.path(0, document.Chunks)); code != http.StatusOK || !bytes.Equal([]byte(all), in.chunks) {
		t.Errorf("the chunks: %d, %d bytes", code, len(all))
	}
	code, some := in.get(in.path(0, document.Chunks), "Range", "bytes=4194304-8388607", "If-Range", `"sha256:table"`)
	if code != http.StatusPartialContent || !bytes.Equal([]byte(some), in.chunks[4<<20:8<<20]) {
		t.Errorf("the second chunk: %d, %d bytes", code, len(some))
	}
	if code, _ := in.get(in.path(0, document.Chunks), "Range", "bytes=1-2", "If-Range", `"sha256:other"`); code != http.StatusOK {
		t.Errorf("a range of chunks of another table: %d", code)
	}
	wantUses := []string{"s1-1 iPXE script 10.1.2.3", "s1-1 Ignition 10.1.2.3"}
	for range 5 {
		wantUses = append(wantUses, "s1-1 disk image 10.1.2.3")
	}
	if diff := cmp.Diff(wantUses, in.used()); diff != "" {
		t.Errorf("uses of the ticket (-want +got):\n%s", diff)
	}
	for kind, want := range map[string]int{"document": len(text), "table": len("the table"), "chunks": 2*len(in.chunks) + 4<<20} {
		if got := testutil.ToFloat64(in.service.metrics.installBytes.WithLabelValues(kind)); got != float64(want) {
			t.Errorf("%v bytes of %s were counted, want %d", got, kind, want)
		}
	}
}

func TestWhoMayInstall(t *testing.T) {
	own := func(in *install) string { return in.path(0, "chunks") }
	for title, tc := range map[string]struct {
		world func(*install)
		path  func(*install) string
		code  int
		says  string
	}{
		"the bearer of the token": {path: own, code: http.StatusOK},
		"while it writes":         {world: func(in *install) { in.reported(model.DiskInstall{Stage: model.DiskWriting}) }, path: own, code: http.StatusOK},
		"and after it failed, for it is asked for again": {
			world: func(in *install) { in.reported(model.DiskInstall{Stage: model.DiskWriting, Reason: "DiskBusy"}) }, path: own, code: http.StatusOK,
		},
		"nobody once it is verified": {
			world: func(in *install) { in.reported(model.DiskInstall{Stage: model.DiskVerified, VerifiedAt: armed}) }, path: own,
			code: http.StatusForbidden, says: "written and verified",
		},
		"nor is the probe configured then": {
			world: func(in *install) { in.reported(model.DiskInstall{Stage: model.DiskVerified, VerifiedAt: armed}) },
			path:  func(in *install) string { return "/ignition/" + uuid1 + "/" + tokenOf(in.ticket).Reveal() },
			code:  http.StatusForbidden, says: "written and verified",
		},
		"nobody once the ticket has ended": {world: (*install).end, path: own, code: http.StatusForbidden, says: "has ended"},
		"nobody without the token": {
			path: func(*install) string { return "/install/" + uuid1 + "/" + testToken + "/document" }, code: http.StatusForbidden, says: "the token is not",
		},
		"nobody of another server": {
			path: func(in *install) string { return strings.Replace(in.path(0, "table"), uuid1, uuid2, 1) }, code: http.StatusNotFound, says: "no server",
		},
		"nobody whose ticket boots an image from the network": {
			world: func(in *install) { in.ticket.Disk = nil }, path: own, code: http.StatusNotFound, says: "installs no disk image",
		},
		"nobody a thing that there is not": {
			path: func(in *install) string { return in.path(0, "seed") }, code: http.StatusNotFound, says: "a document, a table and chunks",
		},
		"later, while the image is prepared anew": {
			world: func(in *install) { in.err = fmt.Errorf("chunks: %w", ErrNotPrepared) }, path: own, code: http.StatusServiceUnavailable, says: "come again",
		},
		"later, where the cache cannot be read": {
			world: func(in *install) { in.err = os.ErrPermission }, path: own, code: http.StatusServiceUnavailable, says: "log says why",
		},
	} {
		t.Run(title, func(t *testing.T) {
			in := newInstall(t)
			if tc.world != nil {
				tc.world(in)
			}
			w := ask(in.service.Handler(), http.MethodGet, tc.path(in))
			if w.Code != tc.code || w.Code != http.StatusOK && !strings.Contains(w.Body.String(), tc.says) {
				t.Errorf("got %d %s", w.Code, w.Body)
			}
			if again := w.Header().Get("Retry-After"); (again != "") != (tc.code == http.StatusServiceUnavailable) {
				t.Errorf("Retry-After is %q", again)
			}
		})
	}
}

// A machine that loses its power while it is written to installs again, with a token of its
// new boot: what ran before has no more use of its own.
func TestAPowerCutInstallsAgain(t *testing.T) {
	in := newInstall(t)
	in.get("/ipxe/" + uuid1)
	in.get("/ignition/" + uuid1 + "/" + tokenOf(in.ticket).Reveal())
	in.reported(model.DiskInstall{Stage: model.DiskWriting})
	_, script := in.get("/ipxe/" + uuid1)
	second := key.Config(in.ticket, 1).Reveal()
	if !strings.Contains(script, second) {
		t.Fatalf("the second boot has no token of its own:\n%s", script)
	}
	_, probe := in.get("/ignition/" + uuid1 + "/" + second)
	if !strings.Contains(probe, "/install/"+uuid1+"/"+second+"/document") {
		t.Errorf("the second boot's probe has no install of its own:\n%s", probe)
	}
	if code, body := in.get(in.path(1, "document")); code != http.StatusOK {
		t.Errorf("the second boot's document: %d %s", code, body)
	}
	if code, body := in.get(in.path(0, "document")); code != http.StatusForbidden || !strings.Contains(body, "superseded") && !strings.Contains(body, "has ended") {
		t.Errorf("the first boot's document: %d %s", code, body)
	}
	in.reported(model.DiskInstall{Stage: model.DiskVerified, VerifiedAt: armed})
	if _, script = in.get("/ipxe/" + uuid1); !strings.Contains(script, "booting from disk") {
		t.Errorf("once verified it boots\n%s", script)
	}
}

// What an earlier boot of the same install has begun to write is the install's own.
func TestADiskThatTheInstallBeganIsItsOwn(t *testing.T) {
	in := newInstall(t)
	previous := func() *model.RootDisk {
		code, text := in.get(in.path(0, "document"))
		var document model.InstallDocument
		if err := json.Unmarshal([]byte(text), &document); err != nil || code != http.StatusOK {
			t.Fatal(code, text, err)
		}
		return document.Previous
	}
	disk := &model.RootDisk{Name: "sda", Serial: "S1"}
	in.reported(model.DiskInstall{Stage: model.DiskChosen, Disk: disk})
	if got := previous(); got != nil {
		t.Errorf("before anything is written, %+v is its own", got)
	}
	in.reported(model.DiskInstall{Stage: model.DiskWriting, Disk: disk, StartedAt: in.now})
	if diff := cmp.Diff(disk, previous()); diff != "" {
		t.Errorf("once it is being written (-want +got):\n%s", diff)
	}
}

// A probe in a UKI cannot know its token; one that iPXE boots has it by its script.
func TestAProbeThatHasAScriptNeedsItsToken(t *testing.T) {
	for want, first := range map[string][]string{"200": nil, "403": {"script"}} {
		s := newSegment(t)
		ticket := *s.ticket
		ticket.Disk = &model.DiskImage{Ref: "https://images.example/os.raw", Digest: "sha512:1"}
		s.arm(&ticket)
		for _, what := range first {
			s.fetch("10.0.0.1", what)
		}
		if got := s.fetch("10.0.0.1", "Ignition, tokenless"); !strings.HasPrefix(got, want) {
			t.Errorf("after %q: %s, want %s", first, got, want)
		}
	}
}
