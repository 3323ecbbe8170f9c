// Package recorded plays recorded BMCs, for tests and benchmarks.
package recorded

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"ingot/model"
)

const (
	user     = "root"
	password = "calvin-and-hobbes"
)

// BMC is what a BMC answered to GETs, one index.json for each path, played by a
// BMC: it has sessions, expands collections as its service root promises, and keeps what
// is written to it. Paths are found in whatever case they are asked for, as some BMCs name
// their resources in another one than they are recorded by.
type BMC struct {
	Name string
	// Reset, if set, is called with each type of reset that was carried out.
	Reset func(resetType string)

	files map[string]string // by path

	mu       sync.Mutex
	changed  map[string]map[string]any // resources that were written to, by path
	sessions map[string]bool
	requests []string // method and URI of each, in order
	login    string   // path of the sessions
	expand   struct {
		NoLinks, ExpandAll, Levels bool
		MaxLevels                  int
	}
}

// All finds the recordings below a folder, by name: the folders that hold
// redfish/v1/index.json.
func All(folder string) ([]*BMC, error) {
	var all []*BMC
	err := filepath.WalkDir(folder, func(at string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		if _, err := os.Stat(filepath.Join(at, "redfish", "v1", "index.json")); err != nil {
			return nil
		}
		r, err := newRecording(at)
		if err != nil {
			return err
		}
		if r.Name, err = filepath.Rel(folder, at); err != nil || r.Name == "." {
			r.Name = filepath.Base(folder)
		}
		all = append(all, r)
		return fs.SkipDir
	})
	return all, err
}

func newRecording(folder string) (*BMC, error) {
	r := &BMC{files: make(map[string]string), changed: make(map[string]map[string]any), sessions: make(map[string]bool)}
	err := filepath.WalkDir(folder, func(at string, d fs.DirEntry, err error) error {
		if err == nil && d.Name() == "index.json" {
			var rel string
			if rel, err = filepath.Rel(folder, filepath.Dir(at)); err == nil {
				r.files[Key("/"+filepath.ToSlash(rel))] = at
			}
		}
		return err
	})
	root := r.Resource("/redfish/v1")
	r.login = Key("/redfish/v1/SessionService/Sessions")
	if uri := LinkOf(Field(root, "Links"), "Sessions"); uri != "" {
		r.login = Key(uri)
	}
	if raw, err := json.Marshal(Field(Field(root, "ProtocolFeaturesSupported"), "ExpandQuery")); err == nil {
		_ = json.Unmarshal(raw, &r.expand) // or it expands nothing
	}
	return r, err
}

// Key is the path of a URI as recordings are found by.
func Key(uri string) string {
	if plain, err := url.PathUnescape(uri); err == nil {
		uri = plain
	}
	return strings.ToLower(strings.TrimRight(uri, "/"))
}

func (r *BMC) asked(req *http.Request) string {
	if page := req.URL.Path + "?" + req.URL.RawQuery; r.files[Key(page)] != "" {
		return page
	}
	return req.URL.Path
}

func (r *BMC) raw(uri string) []byte {
	file := r.files[Key(uri)]
	if file == "" {
		return nil
	}
	body, err := os.ReadFile(file)
	if err != nil {
		return nil
	}
	return bytes.TrimSpace(body)
}

// Resource is what was recorded at a path, nil if there is none.
func (r *BMC) Resource(uri string) map[string]any {
	if changed := r.changed[Key(uri)]; changed != nil {
		return changed
	}
	var resource map[string]any
	d := json.NewDecoder(bytes.NewReader(bytes.TrimPrefix(r.raw(uri), []byte("\ufeff"))))
	d.UseNumber()
	if d.Decode(&resource) != nil || resource["@odata.id"] == nil && resource["error"] != nil {
		return nil
	}
	return resource
}

// Field is an object within an object, nil if there is none.
func Field(o map[string]any, name string) map[string]any {
	inner, _ := o[name].(map[string]any)
	return inner
}

// LinkOf is the URI of a link within an object, "" if there is none.
func LinkOf(o map[string]any, name string) string {
	uri, _ := Field(o, name)["@odata.id"].(string)
	return uri
}

// Serve plays the BMC until the test ends.
func (r *BMC) Serve(t testing.TB) model.BMCTarget {
	s := httptest.NewUnstartedServer(r)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	return model.BMCTarget{
		Name: "recorded", Scheme: "https", Address: s.Listener.Addr().String(),
		Username: user, Password: model.NewSensitive(password),
	}
}

// Sessions is how many sessions are open.
func (r *BMC) Sessions() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.sessions)
}

// Requests are the method and URI of each request so far.
func (r *BMC) Requests() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.requests)
}

// PowerOff has a system shown as Off from now on.
func (r *BMC) PowerOff(uri string) {
	sys := r.Resource(uri)
	sys["PowerState"] = "Off"
	r.changed[Key(uri)] = sys
}

