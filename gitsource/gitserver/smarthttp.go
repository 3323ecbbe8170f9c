package gitserver

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/config"
	"github.com/go-git/go-git/v5/plumbing/format/pktline"
)

// maxBody is how large a request is at most that is answered in process.
const maxBody = 64 << 20

// errRealGit is the error of a request that only the real git can answer, or that it
// refuses with an error of its own.
var errRealGit = errors.New("the real git has to answer")

// The services of the protocol, see gitprotocol-http(5).
const (
	uploadPack  = "git-upload-pack"
	receivePack = "git-receive-pack"
)

// answer is a response that is ready to be sent.
type answer struct {
	contentType string
	write       func(io.Writer) error
}

// smart answers requests of the smart HTTP protocol for a repository.
type smart struct{ *Repo }

// inProcess answers the usual requests of go-git without a process. Everything else goes
// to next. An answer is complete before its first byte is sent, so next can still give
// another one.
func (r smart) inProcess(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if !strings.HasPrefix(req.UserAgent(), "go-git/") || req.Header.Get("Git-Protocol")+req.Header.Get("Content-Encoding") != "" {
			next.ServeHTTP(w, req)
			return
		}
		body, err := io.ReadAll(io.LimitReader(req.Body, maxBody+1))
		if err != nil {
			http.Error(w, "cannot read the request", http.StatusBadRequest)
			return
		}
		req.Body = io.NopCloser(io.MultiReader(bytes.NewReader(body), req.Body))
		a, err := r.answer(req, body)
		if err != nil {
			next.ServeHTTP(w, req)
			return
		}
		w.Header().Set("Content-Type", a.contentType)
		w.Header().Set("Cache-Control", "no-cache")
		if a.write(w) != nil {
			panic(http.ErrAbortHandler) // the client must not take a part for the whole
		}
	})
}

// answer returns the response to a request. After an error the real git has to answer.
func (r smart) answer(req *http.Request, body []byte) (answer, error) {
	s, err := r.settings()
	if err != nil {
		return answer{}, err
	}
	path, ours := strings.CutPrefix(req.URL.Path, "/"+filepath.Base(r.Dir)+"/")
	service := path
	advertise := path == "info/refs" && req.Method == http.MethodGet
	if advertise {
		service = req.URL.Query().Get("service")
	}
	pushes := service == receivePack
	switch {
	case !ours || !advertise && (req.Method != http.MethodPost || len(body) > maxBody):
		return answer{}, errRealGit
	case pushes && (!s["http.receivepack"] || r.customHooks()):
		return answer{}, errRealGit
	case service != uploadPack && !pushes:
		return answer{}, errRealGit
	case advertise:
		list, err := r.advertisement(service, s)
		return answer{"application/x-" + service + "-advertisement", list}, err
	case pushes:
		report, err := r.receive(body, s)
		return answer{"application/x-" + service + "-result", report}, err
	}
	pack, err := r.upload(body, s)
	return answer{"application/x-" + service + "-result", pack}, err
}

// settings are the values of a repository's configuration that are set, by lower-case key.
type settings map[string]bool

// ignored are settings that change nothing in a response.
var ignored = []string{
	"core.repositoryformatversion", "core.filemode", "core.loosecompression", "core.compression", "receive.autogc",
	"receive.unpacklimit", "transfer.unpacklimit", "gc.auto", "pack.compression", "pack.window", "pack.depth", "user.name", "user.email",
}

// known are the settings that are followed.
var known = []string{
	"core.bare", "http.receivepack", "uploadpack.allowfilter", "uploadpack.allowanysha1inwant",
	"uploadpack.allowtipsha1inwant", "uploadpack.allowreachablesha1inwant", "receive.denynonfastforwards",
}

// settings reads the repository's configuration. It fails if something in it, or in the
// repository, is not supported here.
func (r smart) settings() (settings, error) {
	for _, name := range []string{"shallow", "info/grafts", "objects/info/alternates", "refs/replace", "config.worktree"} {
		if _, err := os.Lstat(filepath.Join(r.Dir, name)); err == nil {
			return nil, errRealGit
		}
	}
	f, err := os.Open(filepath.Join(r.Dir, "config"))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	parsed := config.New()
	if err := config.NewDecoder(io.LimitReader(f, maxBody)).Decode(parsed); err != nil {
		return nil, err
	}
	s := make(settings)
	for _, section := range parsed.Sections {
		if len(section.Subsections) > 0 {
			return nil, errRealGit
		}
		for _, option := range section.Options {
			key := strings.ToLower(section.Name + "." + option.Key)
			value := strings.ToLower(option.Value)
			switch {
			case key == "core.repositoryformatversion" && value != "0":
				return nil, errRealGit
			case slices.Contains(ignored, key):
			case slices.Contains(known, key) && (value == "true" || value == "false"):
				s[key] = value == "true"
			default:
				return nil, errRealGit
			}
		}
	}
	return s, nil
}

// customHooks reports whether a push runs a hook that has an effect.
func (r smart) customHooks() bool {
	hooks, err := os.ReadDir(filepath.Join(r.Dir, "hooks"))
	return err != nil && !errors.Is(err, os.ErrNotExist) || slices.ContainsFunc(hooks, func(h os.DirEntry) bool {
		noted := h.Name() == "reference-transaction" && r.OnUpdate != nil
		return !noted && !strings.HasSuffix(h.Name(), ".sample") && hasHook(r.Dir, h.Name())
	})
}

// advertisement returns the list of refs, as git sends it.
func (r smart) advertisement(service string, s settings) (func(io.Writer) error, error) {
	refs, err := r.refs().all()
	if err != nil {
		return nil, err
	}
	var lines []string
	can := "report-status delete-refs side-band-64k quiet ofs-delta object-format=sha1"
	if service == uploadPack {
		can = "side-band-64k ofs-delta shallow deepen-since no-progress object-format=sha1"
		for _, optional := range []struct {
			capability string
			on         bool
		}{
			{"filter", s["uploadpack.allowfilter"]},
			{"allow-tip-sha1-in-want", s["uploadpack.allowtipsha1inwant"] || s["uploadpack.allowanysha1inwant"]},
			{"allow-reachable-sha1-in-want", s["uploadpack.allowreachablesha1inwant"] || s["uploadpack.allowanysha1inwant"]},
		} {
			if optional.on {
				can += " " + optional.capability
			}
		}
		if head := r.refs().hash("HEAD"); head != "" {
			lines = append(lines, head+" HEAD")
			if branch, symbolic := strings.CutPrefix(r.refs().loose("HEAD"), "ref: "); symbolic {
				can += " symref=HEAD:" + branch
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(refs)) {
		lines = append(lines, refs[name]+" "+name)
		tags, target, err := r.objects.peel(plumbing.NewHash(refs[name]))
		if err != nil {
			return nil, err
		}
		if len(tags) > 0 && service == uploadPack {
			lines = append(lines, fmt.Sprintf("%s %s^{}", target, name))
		}
	}
	if len(lines) == 0 {
		lines = []string{noHash + " capabilities^{}"}
	}
	lines[0] += "\x00" + can + " agent=git/ingot-gitserver"
	return func(w io.Writer) error {
		e := pktline.NewEncoder(w)
		err := errors.Join(e.Encodef("# service=%s\n", service), e.Flush())
		for _, line := range lines {
			if err == nil {
				err = e.EncodeString(line + "\n")
			}
		}
		return errors.Join(err, e.Flush())
	}, nil
}
