package model

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// danglers are objects that name others which no manifest here defines, or which do not look
// like it.
const danglers = `
apiVersion: metal.ironcore.dev/v1alpha1
kind: BMC
metadata: {name: misspelt}
spec:
  endpointRef: {name: rack1-bmc}
  bmcSecretRef:
    name: admni
  protocol: {name: Redfish, port: 443}
---
{apiVersion: metal.ironcore.dev/v1alpha1, kind: BMC, metadata: {name: of-dhcp}, spec: {
  endpointRef: {name: oob-001a2b3c4d5e}, bmcSecretRef: {name: broken}, protocol: {name: Redfish, port: 443}}}
---
{apiVersion: metal.ironcore.dev/v1alpha1, kind: BMCSecret, metadata: {name: admin}}
---
{apiVersion: metal.ironcore.dev/v1alpha1, kind: Server, metadata: {name: s1}, spec: {
  bmcRef: {name: mispelt}, serverClaimRef: {name: wbe}, bootConfigurationRef: {name: web}}}
---
{apiVersion: metal.ironcore.dev/v1alpha1, kind: Server, metadata: {name: s2}, spec: {
  bmcRef: {name: oob-001a2b3c4d5e}, serverClaimRef: {namespace: other, name: web}, bootConfigurationRef: {name: nothing}}}
---
{apiVersion: metal.ironcore.dev/v1alpha1, kind: ServerClaim, metadata: {name: web}, spec: {
  power: "On", image: "os:1", serverRef: {name: rack9}, ignitionSecretRef: {name: ignition}, userDataRef: {name: data}}}
---
{apiVersion: metal.ironcore.dev/v1alpha1, kind: ServerBootConfiguration, metadata: {name: boot, namespace: other}, spec: {image: "os:1",
  serverRef: {name: rack9}, ignitionSecretRef: {name: data}}}
---
{apiVersion: v1, kind: Secret, metadata: {name: ignitions}}
---
{apiVersion: v1, kind: Secret, metadata: {name: data}}
`

// TestReferences: what names an object that is not there has a warning at its place. Servers
// come to be by discovery, devices that DHCP finds have names of their own, and what stands
// in a manifest that cannot be used is there.
func TestReferences(t *testing.T) {
	const want = `f:6:23: BMC misspelt: spec.endpointRef.name: no manifest here defines Endpoint rack1-bmc; ` +
		`a device that DHCP finds is called by its network and MAC address, as oob-001a2b3c4d5e is
f:8:11: BMC misspelt: spec.bmcSecretRef.name: no manifest here defines BMCSecret admni, did you mean "admin"?
f:17:18: Server s1: spec.bmcRef.name: no manifest here defines BMC mispelt, did you mean "misspelt"?
f:17:51: Server s1: spec.serverClaimRef.name: no manifest here defines ServerClaim default/wbe, did you mean "web"?
f:20:78: Server s2: spec.serverClaimRef.name: no manifest here defines ServerClaim other/web
f:20:113: Server s2: spec.bootConfigurationRef.name: no manifest here defines ServerBootConfiguration default/nothing
f:23:83: ServerClaim default/web: spec.ignitionSecretRef.name: no manifest here defines Secret default/ignition, did you mean "ignitions"?
f:26:55: ServerBootConfiguration other/boot: spec.ignitionSecretRef.name: no manifest here defines Secret other/data; one outside Git is in the folder that secretFiles names
`
	objects, problems := Decode("f", []byte(danglers), DecodeOptions{})
	if HasErrors(problems) {
		t.Fatal(problemLines(problems))
	}
	d := NewDesired()
	d.Quarantined[Identity{Kind: KindBMCSecret, Name: "broken"}] = []string{""}
	for _, o := range objects {
		d.Add(o)
	}
	found := CrossChecker{}.Check(d)
	for i := range found {
		if found[i].Severity != SeverityWarning {
			t.Errorf("%s is no warning", found[i])
		}
		found[i].Severity = "" // which is not shown
	}
	if diff := cmp.Diff(want, problemLines(found)); diff != "" {
		t.Errorf("want -, got +:\n%s", diff)
	}
}

// TestGuessesAreBounded: ten thousand references that name nothing each have a warning, and
// what they may have meant is looked for no longer than is bounded.
func TestGuessesAreBounded(t *testing.T) {
	const n = 10_000
	d := NewDesired()
	for i := range n {
		meta := Meta{Name: fmt.Sprintf("bmc-%05d", i), References: []Reference{
			{To: Identity{Kind: KindBMCSecret, Name: fmt.Sprintf("sceret-%05d", i)}, Field: "spec.bmcSecretRef.name"},
		}}
		d.Add(&BMC{Meta: meta})
		d.Add(&BMCSecret{Meta: Meta{Name: fmt.Sprintf("secret-%05d", i)}})
	}
	guessed, found := 0, CrossChecker{}.Check(d)
	for _, p := range found {
		if strings.Contains(p.Message, "did you mean") {
			guessed++
		}
	}
	if len(found) != n || guessed != MaxGuesses/n {
		t.Errorf("got %d warnings, %d of them with a guess, want %d and %d", len(found), guessed, n, MaxGuesses/n)
	}
}
