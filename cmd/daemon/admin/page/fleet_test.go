package page_test

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ingot/cmd/daemon/admin/page"
	"ingot/gitsource/forge"
	"ingot/model"
	"ingot/model/must"
	"ingot/reconcile/report"
)

var now = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) time.Time { return now.Add(-d) }

const hostile = `<script>alert("1")</script>`

// fleet is a page.Fleet of fixed values.
type fleet struct {
	docs     *report.Documents
	leases   []report.LeaseRow
	pools    []report.PoolRow
	images   []report.ImageRow
	cards    map[string]report.Card
	uses     []string
	sources  map[string]string // by path of the document
	git      page.Git
	history  map[string][]page.Commit
	requests map[string]page.Requests
}

func (f *fleet) Documents() *report.Documents              { return f.docs }
func (f *fleet) Generation() uint64                        { return 7 }
func (f *fleet) Leases() []report.LeaseRow                 { return f.leases }
func (f *fleet) Pools() []report.PoolRow                   { return f.pools }
func (f *fleet) Images() []report.ImageRow                 { return f.images }
func (f *fleet) TicketUses(model.ServerName) []string      { return f.uses }
func (f *fleet) Source(o *report.Document) string          { return f.sources[o.Path()] }
func (f *fleet) Git() page.Git                             { return f.git }
func (f *fleet) History(name string, _ int) []page.Commit  { return f.history[name] }
func (f *fleet) Card(mac string) (c report.Card, has bool) { c, has = f.cards[mac]; return c, has }
func (f *fleet) Requests(bmc string) (r page.Requests, has bool) {
	r, has = f.requests[bmc]
	return r, has
}

func document(kind model.Kind, name string, labels map[string]string, spec, status, record any) *report.Document {
	d := &report.Document{APIVersion: model.APIVersion, Kind: string(kind), Metadata: report.Metadata{Name: name, Labels: labels}, Spec: spec, Status: status, Decided: record}
	if ns, name, ok := strings.Cut(name, "/"); ok {
		d.Metadata.Namespace, d.Metadata.Name = ns, name
	}
	return d
}

func overview(state string, summary report.Summary, waiting ...report.Waiting) report.Overview {
	summary.State, summary.Since = state, ago(time.Hour)
	return report.Overview{Summary: summary, Waiting: waiting}
}

func server(name string, labels map[string]string, spec report.ServerSpec, status report.ServerStatus) *report.Document {
	status.State, status.PowerState, status.Manufacturer, status.Model, status.SerialNumber = model.ServerState(status.Summary.State), status.Summary.Power, "Acme", "One", "S-"+name
	return document(model.KindServer, name, labels, spec, status, &model.ServerRecord{RecordIdentity: model.RecordIdentity{Name: model.ServerName(name)}})
}

