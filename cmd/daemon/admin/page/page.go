package page

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"html/template"
	"io/fs"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"ingot/gitsource/forge"
	"ingot/model"
	"ingot/reconcile/report"
	"ingot/reconcile/report/query"
)

// Fleet is what the page shows.
type Fleet interface {
	// Report is what is so now, nil while Git was never read. It is shared: nobody changes it.
	Report() *model.Report
	// Rows are the lists of that report.
	Rows() *query.Rows
	Leases() []*query.Lease
	Pools() []*query.Pool
	Images() []*query.Image
	// Networks are the names of the networks that are configured.
	Networks() []string
	// Explain explains one object. For one that is not known the error is
	// report.ErrUnknownObject.
	Explain(kind, name string) (report.Explanation, error)
	// Git is how Git and the status branch stand.
	Git() Git
	// History is what the newest commits of the status branch say of an object, the newest
	// first, at most so many.
	History(name string, most int) []Commit
	// Requests counts what a BMC was asked by this process; false if it was not.
	Requests(bmc string) (Requests, bool)
}

// Git is how Git and the status branch stand.
type Git struct {
	Source  model.SourceState
	Seen    model.Revision // the newest that was fetched
	InForce time.Time      // since when the revision in force is
	Fetched time.Time      // when Git was last read without an error
	Status  Commit         // the newest of the status branch; zero = none is known
	// Failing is why the status branch cannot be pushed, and since when; nil when it can.
	Failing      error
	FailingSince time.Time
}

// Commit is a commit of the status branch, and what it says.
type Commit struct {
	Hash  string
	At    time.Time
	Lines []string
}

// Requests counts what one BMC was asked.
type Requests struct{ Requests, Connections, Sessions uint64 }

// Options are the options of New.
type Options struct {
	Fleet Fleet
	// Web makes links to the forge, StatusBranch is the branch that they lead to.
	Web          forge.Web
	StatusBranch string
	Clock        func() time.Time
	Log          *slog.Logger
}

//go:embed templates static
var files embed.FS

// New returns the handler of the page. It answers all paths that nothing else does. Package
// access sets the headers that keep browsers from anything but what is served here.
func New(o Options) http.Handler {
	p := &page{Options: o, templates: parse(), static: staticFiles()}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", p.fleet)
	mux.HandleFunc("GET /racks/{name}", p.racks)
	for _, t := range p.tables() {
		mux.HandleFunc("GET /"+t.name, t.serve)
	}
	mux.HandleFunc("GET /servers/{name}", p.server)
	mux.HandleFunc("GET /claims/{namespace}/{name}", func(w http.ResponseWriter, r *http.Request) {
		p.claim(w, r, "claim", r.PathValue("namespace")+"/"+r.PathValue("name"))
	})
	mux.HandleFunc("GET /boot-configurations/{namespace}/{name}", func(w http.ResponseWriter, r *http.Request) {
		p.claim(w, r, "boot-configuration", r.PathValue("namespace")+"/"+r.PathValue("name"))
	})
	mux.HandleFunc("GET /bmcs/{name}", p.bmc)
	mux.HandleFunc("GET /endpoints/{name}", p.endpoint)
	mux.HandleFunc("GET /static/{name}", p.serveStatic)
	mux.HandleFunc("GET /", func(w http.ResponseWriter, r *http.Request) {
		p.problem(w, r, http.StatusNotFound, "There is no such page.")
	})
	return mux
}

type page struct {
	Options
	templates map[string]*template.Template
	static    map[string]static

	mu     sync.Mutex // guards glance
	glance *glance    // of the newest report that was looked at
}

// frame is what every page has around its content.
type frame struct {
	Title   string
	Nav     []navEntry
	Scripts bool // the page is kept up to date
	Content any
	Made    stamp
	// Generation is that of the rows, which events name too.
	Generation uint64
}

type navEntry struct {
	Name, Path string
	Count      int // 0 is not shown
	Here       bool
}

// sections are the pages that each page leads to.
var sections = []struct{ name, path string }{
	{"Fleet", "/"}, {"Servers", "/servers"}, {"Claims", "/claims"}, {"BMCs", "/bmcs"}, {"Endpoints", "/endpoints"},
	{"Leases", "/leases"}, {"Pools", "/pools"}, {"Images", "/images"}, {"Problems", "/problems"},
}

