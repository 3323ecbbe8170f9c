package features

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"ingot/features/internal/rig"
	"ingot/model/must"
	"ingot/reconcile/report"
)

// TestThePageInABrowser keeps a browser open while the fleet changes and the daemon is restarted, and checks
// the accessibility of the pages with axe-core.
//
// The flag -artifacts keeps its screenshots, see go help testflag.
func TestThePageInABrowser(t *testing.T) {
	chromium := cmp.Or(lookPath("chromium"), lookPath("chromium-browser"), lookPath("google-chrome"))
	if chromium == "" {
		rig.Missing(t, "no browser is here: apt-get install --no-install-recommends chromium")
	}
	w, err := newSite(t.Name(), embeddedStore)
	if err != nil {
		t.Fatal(errors.Join(err, w.end()))
	}
	ctx := context.WithValue(t.Context(), siteKey{}, w)
	defer func() {
		if t.Failed() {
			t.Logf("%s", w.evidence())
		}
		if err := w.end(); err != nil {
			t.Error(err)
		}
	}()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	w.bindTickets = "nothing"        // so that no Endpoints are needed, which would wait for somebody
	w.admin = freeAddress(ownHost()) // that a restarted daemon has again
	must(w.inhabit(ctx, rackedServers()))
	for i, claim := range []string{"web-1", "web-2", "web-3", "web-4", "db-1"} {
		must(w.claim(map[string]string{"CLAIM": claim, "SERVER": fmt.Sprintf("rack%d-%02d", 1+i%2, 1+i/2)}))
	}
	must(w.commitClaims("web-1", "web-2", "web-3", "web-4", "db-1"))
	must(w.eventually(ctx, booted(5)))
	must(w.removeEndpoints())

	b := newBrowser(t, ctx, chromium, "http://"+w.admin)
	b.followsAChange(w)
	b.filtersAndFollowsALink()
	b.readsTheGuardsLine(w)
	b.survivesARestart(w)
	b.hasNoBarriers()
	b.showsALargeFleet(w)
}

func (w *site) removeEndpoints() error {
	var paths []string
	for _, m := range w.rack.Servers() {
		paths = append(paths, "endpoints/"+string(m.Name())+".yaml")
	}
	return w.remove("remove the endpoints", paths...)
}

func rackedServers() (rows []map[string]string) {
	for rack := 1; rack <= 2; rack++ {
		for n := 1; n <= 4; n++ {
			name := fmt.Sprintf("rack%d-%02d", rack, n)
			rows = append(rows, map[string]string{
				"SERVER": name, "BMC": name + "-bmc", "RACK": fmt.Sprintf("r%d", rack), "SHELF": fmt.Sprint(2*n - 1), "LOCATION": "berlin",
			})
		}
	}
	return rows
}

func booted(n int) func(summary) error {
	return func(s summary) error {
		for _, c := range s.Claims {
			if c.State == report.ClaimBooted {
				n--
			}
		}
		if n > 0 {
			return fmt.Errorf("%d claims are not Booted: %+v", n, s.Claims)
		}
		return nil
	}
}

func lookPath(program string) string {
	path, _ := exec.LookPath(program)
	return path
}

// browser is a browser with one page open.
type browser struct {
	*testing.T
	ctx    context.Context
	site   context.Context
	origin string
}

func newBrowser(t *testing.T, ctx context.Context, path, origin string) *browser {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.UserDataDir(t.TempDir()), chromedp.Flag("disable-quic", true),
		chromedp.Flag("hide-scrollbars", true), chromedp.WSURLReadTimeout(patience))
	open, stop := chromedp.NewExecAllocator(ctx, options...)
	t.Cleanup(stop)
	open, end := chromedp.NewContext(open)
	t.Cleanup(end)
	b := &browser{T: t, ctx: open, site: ctx, origin: origin}
	b.must(chromedp.Do(open)) // starts the browser, which ends with the context that it is started with
	b.do("set the size of its window", chromedp.EmulateViewport(1280, 900))
	return b
}

func (b *browser) do(what string, steps ...chromedp.Action[chromedp.Void]) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		b.Fatalf("%s: %v\n%s", what, err, b.text())
	}
}

func (b *browser) open(path string) {
	b.Helper()
	b.do("open "+path, chromedp.Navigate(b.origin+path))
}

func (b *browser) text() string {
	ctx, cancel := context.WithTimeout(b.ctx, 5*time.Second)
	defer cancel()
	text, err := chromedp.Run(ctx, chromedp.Evaluate[string](`location.href + "\n" + document.body.innerText`))
	if err != nil {
		return err.Error()
	}
	return text
}