// small is a fleet with one object of each kind, and with all that a page can show.
func small() *fleet {
	five, armed := ago(5*time.Minute), ago(3*time.Minute)
	failed := report.Waiting{
		Reason: model.ReasonCleanupFailed, Message: "disk S-77 was not wiped", Since: five, Actor: "rack operator", Next: "check the disks in the message",
	}
	boots := report.Waiting{Reason: model.ReasonWaitingForBoot, Message: "it boots", Since: armed}
	noServer := report.Waiting{Reason: model.ReasonNoServerFree, Message: "4 servers: 2 Reserved, 1 lack label rack=r9, 1 cordoned", Since: five, Actor: "rack operator", Next: "free or add a server"}
	held := report.Waiting{
		Reason: model.ReasonGuardHeld, Message: "its release is held", Since: five, Actor: "rack operator", Approve: "Ingot-Approve: X4YRGUC5KSZPNQ2M", Revert: "git revert 8c1f0a2b3c4d",
	}
	booting := server("rack1-02", map[string]string{"rack": "r1", "location": "berlin", "shelf": "3"},
		report.ServerSpec{BMCRef: &model.LocalRef{Name: "rack1-02-bmc"}, ServerClaimRef: &model.ObjectRef{Namespace: "default", Name: "web"}},
		report.ServerStatus{
			Overview: overview("Reserved", report.Summary{
				Claim: "default/web", BMC: "rack1-02-bmc", Power: model.PowerOn, Rack: "berlin/r1 U3", Addresses: []string{"192.0.2.7", "2001:db8::7"},
			}, boots, held),
			BootTimeline:      []model.BootStep{{Stage: model.StageArmed, At: armed}, {Stage: model.StageDHCP, At: armed.Add(40 * time.Second)}, {Stage: model.StageScript, At: armed.Add(42 * time.Second)}},
			Conditions:        []metav1.Condition{{Type: "BootProgress", Status: metav1.ConditionFalse, Reason: "IPXEScript", Message: "last seen: iPXE script", LastTransitionTime: metav1.NewTime(armed)}},
			NetworkInterfaces: []model.NetworkInterface{{Name: "eth0", MACAddress: "02:00:00:00:00:01", IPs: []string{"192.0.2.7"}}},
			Storages:          []report.StorageStatus{{Name: "nvme", Drives: []report.DriveStatus{{Name: "Disk 1", Capacity: "937692504Ki", Model: hostile}}}},
		})
	booting.Decided.(*model.ServerRecord).Boot.Ticket = &model.Ticket{ID: "t1", Purpose: model.PurposeClaim, ArmedAt: armed}
	percent := 40
	docs := []*report.Document{
		server("rack1-01", map[string]string{"rack": "r1", "location": "berlin", "shelf": "1"}, report.ServerSpec{}, report.ServerStatus{
			Overview: overview("Available", report.Summary{Power: model.PowerOff, Rack: "berlin/r1 U1"}),
		}),
		booting,
		server("rack1-03", map[string]string{"rack": "r1", "location": "berlin", "shelf": "5", "owner": hostile}, report.ServerSpec{}, report.ServerStatus{
			Overview: overview("Error", report.Summary{Power: model.PowerOn, Rack: "berlin/r1 U5"}, failed),
		}),
		server("rack1-04", nil, report.ServerSpec{}, report.ServerStatus{
			Overview: overview("Cleanup", report.Summary{Power: model.PowerOn}),
			Cleanup:  &report.CleanupStatus{Mode: "secure", Disks: []report.DiskStatus{{Name: "sda", Serial: "S-9", SizeBytes: 1e12, Method: "overwrite", Percent: &percent}}},
		}),
		document(model.KindBMC, "rack1-02-bmc", nil, report.BMCSpec{EndpointRef: &model.LocalRef{Name: "e1"}}, report.BMCStatus{
			Overview: overview("Enabled", report.Summary{Addresses: []string{"192.0.2.130:443"}}), IP: "192.0.2.130", Servers: []model.ServerName{"rack1-02"}, FirmwareVersion: "1.2",
		}, nil),
		document(model.KindEndpoint, "e1", nil, report.EndpointSpec{MACAddress: "02:00:00:00:00:09", IP: "192.0.2.130"}, report.EndpointStatus{
			Overview: overview("Unrecognised", report.Summary{Addresses: []string{"192.0.2.130"}},
				report.Waiting{Reason: model.ReasonNoMACPrefix, Message: "no entry of the MAC prefix database", Since: ago(time.Hour), Actor: "rack operator", Next: "add an entry"}), Network: "bmc",
		}, nil),
		document(model.KindServerClaim, "default/web", nil, model.ServerClaimSpec{Image: "flatcar:1"}, report.ClaimStatus{
			Overview: overview("Bound", report.Summary{Server: "rack1-02", Image: "flatcar:1", Addresses: []string{"192.0.2.7", "2001:db8::7"}}, boots),
		}, &model.ClaimRecord{Name: "default/web"}),
		document(model.KindServerClaim, "default/db", nil, model.ServerClaimSpec{Image: "flatcar:1"}, report.ClaimStatus{
			Overview: overview("Unbound", report.Summary{Image: "flatcar:1"}, noServer),
		}, &model.ClaimRecord{Name: "default/db"}),
		document(model.KindServerBootConfiguration, "default/tool", nil, report.BootConfigurationSpec{}, report.BootConfigurationStatus{
			Overview: overview("Bound", report.Summary{Server: "rack1-04"}),
		}, &model.ClaimRecord{Name: model.BootConfigurationName("default", "tool")}),
	}
	return &fleet{
		docs: report.NewDocuments(&report.Fleet{
			Source: report.Source{Observed: "main@sha1:9999999999999999", Applied: "main@sha1:8c1f0a2b3c4d5e6f"},
			Holds: []report.Hold{{
				Subject: "1 step held by the guard", Message: "1 step would be more than the limit of 1", Approve: held.Approve, Revert: held.Revert, Since: five,
				Effects: []report.Effect{{Server: "rack1-02", Text: "server rack1-02 is wiped", Approve: "Ingot-Approve: ALONE"}}, LeftOut: 2,
			}},
			Problems: []model.Problem{
				{Severity: model.SeverityWarning, File: "bmcs/a.yaml", Line: 3, Message: "spec.power has no effect"},
				{Severity: model.SeverityError, File: "claims/web.yaml", Line: 7, Column: 3, Object: "ServerClaim default/web", Field: "spec.imge", Message: `unknown field, did you mean "image"? ` + hostile},
			},
		}, docs),
		leases: []report.LeaseRow{{
			Row: report.Row{Name: "192.0.2.7", State: report.LeaseLive, Since: five}, Network: "hosts", Role: "host", MAC: "02:00:00:00:00:01", Server: "rack1-02", CircuitID: "Eth1/7",
			Renewed: five, Expires: now.Add(time.Hour),
		}},
		pools:   []report.PoolRow{{Row: report.Row{Name: "192.0.2.128/25", State: report.PoolHasRoom}, Network: "bmc", Size: 200, Used: 13}},
		images:  []report.ImageRow{{Row: report.Row{Name: "sha256:8c1f", State: report.ImageFetching}, Image: "flatcar:1", Part: "kernel", Size: 2e6, Fetched: 1e6, Pinned: true}},
		sources: map[string]string{"servers/rack1-02.yaml": "servers.yaml:3", "serverclaims/default/web.yaml": "claims.yaml:5", "bmcs/rack1-02-bmc.yaml": "bmcs.yaml:9"},
		git: page.Git{
			Seen: "main@sha1:9999999999999999", InForce: ago(2 * time.Hour), Fetched: ago(20 * time.Second),
			Status: page.Commit{Hash: "5ca1ab1e5ca1ab1e", At: ago(time.Minute), Lines: []string{"rack1-03: Cleanup → Error " + hostile}},
		},
		history:  map[string][]page.Commit{"rack1-02": {{Hash: "5ca1ab1e00", At: five, Lines: []string{"rack1-02: Available → Reserved for default/web"}}}},
		requests: map[string]page.Requests{"rack1-02-bmc": {Requests: 12, Connections: 2, Sessions: 1}},
		cards: map[string]report.Card{"02:00:00:00:00:09": {
			MAC: "02:00:00:00:00:09", Since: ago(time.Hour), Limited: "DHCPv4 over rateLimit.client",
			Events: []model.CardEvent{
				{At: ago(10 * time.Minute), Protocol: model.CardDHCPv4, Asked: "DISCOVER by pxe", From: "relay 192.0.2.1 port Eth1/7", Result: model.CardAnswered, Answer: "OFFER 192.0.2.130"},
				{At: ago(9 * time.Minute), Protocol: model.CardTFTP, Asked: "undionly.kpxe", From: "192.0.2.130", Result: model.CardServed, Bytes: 71_680, Seconds: 0.4},
				{At: ago(2 * time.Minute), Last: ago(time.Minute), Times: 12, Protocol: model.CardHTTP, Asked: hostile, Result: model.CardRefused, Answer: hostile},
			},
		}},
		uses: []string{"iPXE script for 192.0.2.7, once at 2026-11-26T11:58:00Z, served"},
	}
}

