package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"ingot/model"
	"ingot/model/must"
	"ingot/reconcile/internal/fleettest"
	"ingot/reconcile/internal/plantest"
)

func TestDocumentsReadBackAreThoseWritten(t *testing.T) {
	r, written := reportOf(variedFleet()), documentsOf(variedFleet())
	read, err := ReadDocuments(fleettest.Rendered(t, r))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range Folders() {
		want, got := written.List(f), read.List(f)
		if len(want) == 0 || len(got) != len(want) {
			t.Fatalf("%s: %d documents, want %d", f, len(got), len(want))
		}
		for i := range got {
			if diff := cmp.Diff(want[i].Overview(), got[i].Overview()); diff != "" || got[i].Path() != want[i].Path() {
				t.Errorf("%s read as %s (-written +read):\n%s", want[i].Path(), got[i].Path(), diff)
			}
		}
	}
	if diff := cmp.Diff(written.Fleet, read.Fleet); diff != "" {
		t.Errorf("%s (-written +read):\n%s", model.ReportFleet, diff)
	}
}

func TestUnreadableFileIsNamedAndOthersAreRead(t *testing.T) {
	docs, err := ReadDocuments(map[string][]byte{
		"README.md": []byte("# Fleet"), "servers/s1.yaml": []byte("metadata: [\n"), "servers/s2.yaml": []byte("kind: Server\nmetadata: {name: s2}\nunknown: 1\nstatus: {state: Initial}\n"),
	})
	if err == nil || !strings.HasPrefix(err.Error(), "servers/s1.yaml:1:1: ") {
		t.Errorf("got error %v", err)
	}
	if docs.Fleet != nil || len(docs.List(Servers)) != 1 || docs.Get(Servers, "s2") == nil {
		t.Errorf("got %+v", docs)
	}
}

