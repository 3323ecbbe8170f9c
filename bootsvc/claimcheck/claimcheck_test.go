package claimcheck_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"ingot/bootsvc/claimcheck"
	"ingot/bootsvc/ignition"
	"ingot/model"
	"ingot/model/must"
)

// Each mistake is at its place in the file, in the line of a block of text too; a Secret that was not decrypted is not
// checked.
func TestCheck(t *testing.T) {
	const manifests = `apiVersion: metal.ironcore.dev/v1alpha1
kind: ServerClaim
metadata: {name: web, annotations: {ingot/kernel-arguments: "a=${b}"}}
spec: {power: "On", image: "debian:13", ignitionSecretRef: {name: web}}
---
apiVersion: v1
kind: Secret
metadata: {name: web}
stringData:
    user-data: |
        #cloud-config
        users: [default]
        users: [core]
`
	objects, problems := model.Decode("web.yaml", []byte(manifests), model.DecodeOptions{AllowPlaintextSecrets: true})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	d := model.NewDesired()
	for _, o := range objects {
		d.Add(o)
	}
	k := claimcheck.Checker{Compiler: must.Get(ignition.New(ignition.Options{}))(t)}
	check := func() (all []string) {
		for _, p := range k.Check(d) {
			all = append(all, p.String())
		}
		return all
	}
	image := `web.yaml:4:28: ServerClaim default/web: spec.image: "debian:13" has no registry; write it in full, such as ` +
		`registry.example.com/debian:13, oci:/PATH of a layout, or the URL of a disk image with its digest (https://…#sha256:…)`
	arguments := `web.yaml:3:61: ServerClaim default/web: metadata.annotations[ingot/kernel-arguments]: line 1, column 3: a character that is ` +
		`not allowed: kernel arguments are letters, digits and . _ , : ; = / + @ % ~ ! * ? [ ] - with single spaces between`
	user := `web.yaml:13:9: Secret default/web: stringData.user-data: key "users" is already in line 2 of the document: keep one of them`
	if diff := cmp.Diff([]string{arguments, image, user}, check()); diff != "" {
		t.Error("a claim with its Secret:", diff)
	}
	delete(d.Claims, "default/web")
	if diff := cmp.Diff([]string{user}, check()); diff != "" {
		t.Error("a Secret that no claim names:", diff)
	}
	for _, s := range d.Secrets {
		s.Sealed = true
	}
	if found := check(); found != nil || claimcheck.Sealed(d) != 1 {
		t.Errorf("a Secret that was not decrypted: %q", found)
	}
}
