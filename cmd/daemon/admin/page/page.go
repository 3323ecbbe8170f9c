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
	"ingot/model/text"
	"ingot/reconcile/report"
)

// Fleet is the source of the page.
type Fleet interface {
	// Documents returns the newest ones. They are shared and must not be changed. The pointer stays the
	// same while nothing changes.
	Documents() *report.Documents
	// Generation is that of Documents. The ids of /api/v1/events end with it.
	Generation() uint64
	Leases() []report.LeaseRow
	Pools() []report.PoolRow
	Images() []report.ImageRow
	// Card returns the log of a NIC, false for an unknown MAC address.
	Card(mac string) (report.Card, bool)
	// TicketUses are the requests for the newest boot ticket of a server.
	TicketUses(server model.ServerName) []string
	// Source is the manifest of an object in Git, "path:line", empty if there is none.
	Source(o *report.Document) string
	Git() Git
	// History returns the newest commits of the status branch about an object, newest first, up to max.
	History(name string, max int) []Commit
	// Requests counts the requests of this process to a BMC, false if there were none.
	Requests(bmc string) (Requests, bool)
}

// Git is the state of the watched branch and of the status branch.
type Git struct {
	Source  model.SourceState
	Seen    model.Revision // the newest fetched one
	InForce time.Time      // since when the applied revision is
	Fetched time.Time      // last fetch without an error
	Status  Commit         // the newest of the status branch; zero if unknown
	// Failing is the error of the last push of the status branch, FailingSince when it first failed.
	Failing      error
	FailingSince time.Time
}

// Commit is a commit of the status branch, with the lines of its message.
type Commit struct {
	Hash  string
	At    time.Time
	Lines []string
}

// Requests counts the requests to one BMC.
type Requests struct{ Requests, Connections, Sessions uint64 }

// Options are the options of New.
type Options struct {
	Fleet Fleet
	// Web makes links to the Git host, to StatusBranch for documents.
	Web          forge.Web
	StatusBranch string
	Clock        func() time.Time
	Log          *slog.Logger
}

//go:embed templates static
var files embed.FS

// New returns the handler of all paths without another handler. Package access sets the security headers.
func New(o Options) http.Handler {
	p := &page{Options: o, static: staticFiles()}
	p.templates = p.parse()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", p.serveFleet)
	mux.HandleFunc("GET /racks/{name}", p.serveRacks)
	for _, l := range lists() {
		mux.HandleFunc("GET /"+l.name, func(w http.ResponseWriter, r *http.Request) { p.serveList(w, r, &l) })
	}
	for folder, path := range paths {
		pattern := "{name}"
		if folder == report.Claims || folder == report.BootConfigurations {
			pattern = "{namespace}/{name}"
		}
		mux.HandleFunc("GET "+path+pattern, func(w http.ResponseWriter, r *http.Request) {
			p.serveObject(w, r, folder, strings.TrimPrefix(r.PathValue("namespace")+"/"+r.PathValue("name"), "/"))
		})
	}
	mux.HandleFunc("GET /static/{name}", p.serveStatic)
	mux.HandleFunc("GET /", func(w http.ResponseWriter, r *http.Request) {
		p.problem(w, r, http.StatusNotFound, "There is no such page.", link{})
	})
	return mux
}

type page struct {
	Options
	templates map[string]*template.Template
	static    map[string]static

	mu     sync.Mutex // guards glance
	glance *glance    // of the newest documents
}

// frame is the content of the layout around each page.
type frame struct {
	Title      string
	Nav        []navEntry
	Scripts    bool // the script keeps the page up to date
	Content    any
	Now        time.Time
	Generation uint64
}

type navEntry struct {
	Name, Path string
	Count      int // 0 is not shown
	Here       bool
}

// view is the fleet at the time of one request.
type view struct {
	*page
	*glance
	generation uint64
}

func (p *page) view() *view {
	generation := p.Fleet.Generation() // first: an older one makes the script fetch the page again
	docs := p.Fleet.Documents()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.glance == nil || p.glance.docs != docs {
		p.glance = newGlance(docs)
	}
	return &view{p, p.glance, generation}
}