func TestParseDocument(t *testing.T) {
	for kind, folder := range folders {
		doc := sections[folder]
		filled(&doc)
		doc.Kind = kind
		data := must.Get(json.Marshal(&doc))(t)
		if diff := cmp.Diff(&doc, must.Get(ParseDocument(data))(t), cmpopts.IgnoreUnexported(Document{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", kind, diff)
		}
	}
	for data, want := range map[string]string{
		`{`: "read document: unexpected end of JSON input", `{"kind":"Server","metadata":{"name":"s1"},"status":7}`: "read Server s1: json: cannot unmarshal number",
	} {
		if _, err := ParseDocument([]byte(data)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: got error %v, want %s", data, err, want)
		}
	}
}

func TestFind(t *testing.T) {
	in := variedFleet()
	in.Desired.Claims["team/c00000"] = fleettest.Claim("c00000", func(c *model.ServerClaim) { c.Namespace = "team" })
	docs := documentsOf(in)
	for name, tc := range map[string]struct{ noun, name, want string }{
		"name":                      {"server", server0, "servers/bmc00000-system-0.yaml"},
		"namespace and name":        {"claim", "team/c00000", "serverclaims/team/c00000.yaml"},
		"name in one namespace":     {"claim", "c00001", "serverclaims/default/c00001.yaml"},
		"boot configuration":        {"boot-configuration", "b", "serverbootconfigurations/default/b.yaml"},
		"MAC address":               {"endpoint", "02-00-00-00-00-0A", "endpoints/e.yaml"},
		"maintenance":               {"maintenance", "m", "servermaintenances/m.yaml"},
		"name in several":           {"claim", "c00000", "2 claims are called c00000: give the namespace as well, such as default/c00000"},
		"wrong letter":              {"server", "bmc00000-systen-0", "server bmc00000-systen-0 is not known, did you mean bmc00000-system-0?"},
		"part of names":             {"bmc", "0000", "bmc 0000 is not known, did you mean bmc00000 or bmc00001 or bmc00002?"},
		"nothing like it":           {"readiness-rule", "zzzzzz", "readiness-rule zzzzzz is not known"},
		"MAC address of no device":  {"endpoint", "02:00:00:00:00:99", "endpoint 02:00:00:00:00:99 is not known"},
		"namespace without a claim": {"claim", "other/zzzzzzzzzzz", "claim other/zzzzzzzzzzz is not known"},
	} {
		t.Run(name, func(t *testing.T) {
			d, err := docs.Find(FolderOf(tc.noun), tc.name)
			got := fmt.Sprint(err)
			if err == nil {
				got = d.Path()
			}
			if got != tc.want || errors.Is(err, ErrUnknownObject) != strings.Contains(tc.want, "is not known") {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
	if f := FolderOf("secret"); f != "" {
		t.Errorf("secret is in %s", f)
	}
}

func TestMatches(t *testing.T) {
	in := variedFleet()
	in.Observed.ServerFacts[server0].Inventory.SerialNumber = "SN-17"
	docs := documentsOf(in)
	for part, want := range map[string][]string{
		"":                    {server0, server1},
		"SYSTEM-0":            {server0, server1},
		"rack=r1":             {server0, server1},
		"berlin/r1 u3":        {server1},
		"sn-17":               {server0},
		"c00001":              {server1},
		"-4000-8000-00000000": {server0, server1},
		"nothing like it":     nil,
	} {
		var got []string
		for _, name := range []string{server0, server1} {
			if docs.Get(Servers, name).Matches(part) {
				got = append(got, name)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q matches %v, want %v", part, got, want)
		}
	}
	for part, doc := range map[string]*Document{
		"rack operator": docs.Get(Claims, waiting0), "noserverfree": docs.Get(Claims, waiting0), "192.0.2.60": docs.Get(Claims, "default/c00001"),
		"00:00:0a": docs.Get(Endpoints, "e"), "02:00": docs.Get(BMCs, "bmc00002"),
	} {
		if !doc.Matches(part) {
			t.Errorf("%s does not match %q: %+v", doc.Path(), part, doc)
		}
	}
}

func TestFactsDownToTheEndpoint(t *testing.T) {
	in := variedFleet()
	name := string(fleettest.ServerName(2))
	in.Desired.Servers[model.ServerName(name)].Spec = model.ServerSpec{Unclaimable: true, Taints: []model.Taint{{Key: "a"}, {Key: "b", Value: "c"}}}
	docs := documentsOf(in)
	var got []string
	for folder, object := Claims, "default/c00002"; object != ""; {
		d := docs.Get(folder, object)
		for _, f := range docs.Facts(d) {
			got = append(got, fmt.Sprintf("%s %s: %s", d.Folder().Noun(), f.Name, f.Value))
		}
		folder, object = d.DependsOn()
	}
	const macs = "02:00:00:00:02:00, 02:00:00:00:02:01, 02:00:00:00:02:02, 02:00:00:00:02:03 (BMC)"
	want := []string{
		"claim image: os:1", "claim addresses: 192.0.2.60 (by its discovery)",
		"server power: On", "server claim: default/c00002", "server addresses: 192.0.2.60 (by its discovery)", "server uuid: 00000000-0000-4000-8000-000000000003",
		"server MAC addresses: " + macs, "server cordoned: yes: unclaimable is set", "server taint: a", "server taint: b=c", "server place: berlin/r1 U5",
		"bmc address: 192.0.2.77", "endpoint MAC address: 02:00:00:00:00:0a", "endpoint address: 192.0.2.77", "endpoint BMC: bmc00002",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestFactsOfLastGoodClaim(t *testing.T) {
	for want, behind := range map[string][]string{"team/web.yaml": nil, "a.yaml or b.yaml": {"a.yaml", "b.yaml"}, "any of them": {"*"}} {
		in := plantest.BigFleet(1, 1)
		in.Desired.LastGood = []model.LastGood{
			{Identity: model.ClaimName("other/c00000").Identity(), Path: "x.yaml"},
			{Identity: model.ClaimName(claim0).Identity(), Path: "team/web.yaml", Since: "main@sha1:0123456789abcdef0123456789abcdef01234567", Behind: behind},
		}
		docs := documentsOf(in)
		fact := Fact{Name: "in force as it was", Value: "as team/web.yaml had it at revision main@0123456, because a file with errors may have it now: " + want}
		if got := docs.Facts(docs.Get(Claims, claim0)); !slices.Contains(got, fact) {
			t.Errorf("facts %v, want %v", got, fact)
		}
	}
}

func TestBootHint(t *testing.T) {
	in, rec := plantest.Ticketed(model.StateReserved, model.PurposeClaim)
	in.Observed.Progress[rec.Name] = &model.Progress{Ticket: "t", DHCPAt: in.Now}
	if got := documentsOf(in).Get(Servers, server0).BootHint(); !strings.Contains(got, "TFTP") {
		t.Errorf("after DHCP: %q", got)
	}
	in.Observed.BootStates[rec.Name] = &model.BootState{Ticket: "t", ReceivedAt: in.Now}
	if got := documentsOf(in).Get(Servers, server0).BootHint(); got != "" {
		t.Errorf("after the boot: %q", got)
	}
}

// A claim that Git lacks has no document while its server still has it.
func TestRemovedClaim(t *testing.T) {
	in := plantest.BigFleet(1, 1)
	delete(in.Desired.Claims, claim0)
	docs := documentsOf(in)
	for name, want := range map[string]string{"c00000": server0, claim0: server0, "other/c00000": ""} {
		got := ""
		if d := docs.RemovedClaim(name); d != nil {
			got = d.Name()
		}
		if got != want || docs.Get(Claims, claim0) != nil {
			t.Errorf("claim %s: got server %q, want %q", name, got, want)
		}
	}
}

// The document, the page and the commit have the same word for the state of a claim.
func TestClaimStateIsTheSameInAllViews(t *testing.T) {
	in := plantest.BigFleet(1, 1)
	r := reportOf(in)
	if got := documentsOf(in).Get(Claims, claim0).Overview().Summary.State; got != ClaimBooted {
		t.Errorf("the document has %s", got)
	}
	if page := r.Documents[model.ReportReadme].Text; !strings.Contains(page, "c00000.yaml) | Booted |") {
		t.Errorf("the page has\n%s", page)
	}
	if all := lines(newsOf(nil, r.Documents, nil)); !slices.Contains(all, "default/c00000: Booted on "+server0) {
		t.Errorf("the commit has %q", all)
	}
}

func TestRenamedClaimIsShownAtOnce(t *testing.T) {
	in := plantest.BigFleet(1, 1)
	fleettest.Renamed("c00000", "shop")(in.Desired)
	r := reportOf(in)
	shown := string(fleettest.Rendered(t, r)["serverclaims/default/shop.yaml"])
	if !strings.Contains(shown, "phase: Bound") {
		t.Errorf("it shows\n%s", shown)
	}
}

func TestABMCNamesTheSystemsThatAreNoServers(t *testing.T) {
	in := withRule(1)
	const why = "/redfish/v1/Systems/HGX_Baseboard_0 is no server: it cannot be reset"
	for name, facts := range in.Observed.BMCFacts {
		facts.Others = []string{why}
		files := fleettest.Rendered(t, reportOf(in))
		if got := string(files["bmcs/"+string(name)+".yaml"]); !strings.Contains(got, "otherSystems:\n  - '"+why+"'") {
			t.Errorf("it shows\n%s", got)
		}
		return
	}
	t.Error("there is no BMC")
}