// view is what one request is answered from: the fleet at one moment.
type view struct {
	*page
	report *model.Report
	rows   *query.Rows
	now    time.Time
}

func (p *page) look() *view {
	v := &view{page: p, report: p.Fleet.Report(), rows: p.Fleet.Rows(), now: p.Clock()}
	if v.report == nil {
		v.report = &model.Report{}
	}
	return v
}

// show answers with a page.
func (v *view) show(w http.ResponseWriter, r *http.Request, code int, name, title string, content any) {
	section := "/" + strings.SplitN(strings.TrimPrefix(r.URL.Path, "/"), "/", 2)[0]
	f := frame{Title: title, Scripts: code == http.StatusOK, Content: content, Made: v.stamp(v.now), Generation: v.rows.Generation}
	for _, s := range sections {
		f.Nav = append(f.Nav, navEntry{Name: s.name, Path: s.path, Here: s.path == section, Count: v.count(s.path)})
	}
	var body bytes.Buffer
	if err := v.templates[name].ExecuteTemplate(&body, "page", f); err != nil {
		v.Log.Error("page cannot be made", "page", name, "err", err)
		http.Error(w, "internal error", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(code)
	_, _ = w.Write(body.Bytes()) // the client may be gone
}

// count is how many rows a section has that its link tells.
func (v *view) count(path string) int {
	switch path {
	case "/servers":
		return len(v.rows.Servers)
	case "/claims":
		return len(v.rows.Claims)
	case "/problems":
		return len(v.rows.Problems)
	}
	return 0
}

// problem answers that something cannot be shown, and why.
func (p *page) problem(w http.ResponseWriter, r *http.Request, code int, says string) {
	path := "" // without the question that cannot be answered
	if code == http.StatusBadRequest {
		path = r.URL.Path
	}
	p.look().show(w, r, code, "problem", http.StatusText(code), struct{ Title, Says, Path string }{http.StatusText(code), says, path})
}

// parse reads the templates: each page with what all of them share.
func parse() map[string]*template.Template {
	shared := template.New("").Funcs(template.FuncMap{
		"lower": func(s model.ServerState) string { return strings.ToLower(string(s)) },
		"bytes": size[uint64], "quantity": quantity,
	})
	shared = template.Must(shared.ParseFS(files, "templates/layout.html", "templates/parts.html"))
	all := make(map[string]*template.Template)
	for _, name := range []string{"fleet", "racks", "table", "server", "claim", "object", "problem"} {
		all[name] = template.Must(template.Must(shared.Clone()).ParseFS(files, "templates/"+name+".html"))
	}
	return all
}

// static is a file that is served as it is.
type static struct {
	kind, tag string
	content   []byte
}

// staticFiles are the stylesheet, with the colours of the racks, and the script.
func staticFiles() map[string]static {
	all := make(map[string]static)
	for name, kind := range map[string]string{"page.css": "text/css; charset=utf-8", "page.js": "text/javascript; charset=utf-8", "icon.svg": "image/svg+xml"} {
		content, err := fs.ReadFile(files, "static/"+name)
		if err != nil {
			panic(err) // it is embedded
		}
		if name == "page.css" {
			content = append(content, stateStyle()...)
		}
		sum := sha256.Sum256(content)
		all[name] = static{kind, `"` + hex.EncodeToString(sum[:12]) + `"`, content}
	}
	return all
}

// stateStyle has the colours of states, and of what the racks are drawn with.
func stateStyle() string {
	var b strings.Builder
	for _, l := range report.Looks() {
		b.WriteString("." + stateClass(string(l.State)) + "{background:" + l.Colour + "}\n")
	}
	return b.String() + report.RackStyle() + "\n"
}

func (p *page) serveStatic(w http.ResponseWriter, r *http.Request) {
	f, ok := p.static[r.PathValue("name")]
	if !ok {
		p.problem(w, r, http.StatusNotFound, "There is no such file.")
		return
	}
	w.Header().Set("Content-Type", f.kind)
	w.Header().Set("Cache-Control", "no-cache")
	w.Header().Set("ETag", f.tag)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(f.content))
}