func (b *browser) await(what, expression string) {
	b.Helper()
	var last error
	err := rig.Within(patience, func() error {
		ctx, cancel := context.WithTimeout(b.ctx, 5*time.Second)
		defer cancel()
		is, err := chromedp.Run(ctx, chromedp.Evaluate[bool]("!!("+expression+")"))
		if last = err; err == nil && !is {
			last = errors.New("it is not so")
		}
		return last
	})
	if err != nil {
		b.Fatalf("%s: %v\n%s", what, err, b.text())
	}
}

func (b *browser) mark() {
	b.Helper()
	b.run("window.marked = true")
}

func (b *browser) run(script string) {
	b.Helper()
	b.do(script, chromedp.Evaluate[chromedp.Void](script))
}

const (
	isMarked = `window.marked === true`
	isLive   = `document.documentElement.dataset.live === "live"`
)

func (b *browser) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// stateIs is an expression: the state of the object that the page is of.
func stateIs(state string) string {
	return fmt.Sprintf(`document.querySelector("#heading .state")?.textContent === %q && %s`, state, isMarked)
}

// followsAChange sees a claim's server change its state on a page that is not reloaded.
func (b *browser) followsAChange(w *site) {
	b.open("/servers/rack1-04")
	b.mark()
	b.await("the server is Available", stateIs("Available")+"&&"+isLive)
	b.must(w.claim(map[string]string{"CLAIM": "live", "SERVER": "rack1-04"}))
	b.must(w.commitClaims("live"))
	b.await("the server is Reserved", stateIs("Reserved"))
	b.await("its boot is over", `document.querySelector("#boot svg")?.getAttribute("aria-label").includes("boot state") && `+isMarked)
}

func (b *browser) filtersAndFollowsALink() {
	b.open("/servers")
	b.do("select a state", chromedp.Click(`#states a[href="/servers?state=Reserved"]`))
	b.await("six servers are listed", `location.search.includes("state=Reserved") && document.querySelectorAll("#rows tbody tr").length === 6`)
	b.do("follow the first link", chromedp.Click("#rows tbody th a"))
	b.await("the server's page is open", `document.querySelector("h1").textContent === "rack1-01" && document.querySelector("#heading .state").textContent === "Reserved"`)
}

// refuseOnce has the next page that the script fetches be refused. It notes the title that the
// page has whenever one is fetched.
const refuseOnce = `(() => {
	const get = window.fetch;
	window.titles = [];
	window.fetch = (...of) => window.titles.push(document.title) > 1 ? get(...of) : Promise.resolve(new Response("too many requests", { status: 429 }));
})()`

func (b *browser) readsTheGuardsLine(w *site) {
	b.open("/")
	b.mark()
	b.await("the page is live", isLive)
	b.run(refuseOnce)
	b.must(removeClaims(b.site, "web-1, web-2, web-3, web-4"))
	b.await("the page stays as it is when it is refused a newer one", `window.titles?.length > 1 && window.titles[1] === "Ingot"`)
	b.await("the guard's line is shown", `document.querySelector(".held pre")?.textContent.startsWith("Ingot-Approve: ") && `+isMarked)
	fleet, err := w.fleetDocument(b.site)
	b.must(err)
	if len(fleet.Holds) != 1 {
		b.Fatalf("holds: %+v", fleet.Holds)
	}
	b.await("the line approves the held steps", fmt.Sprintf(`document.querySelector(".held pre").textContent === %q`, fleet.Holds[0].Approve))
	b.await("buttons copy the commands", fmt.Sprintf(`document.querySelector(".held pre + .copy")?.title === 'git commit --allow-empty -m "Approve" -m "%s"'`, fleet.Holds[0].Approve))
	b.await("the title has the number of objects that need action", `/^\(\d+\) Ingot$/.test(document.title)`)
}

func (b *browser) survivesARestart(w *site) {
	b.must(w.kill())
	b.await("the page says that the connection is lost", `document.getElementById("connection").textContent.startsWith("Connection lost") && `+isMarked)
	b.must(w.start())
	b.await("the page says that it is back", isLive+" && "+isMarked)
	b.await("the racks are shown again", `document.querySelectorAll("svg.rack a").length === 8 && `+isMarked)
}

func (b *browser) hasNoBarriers() {
	axe := axeCore(b.T)
	b.must(b.claimNothingFits())
	for _, scheme := range []string{"light", "dark"} {
		b.wear(scheme)
		for name, path := range map[string]string{
			"fleet": "/", "servers": "/servers", "server": "/servers/rack1-04", "claim": "/claims/default/live", "unbound": "/claims/default/big",
			"problem": "/servers?nothing=1",
		} {
			b.open(path)
			b.keepPicture(name + "-" + scheme)
			b.noteBarriers(axe, name+" in "+scheme)
		}
	}
	for _, width := range []int64{360, 2560} {
		b.do("set the size of its window", chromedp.EmulateViewport(width, 900))
		b.open("/")
		b.await(fmt.Sprintf("nothing is cut off at %d pixels", width), `document.documentElement.scrollWidth <= window.innerWidth`)
		b.keepPicture(fmt.Sprintf("fleet-%d", width))
	}
}