// ServeHTTP implements http.Handler.
func (r *BMC) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.requests = append(r.requests, req.Method+" "+req.URL.RequestURI())
	uri := Key(req.URL.Path)
	name, secret, _ := req.BasicAuth()
	known := r.sessions[req.Header.Get("X-Auth-Token")] || name == user && secret == password
	switch {
	case req.Method == http.MethodPost && uri == r.login:
		r.openSession(w, req)
	case uri != "/redfish/v1" && !known:
		w.WriteHeader(http.StatusUnauthorized)
	case req.Method == http.MethodGet:
		r.get(w, req)
	case req.Method == http.MethodPatch:
		r.patch(w, req)
	case req.Method == http.MethodPost:
		r.reset(w, req)
	case req.Method == http.MethodDelete:
		delete(r.sessions, uri[strings.LastIndex(uri, "/")+1:])
		w.WriteHeader(http.StatusNoContent)
	default:
		w.WriteHeader(http.StatusMethodNotAllowed)
	}
}

func (r *BMC) openSession(w http.ResponseWriter, req *http.Request) {
	var body struct{ UserName, Password string }
	if json.NewDecoder(req.Body).Decode(&body) != nil || body.UserName != user || body.Password != password {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	token := fmt.Sprintf("t%d", len(r.sessions)+1)
	r.sessions[token] = true
	w.Header().Set("X-Auth-Token", token)
	w.Header().Set("Location", req.URL.Path+"/"+token)
	w.WriteHeader(http.StatusCreated)
}

func (r *BMC) get(w http.ResponseWriter, req *http.Request) {
	uri := r.asked(req)
	body := r.raw(uri)
	if len(body) == 0 || req.URL.Query().Has("$skip") && uri == req.URL.Path { // that page is not recorded
		http.NotFound(w, req)
		return
	}
	levels, whole := r.expands(req.URL.Query().Get("$expand")), r.Resource(uri)
	if whole != nil && (levels > 0 || r.changed[Key(uri)] != nil) {
		body, _ = json.Marshal(r.inPlace(whole, levels))
	}
	w.Write(body)
}

func (r *BMC) expands(query string) int {
	levels := 1
	kind, rest, _ := strings.Cut(query, "($levels=")
	_, _ = fmt.Sscanf(rest, "%d)", &levels) // or it is 1
	if kind == "." && r.expand.NoLinks || kind == "*" && r.expand.ExpandAll {
		return min(levels, max(1, r.expand.MaxLevels))
	}
	return 0
}

func (r *BMC) inPlace(v any, levels int) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, part := range v {
			if uri, _ := Field(v, name)["@odata.id"].(string); levels > 0 && uri != "" && len(Field(v, name)) == 1 {
				if target := r.Resource(uri); target != nil {
					part = r.inPlace(target, levels-1)
				}
			} else if name != "Links" {
				part = r.inPlace(part, levels)
			}
			out[name] = part
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = r.inPlace(map[string]any{"": v[i]}, levels).(map[string]any)[""]
		}
		return out
	}
	return v
}

func (r *BMC) patch(w http.ResponseWriter, req *http.Request) {
	resource := r.Resource(req.URL.Path)
	var body map[string]any
	switch {
	case resource == nil:
		http.NotFound(w, req)
	case json.NewDecoder(req.Body).Decode(&body) != nil || !overlay(resource, body):
		w.WriteHeader(http.StatusBadRequest)
	default:
		r.changed[Key(req.URL.Path)] = resource
		w.WriteHeader(http.StatusNoContent)
	}
}

func overlay(resource, body map[string]any) bool {
	for name, value := range body {
		has, known := resource[name]
		if !known {
			return false
		}
		if inner, ok := value.(map[string]any); ok {
			if of, ok := has.(map[string]any); !ok || !overlay(of, inner) {
				return false
			}
			continue
		}
		if allowed, ok := resource[name+"@Redfish.AllowableValues"].([]any); ok && !slices.Contains(allowed, value) {
			return false
		}
		resource[name] = value
	}
	return true
}

func (r *BMC) reset(w http.ResponseWriter, req *http.Request) {
	uri, _, _ := strings.Cut(Key(req.URL.Path), "/actions/")
	sys := r.Resource(uri)
	var body struct{ ResetType string }
	if sys == nil || json.NewDecoder(req.Body).Decode(&body) != nil {
		http.NotFound(w, req)
		return
	}
	power := map[string]string{"On": "On", "ForceOff": "Off", "Off": "Off", "GracefulShutdown": "Off"}[body.ResetType]
	if body.ResetType == "PushPowerButton" {
		power = map[string]string{"On": "Off", "Off": "On"}[Text(sys["PowerState"])]
	}
	if power == "" {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	sys["PowerState"] = power
	r.changed[uri] = sys
	if r.Reset != nil {
		r.Reset(body.ResetType)
	}
	w.WriteHeader(http.StatusNoContent)
}

// Text is a value that should be one, "" for any other type.
func Text(v any) string {
	s, _ := v.(string)
	return s
}
