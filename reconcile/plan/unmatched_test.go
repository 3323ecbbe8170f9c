package plan

import (
	"fmt"
	"strings"
	"testing"

	"ingot/model"
)

// TestManifestsOfServersThatAreNotKnown: what speaks of a server or a label that nothing has
// is a warning, at its place, which says what may have been meant.
func TestManifestsOfServersThatAreNotKnown(t *testing.T) {
	const (
		head        = "apiVersion: metal.ironcore.dev/v1alpha1\n"
		maintenance = head + "kind: ServerMaintenance\nmetadata: {name: dimm}\nspec:\n  serverRef:\n    name: %s\n"
		claim       = head + "kind: ServerClaim\nmetadata: {name: web}\nspec: {power: \"On\", image: os, %s}\n"
		server      = head + "kind: Server\nmetadata: {name: %s, labels: {rack: b}}\nspec: {%s}\n"
		rule        = head + "kind: ServerReadinessRule\nmetadata: {name: r}\nspec: {enforcementMode: Continuous, taint: {key: a}, " +
			"conditions: [{type: Discovered, requiredStatus: \"True\"}], serverSelector: {%s}}\n"
		near = `, did you mean "bmc00000-system-0"?`
	)
	tests := map[string]struct {
		manifest string
		change   func(*Input)
		want     string // problem
		claim    string // why the claim has no server
		pending  string // why the maintenance has none
	}{
		"a maintenance of a server that is known": {manifest: fmt.Sprintf(maintenance, "bmc00000-system-0")},
		"a maintenance of a misspelt server": {
			manifest: fmt.Sprintf(maintenance, "bmc00000-sytem-0"),
			want:     "f:6:11: warning: ServerMaintenance dimm: spec.serverRef.name: server bmc00000-sytem-0 is not known" + near,
			pending:  "server bmc00000-sytem-0 is not known" + near,
		},
		"a maintenance of a server whose manifest cannot be used": {
			manifest: fmt.Sprintf(maintenance, "rack-7"),
			change: func(in *Input) {
				in.Desired.Quarantined[model.Identity{Kind: model.KindServer, Name: "rack-7"}] = []string{""}
			},
			pending: "server rack-7 is not known",
		},
		"a maintenance of a server whose record cannot be read": {
			manifest: fmt.Sprintf(maintenance, "rack-7"),
			change: func(in *Input) {
				in.Observed.Fleet.Unreadable = []model.UnreadableRecord{{Server: "rack-7"}}
			},
			pending: "server rack-7 is not known",
		},
		"a BMC was not asked yet": {
			manifest: fmt.Sprintf(maintenance, "rack-7"),
			change:   func(in *Input) { delete(in.Observed.BMCFacts, "bmc00001") },
			pending:  "server rack-7 is not known",
		},
		"a BMC has never answered": {
			manifest: fmt.Sprintf(maintenance, "rack-7"),
			change: func(in *Input) {
				delete(in.Observed.BMCFacts, "bmc00001")
				in.Observed.BMCs["bmc00001"] = &model.BMCRecord{Name: "bmc00001", Reason: model.ReasonConnectionFailed}
			},
			want:    "f:6:11: warning: ServerMaintenance dimm: spec.serverRef.name: server rack-7 is not known; 1 BMC could not be read yet",
			pending: "server rack-7 is not known",
		},
		"a claim of a misspelt server": {
			manifest: fmt.Sprintf(claim, "serverRef: {name: bmc00000-system-00}"),
			want:     "f:4:50: warning: ServerClaim default/web: spec.serverRef.name: server bmc00000-system-00 is not known" + near,
			claim:    "server bmc00000-system-00 is not known" + near,
		},
		"a boot configuration of a misspelt server": {
			manifest: head + "kind: ServerBootConfiguration\nmetadata: {name: c}\nspec: {image: os, serverRef: {name: bmc00000-system-o}}\n",
			want:     "f:4:37: warning: ServerBootConfiguration default/c: spec.serverRef.name: server bmc00000-system-o is not known" + near,
		},
		"a claim of a label whose value is misspelt": {
			manifest: fmt.Sprintf(server, "bmc00001-system-0", "") + "---\n" + fmt.Sprintf(claim, "serverSelector: {matchLabels: {rack: bb}}"),
			claim:    `2 servers: 2 lack label rack=bb; no server has label rack=bb, did you mean "rack=b"?`,
		},
		"a claim of a label whose key is misspelt": {
			manifest: fmt.Sprintf(server, "bmc00001-system-0", "") + "---\n" +
				fmt.Sprintf(claim, "serverSelector: {matchExpressions: [{key: rakc, operator: Exists}]}"),
			claim: `2 servers: 2 lack label rakc; no server has label rakc, did you mean "rack"?`,
		},
		"a claim of a label like none": {
			manifest: fmt.Sprintf(server, "bmc00001-system-0", "") + "---\n" +
				fmt.Sprintf(claim, "serverSelector: {matchExpressions: [{key: rack, operator: In, values: [seven]}]}"),
			claim: `2 servers: 2 lack label rack in (seven)`,
		},
		"a rule for a label that no server has": {
			manifest: fmt.Sprintf(server, "bmc00001-system-0", "") + "---\n" + fmt.Sprintf(rule, "matchLabels: {rakc: b}"),
			want: `f:6: warning: ServerReadinessRule r: spec.serverSelector: no server has label rakc=b, ` +
				`did you mean "rack"?`,
		},
		"a rule for a label that a server has": {
			manifest: fmt.Sprintf(server, "bmc00001-system-0", "") + "---\n" + fmt.Sprintf(rule, "matchLabels: {rack: b}"),
		},
		"a Server of a misspelt name": {
			manifest: fmt.Sprintf(server, "bmc00000-system-o", ""),
			want:     "f:1: warning: Server bmc00000-system-o: metadata.name: has no effect: no server is called so" + near,
		},
		"a Server with a misspelt UUID": {
			manifest: fmt.Sprintf(server, "rack-7", "systemUUID: 00000000-0000-4000-8000-000000000011"),
			want: "f:1: warning: Server rack-7: spec.systemUUID: has no effect: no machine has UUID 00000000-0000-4000-8000-000000000011, " +
				`did you mean "00000000-0000-4000-8000-000000000001"?`,
		},
		"a Server with the UUID of another machine than its name's": {
			manifest: fmt.Sprintf(server, "bmc00000-system-0", "systemUUID: 123e4567-e89b-12d3-a456-426614174000"),
			want: "f:1: warning: Server bmc00000-system-0: spec.systemUUID: has no effect: no machine has UUID " +
				"123e4567-e89b-12d3-a456-426614174000, server bmc00000-system-0 has 00000000-0000-4000-8000-000000000001",
		},
		"a second manifest of one machine": {
			manifest: fmt.Sprintf(server, "bmc00000-system-0", "") + "---\n" +
				fmt.Sprintf(server, "rack-7", "systemUUID: 00000000-0000-4000-8000-000000000001"),
			want: "f:6: warning: Server rack-7: spec.systemUUID: has no effect: the machine with UUID 00000000-0000-4000-8000-000000000001 " +
				"is server bmc00000-system-0, of which there is another manifest",
		},
		"a maintenance of a Server in Git that no machine matches": {
			manifest: fmt.Sprintf(maintenance, "rack-7") + "---\n" + fmt.Sprintf(server, "rack-7", ""),
			want: "f:6:11: warning: ServerMaintenance dimm: spec.serverRef.name: server rack-7 is not known: no machine matches the Server " +
				"of that name in Git\nf:8: warning: Server rack-7: metadata.name: has no effect: no server is called so",
			pending: "server rack-7 is not known: no machine matches the Server of that name in Git",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			in := bigFleet(2, 0)
			objects, problems := model.Decode("f", []byte(tt.manifest), model.DecodeOptions{})
			if model.HasErrors(problems) {
				t.Fatal(problems)
			}
			for _, o := range objects {
				in.Desired.Add(o)
			}
			if tt.change != nil {
				tt.change(in)
			}
			r := Plan(in)
			var got []string
			for _, p := range r.Unmatched {
				got = append(got, p.String())
			}
			if got := strings.Join(got, "\n"); got != tt.want {
				t.Errorf("warnings:\n%s\nwant\n%s", got, tt.want)
			}
			if why := claimWhy(in, "default/web").Message; tt.claim != "" && why != tt.claim {
				t.Errorf("the claim waits for %q, want %q", why, tt.claim)
			}
			if len(r.Maintenances) > 0 && r.Maintenances[0].Unknown != tt.pending {
				t.Errorf("the maintenance waits for %q, want %q", r.Maintenances[0].Unknown, tt.pending)
			}
		})
	}
}