// showsALargeFleet reads the list of 2,000 more claims, which no server fits.
func (b *browser) showsALargeFleet(w *site) {
	var file strings.Builder
	for n := range 2000 {
		fmt.Fprintf(&file, "---\napiVersion: metal.ironcore.dev/v1alpha1\nkind: ServerClaim\nmetadata: {name: many-%04d}\n"+
			"spec: {power: \"On\", image: \"oci:/images/none\", serverSelector: {matchLabels: {rack: r9}}}\n", n)
	}
	_, err := w.repo.Commit(map[string]string{"claims/many.yaml": file.String()}, "add many claims")
	b.must(err)
	b.must(w.eventually(b.site, func(s summary) error {
		_, err := claimIn(s, "many-1999")
		return err
	}))
	for _, scheme := range []string{"light", "dark"} {
		b.wear(scheme)
		for _, width := range []int64{360, 1280, 2560} {
			b.do("set the size of its window", chromedp.EmulateViewport(width, 900))
			b.open("/claims?q=many-1999")
			b.await("one of many claims is found", `document.querySelectorAll("#rows tbody tr").length === 1`)
			b.open("/claims")
			b.await(fmt.Sprintf("nothing is cut off at %d pixels", width), `document.documentElement.scrollWidth <= window.innerWidth`)
		}
	}
}

func (b *browser) claimNothingFits() error {
	w := siteOf(b.site)
	if err := w.claim(map[string]string{"CLAIM": "big", "RACK": "r9"}); err != nil {
		return err
	}
	if err := w.commitClaims("big"); err != nil {
		return err
	}
	err := w.eventually(b.site, func(s summary) error { // before it is known the page is an error, which has no scripts
		_, err := claimIn(s, "big")
		return err
	})
	if err != nil {
		return err
	}
	b.open("/claims/default/big")
	b.await("claim big waits", `document.querySelector("#waiting-0")`)
	return nil
}

func (b *browser) wear(scheme string) {
	b.Helper()
	_, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
	})
	b.must(err)
}

func (b *browser) keepPicture(name string) {
	b.Helper()
	shot, err := chromedp.Call(b.ctx, page.CaptureScreenshot, page.CaptureScreenshotParams{CaptureBeyondViewport: new(true)})
	b.must(err)
	b.must(os.WriteFile(filepath.Join(b.ArtifactDir(), name+".png"), shot.Data, 0o600))
}

const axeVersion = "4.14.1"

// axeCore is the script of axe-core, which setup fetches: it is none of the program.
func axeCore(t *testing.T) string {
	t.Helper()
	cache := must.Get(os.UserCacheDir())(t)
	dir := cmp.Or(os.Getenv("INGOT_AXE_DIR"), filepath.Join(cache, "ingot", "axe-core-"+axeVersion))
	script, err := os.ReadFile(filepath.Join(dir, "node_modules", "axe-core", "axe.min.js"))
	if err != nil {
		rig.Missing(t, "axe-core is not here: make setup fetches it where npm is installed (apt-get install --no-install-recommends npm)")
	}
	return string(script)
}

// barrier is what axe-core finds.
type barrier struct {
	ID, Impact, Help string
	Nodes            []string
}

const barriers = `axe.run(document, {resultTypes: ["violations"]}).then((r) => JSON.stringify(r.violations.map((v) => (
	{id: v.id, impact: v.impact, help: v.help, nodes: v.nodes.map((n) => n.html.slice(0, 300) + " " + n.failureSummary)}))))`

// noteBarriers fails for what axe-core finds serious or critical.
func (b *browser) noteBarriers(axe, where string) {
	b.Helper()
	b.do("load axe-core", chromedp.Evaluate[chromedp.Void](axe+";0"))
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	text, err := chromedp.Run(ctx, chromedp.Evaluate[string](barriers, chromedp.EvalAwaitPromise))
	b.must(err)
	var found []barrier
	b.must(json.Unmarshal([]byte(text), &found))
	for _, f := range found {
		says := fmt.Sprintf("%s: %s, %s: %s\n%s", where, f.Impact, f.ID, f.Help, strings.Join(f.Nodes, "\n"))
		if f.Impact == "serious" || f.Impact == "critical" {
			b.Error(says)
		} else {
			b.Log(says)
		}
	}
}
