package bmc_test

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
	recordedUser     = "root"
	recordedPassword = "calvin-and-hobbes"
)

// recording is what a BMC answered to GETs, one index.json for each path, played by a
// BMC: it has sessions, expands collections as its service root promises, and keeps what
// is written to it. Paths are found in whatever case they are asked for, as some BMCs name
// their resources in another one than they are recorded by.
type recording struct {
	name  string
	files map[string]string // by path

	mu       sync.Mutex
	changed  map[string]map[string]any // resources that were written to, by path
	sessions map[string]bool
	login    string // path of the sessions
	expand   struct {
		NoLinks, ExpandAll, Levels bool
		MaxLevels                  int
	}
}

// recordings finds the recordings below a folder, by name: the folders that hold
// redfish/v1/index.json.
func recordings(folder string) ([]*recording, error) {
	var all []*recording
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
		if r.name, err = filepath.Rel(folder, at); err != nil || r.name == "." {
			r.name = filepath.Base(folder)
		}
		all = append(all, r)
		return fs.SkipDir
	})
	return all, err
}

func newRecording(folder string) (*recording, error) {
	r := &recording{files: make(map[string]string), changed: make(map[string]map[string]any), sessions: make(map[string]bool)}
	err := filepath.WalkDir(folder, func(at string, d fs.DirEntry, err error) error {
		if err == nil && d.Name() == "index.json" {
			var rel string
			if rel, err = filepath.Rel(folder, filepath.Dir(at)); err == nil {
				r.files[key("/"+filepath.ToSlash(rel))] = at
			}
		}
		return err
	})
	root := r.resource("/redfish/v1")
	r.login = key("/redfish/v1/SessionService/Sessions")
	if uri := linkOf(field(root, "Links"), "Sessions"); uri != "" {
		r.login = key(uri)
	}
	if raw, err := json.Marshal(field(field(root, "ProtocolFeaturesSupported"), "ExpandQuery")); err == nil {
		_ = json.Unmarshal(raw, &r.expand) // or it expands nothing
	}
	return r, err
}

func key(uri string) string {
	if plain, err := url.PathUnescape(uri); err == nil {
		uri = plain
	}
	return strings.ToLower(strings.TrimRight(uri, "/"))
}

func (r *recording) asked(req *http.Request) string {
	if page := req.URL.Path + "?" + req.URL.RawQuery; r.files[key(page)] != "" {
		return page
	}
	return req.URL.Path
}

func (r *recording) raw(uri string) []byte {
	file := r.files[key(uri)]
	if file == "" {
		return nil
	}
	body, err := os.ReadFile(file)
	if err != nil {
		return nil
	}
	return bytes.TrimSpace(body)
}

// resource is what was recorded at a path, nil if that is no resource.
func (r *recording) resource(uri string) map[string]any {
	if changed := r.changed[key(uri)]; changed != nil {
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

// field is an object within an object, nil if there is none.
func field(o map[string]any, name string) map[string]any {
	inner, _ := o[name].(map[string]any)
	return inner
}

// linkOf is the URI of a link within an object, "" if there is none.
func linkOf(o map[string]any, name string) string {
	uri, _ := field(o, name)["@odata.id"].(string)
	return uri
}

func (r *recording) serve(t *testing.T) model.BMCTarget {
	s := httptest.NewUnstartedServer(r)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	return model.BMCTarget{
		Name: "recorded", Scheme: "https", Address: s.Listener.Addr().String(),
		Username: recordedUser, Password: model.NewSensitive(recordedPassword),
	}
}

func (r *recording) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	uri := key(req.URL.Path)
	name, password, _ := req.BasicAuth()
	known := r.sessions[req.Header.Get("X-Auth-Token")] || name == recordedUser && password == recordedPassword
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

func (r *recording) openSession(w http.ResponseWriter, req *http.Request) {
	var body struct{ UserName, Password string }
	if json.NewDecoder(req.Body).Decode(&body) != nil || body.UserName != recordedUser || body.Password != recordedPassword {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	token := fmt.Sprintf("t%d", len(r.sessions)+1)
	r.sessions[token] = true
	w.Header().Set("X-Auth-Token", token)
	w.Header().Set("Location", req.URL.Path+"/"+token)
	w.WriteHeader(http.StatusCreated)
}

func (r *recording) get(w http.ResponseWriter, req *http.Request) {
	uri := r.asked(req)
	body := r.raw(uri)
	if len(body) == 0 || req.URL.Query().Has("$skip") && uri == req.URL.Path { // that page is not recorded
		http.NotFound(w, req)
		return
	}
	levels, whole := r.expands(req.URL.Query().Get("$expand")), r.resource(uri)
	if whole != nil && (levels > 0 || r.changed[key(uri)] != nil) {
		body, _ = json.Marshal(r.inPlace(whole, levels))
	}
	w.Write(body)
}

func (r *recording) expands(query string) int {
	levels := 1
	kind, rest, _ := strings.Cut(query, "($levels=")
	fmt.Sscanf(rest, "%d)", &levels)
	if kind == "." && r.expand.NoLinks || kind == "*" && r.expand.ExpandAll {
		return min(levels, max(1, r.expand.MaxLevels))
	}
	return 0
}

func (r *recording) inPlace(v any, levels int) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, part := range v {
			if uri, _ := field(v, name)["@odata.id"].(string); levels > 0 && uri != "" && len(field(v, name)) == 1 {
				if target := r.resource(uri); target != nil {
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

func (r *recording) patch(w http.ResponseWriter, req *http.Request) {
	resource := r.resource(req.URL.Path)
	var body map[string]any
	switch {
	case resource == nil:
		http.NotFound(w, req)
	case json.NewDecoder(req.Body).Decode(&body) != nil || !overlay(resource, body):
		w.WriteHeader(http.StatusBadRequest)
	default:
		r.changed[key(req.URL.Path)] = resource
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

func (r *recording) reset(w http.ResponseWriter, req *http.Request) {
	uri, _, _ := strings.Cut(key(req.URL.Path), "/actions/")
	sys := r.resource(uri)
	var body struct{ ResetType string }
	if sys == nil || json.NewDecoder(req.Body).Decode(&body) != nil {
		http.NotFound(w, req)
		return
	}
	power := map[string]string{"On": "On", "ForceOff": "Off", "Off": "Off", "GracefulShutdown": "Off"}[body.ResetType]
	if body.ResetType == "PushPowerButton" {
		power = map[string]string{"On": "Off", "Off": "On"}[text(sys["PowerState"])]
	}
	if power == "" {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	sys["PowerState"] = power
	r.changed[uri] = sys
	w.WriteHeader(http.StatusNoContent)
}

// text is a value that should be one, "" if it is none.
func text(v any) string {
	s, _ := v.(string)
	return s
}