func (v *view) show(w http.ResponseWriter, r *http.Request, code int, name, title string, content any) {
	section := "/" + strings.SplitN(strings.TrimPrefix(r.URL.Path, "/"), "/", 2)[0]
	f := frame{Title: titleOf(v.act, title), Scripts: code == http.StatusOK, Content: content, Now: v.Clock(), Generation: v.generation}
	f.Nav = []navEntry{{Name: "Fleet", Path: "/", Here: section == "/"}}
	for _, l := range lists() {
		f.Nav = append(f.Nav, navEntry{l.title, "/" + l.name, v.totals[l.name], "/"+l.name == section})
	}
	var body bytes.Buffer
	if err := v.templates[name].ExecuteTemplate(&body, "page", f); err != nil {
		v.Log.Error("cannot render page", "page", name, "err", err)
		http.Error(w, "internal error", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(code)
	_, _ = w.Write(body.Bytes()) // the client may be gone
}

// problem answers with an error, and with a link to a page that may help.
func (p *page) problem(w http.ResponseWriter, r *http.Request, code int, message string, help link) {
	p.view().show(w, r, code, "problem", http.StatusText(code), struct {
		Title, Message string
		Help           link
	}{http.StatusText(code), message, help})
}

// parse reads the templates, each page with the shared ones.
func (p *page) parse() map[string]*template.Template {
	shared := template.New("").Funcs(template.FuncMap{
		"age": func(t time.Time) template.HTML { return age(t, p.Clock()) }, "class": stateClass, "bytes": text.Bytes, "size": func(n int64) string { return text.Bytes(uint64(n)) }, "quantity": quantity,
		"kind": func(f report.Folder) string { return kinds[f] }, "to": to, "claim": toClaim, "document": toDocument, "approval": approval, "looks": report.Looks, "manifest": p.manifest,
		"commit":   func(hash string) link { return link{hash[:min(len(hash), 10)], p.Web.Commit(hash)} },
		"revision": func(r model.Revision) link { return link{string(r), p.Web.Commit(r.Commit())} },
	})
	shared = template.Must(shared.ParseFS(files, "templates/layout.html", "templates/parts.html"))
	all := make(map[string]*template.Template)
	for _, name := range []string{"fleet", "racks", "object", "problem"} {
		all[name] = template.Must(template.Must(shared.Clone()).ParseFS(files, "templates/"+name+".html"))
	}
	for _, l := range lists() {
		all[l.name] = template.Must(template.Must(shared.Clone()).ParseFS(files, "templates/list.html", "templates/"+l.name+".html"))
	}
	return all
}

type static struct {
	kind, tag string
	content   []byte
}

// staticFiles are the stylesheet, with the colours of states and racks, the script and the icon.
func staticFiles() map[string]static {
	all := make(map[string]static)
	for name, kind := range map[string]string{"page.css": "text/css; charset=utf-8", "page.js": "text/javascript; charset=utf-8", "icon.svg": "image/svg+xml"} {
		content, err := fs.ReadFile(files, "static/"+name)
		if err != nil {
			panic(err) // it is embedded
		}
		if name == "page.css" {
			for _, l := range report.Looks() {
				content = append(content, "."+stateClass(l.State)+"{background:"+l.Colour+"}\n"...)
			}
			content = append(content, report.RackStyle()+"\n"...)
		}
		sum := sha256.Sum256(content)
		all[name] = static{kind, `"` + hex.EncodeToString(sum[:12]) + `"`, content}
	}
	return all
}

func (p *page) serveStatic(w http.ResponseWriter, r *http.Request) {
	f, ok := p.static[r.PathValue("name")]
	if !ok {
		p.problem(w, r, http.StatusNotFound, "There is no such file.", link{})
		return
	}
	w.Header().Set("Content-Type", f.kind)
	w.Header().Set("Cache-Control", "no-cache")
	w.Header().Set("ETag", f.tag)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(f.content))
}

func (p *page) manifest(d *report.Document) link {
	source := p.Fleet.Source(d)
	file, line := (&model.Meta{Source: source}).Position()
	return link{source, p.Web.File(p.Fleet.Documents().Fleet.Observed.Commit(), file, line)}
}