// TestUnmatchedTakesLittle: ten thousand manifests of servers that are not known are each
// told, and do not take time by their square.
func TestUnmatchedTakesLittle(t *testing.T) {
	const n = 10_000
	in := bigFleet(2_000, 0)
	for i := range n {
		in.Desired.Add(&model.Server{
			Meta: model.Meta{Name: fmt.Sprintf("rack-%05d", i)},
			Spec: model.ServerSpec{SystemUUID: fmt.Sprintf("00000000-0000-4000-9000-%012d", i)},
		})
		in.Desired.Add(&model.ServerMaintenance{Meta: model.Meta{Name: fmt.Sprintf("m%05d", i), References: []model.Reference{
			{To: model.Identity{Kind: model.KindServer, Name: fmt.Sprintf("bmc-%05d-system-0", i)}},
		}}, Spec: model.ServerMaintenanceSpec{ServerRef: model.LocalRef{Name: fmt.Sprintf("bmc-%05d-system-0", i)}}})
	}
	guessed, r := 0, Plan(in)
	for _, p := range r.Unmatched {
		if strings.Contains(p.Message, "did you mean") {
			guessed++
		}
	}
	if len(r.Unmatched) != 2*n || guessed == 0 || guessed > 20 {
		t.Errorf("got %d warnings, %d of them with a guess, want %d and a few", len(r.Unmatched), guessed, 2*n)
	}
}