// large is a fleet of n servers in racks of 20. Half of them have claims, and one in a hundred needs action.
func large(n int) *fleet {
	var docs []*report.Document
	for i := range n {
		name, rack := fmt.Sprintf("rack%03d-%02d", i/20, i%20), fmt.Sprintf("r%03d", i/20)
		labels := map[string]string{"location": fmt.Sprintf("room-%d", i/1000), "rack": rack, "shelf": fmt.Sprint(1 + 2*(i%20))}
		sum := report.Summary{BMC: model.BMCName(name + "-bmc"), Power: model.PowerOn, Rack: fmt.Sprintf("room-%d/%s U%d", i/1000, rack, 1+2*(i%20))}
		o := overview("Available", sum)
		switch {
		case i%100 == 7:
			o = overview("Error", sum, report.Waiting{Reason: model.ReasonCleanupFailed, Message: "disk S-" + name + " was not wiped", Since: ago(time.Hour), Actor: "rack operator"})
		case i%2 == 0:
			sum.Claim, sum.Addresses = model.ClaimName(fmt.Sprintf("default/c%05d", i)), []string{fmt.Sprintf("192.0.2.%d", i%250+1)}
			o = overview("Reserved", sum)
			docs = append(docs, document(model.KindServerClaim, string(sum.Claim), nil, model.ServerClaimSpec{Image: "flatcar:1"}, report.ClaimStatus{
				Overview: overview("Booted", report.Summary{Server: model.ServerName(name), Image: "flatcar:1", Addresses: sum.Addresses}),
			}, &model.ClaimRecord{Name: sum.Claim}))
		}
		docs = append(docs, server(name, labels, report.ServerSpec{BMCRef: &model.LocalRef{Name: name + "-bmc"}}, report.ServerStatus{Overview: o}))
		docs = append(docs, document(model.KindBMC, name+"-bmc", labels, report.BMCSpec{}, report.BMCStatus{Overview: overview("Enabled", report.Summary{})}, nil))
	}
	return &fleet{docs: report.NewDocuments(&report.Fleet{Source: report.Source{Applied: "main@sha1:8c1f0a2b3c4d5e6f"}}, docs)}
}

func handler(f page.Fleet) http.Handler {
	web, err := forge.NewWeb("https://github.com/infra/metal", "", "")
	if err != nil {
		panic(err)
	}
	return page.New(page.Options{Fleet: f, Web: web, StatusBranch: "status", Clock: func() time.Time { return now }, Log: slog.New(slog.DiscardHandler)})
}

func get(h http.Handler, method, target string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(method, target, nil))
	return w
}

// shown returns a page with single spaces.
func shown(t *testing.T, h http.Handler, target string, code int) string {
	t.Helper()
	w := get(h, http.MethodGet, target)
	body := must.Get(io.ReadAll(w.Body))(t)
	if w.Code != code {
		t.Fatalf("GET %s: %d, want %d\n%s", target, w.Code, code, body)
	}
	return strings.Join(strings.Fields(string(body)), " ")
}

// contains checks a page for texts, and with ! in front for their absence.
func contains(t *testing.T, page string, want ...string) {
	t.Helper()
	for _, w := range want {
		without, isAbsent := strings.CutPrefix(w, "!")
		if strings.Contains(page, without) == isAbsent {
			t.Errorf("wrong page for %q:\n%s", w, page)
		}
	}
}

// names are the first cells of the rows of a list.
func names(page string) (all []string) {
	for _, part := range strings.Split(page, `<th scope="row">`)[1:] {
		name, _, _ := strings.Cut(part, "</th>")
		if _, inner, ok := strings.Cut(name, ">"); ok {
			name, _, _ = strings.Cut(inner, "<")
		}
		all = append(all, name)
	}
	return slices.Clip(all)
}
