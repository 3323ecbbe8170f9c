package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"sigs.k8s.io/yaml"

	"ingot/cmd/daemon/config"
	"ingot/model"
)

type claimCommand struct {
	Name       string   `arg:"" help:"The claim's name, or NAMESPACE/NAME. Default of the namespace: default."`
	OS         string   `name:"os" required:"" xor:"image" placeholder:"NAME" help:"An image of images.yaml, such as debian-13."`
	Image      string   `required:"" xor:"image" placeholder:"IMAGE" help:"The image that the server boots, or that is written to its disk: registry.example.com/name:tag, https://host/path#sha256:digest of a disk image, or oci:/folder:tag of an OCI layout. oci:NAME is the layout NAME in /usr/share/ingot/images."`
	Server     string   `placeholder:"NAME" help:"Claim this server. Default: any that is free."`
	Selector   string   `short:"l" placeholder:"SELECTOR" help:"Claim a server with these labels: rack=7,zone in (a,b),!gpu."`
	Ignition   string   `placeholder:"SECRET" help:"The Secret, in the claim's namespace, with the Ignition or the cloud-init user-data for the first boot."`
	SSHKey     []string `name:"ssh-key" placeholder:"FILE" type:"existingfile" help:"A file with public SSH keys that may log in, such as ~/.ssh/id_ed25519.pub. Repeatable."`
	Repository string   `short:"C" default:"." placeholder:"DIR" type:"path" help:"The clone, or the folder in it that Ingot reads. Default: the working directory."`
}

// Help implements kong.HelpProvider.
func (claimCommand) Help() string {
	return `Writes claims/NAMESPACE/NAME.yaml into a clone of the repository, after checking it together with the manifests that are there, by the daemon's own code. It overwrites nothing, and neither commits nor pushes: the server is claimed once the commit is on the branch that Ingot follows.

If the folder has .manifests.schema.json (from "ingot schema"), the first line of the manifest names it, for editors.

Exits 1, having written nothing, if a manifest or claim of this name exists or the claim is not valid.

Examples:

  ingot claim web-1 --os debian-13
  ingot claim web-1 --image oci:probe
  ingot claim web-1 --image registry.example.com/images/flatcar:4230.2 --selector rack=7
  ingot claim prod/db-1 --image https://images.example.com/debian-13.qcow2#sha512:… --server rack7-bmc-01-system-0
  ingot claim web-1 --image registry.example.com/images/flatcar:4230.2 --ssh-key ~/.ssh/id_ed25519.pub
  ingot claim web-1 -C fleet --image registry.example.com/images/flatcar:4230.2 --ignition web-1`
}

// Validate implements kong's validation of arguments.
func (k *claimCommand) Validate() error {
	switch {
	case k.OS != "" && !model.IsCatalogName(k.OS):
		return fmt.Errorf("--os %q: want a name of %s, of lower-case letters, digits and '-'; a whole reference is given with --image", k.OS, model.CatalogFile)
	case k.Image == "":
		return nil // kong says that it is missing, or there is --os
	}
	if name, ok := strings.CutPrefix(k.Image, "oci:"); ok && name != "" && !strings.HasPrefix(name, "/") {
		k.Image = "oci:" + config.Default().Boot.ImageDirs[0] + "/" + name
	}
	_, err := model.ParseImageReference(k.Image)
	if model.IsImageURL(k.Image) {
		_, err = model.ParseImageURL(k.Image)
	}
	if severity, wrong := model.NewDesired().CheckImage(k.Image); severity == model.SeverityError {
		err = errors.New(wrong)
	}
	if err != nil {
		return fmt.Errorf("--image %q: %w", k.Image, err)
	}
	return nil
}

// claimed is what the command prints for programs.
type claimed struct {
	Claim string `json:"claim"`
	File  string `json:"file"`
}

// Run writes the manifest.
func (k claimCommand) Run(ctx context.Context, c *console) error {
	namespace, name, given := strings.Cut(k.Name, "/")
	if !given {
		namespace, name = "default", k.Name
	}
	for _, part := range []string{namespace, name} {
		if !plainName.MatchString(part) {
			return usageError("%q is not a name of a claim: write NAME or NAMESPACE/NAME, of lower-case letters, digits and '-'", k.Name)
		}
	}
	if err := k.checkFolder(ctx, c); err != nil {
		return err
	}
	manifest, err := k.manifest(namespace, name)
	if err != nil {
		return err
	}
	within := path.Join("claims", namespace, name+".yaml")
	file := filepath.Join(k.Repository, filepath.FromSlash(within))
	files := map[string]string{file: manifest}
	if err := k.check(c, file, manifest); err != nil {
		return fmt.Errorf("nothing was written: %w", err)
	}
	if err := writeNew(files); err != nil {
		return err
	}
	if c.json() {
		return c.printJSON(claimed{Claim: namespace + "/" + name, File: file})
	}
	k.printNext(c, within, namespace+"/"+name)
	return nil
}

// plainName is what a name has to be for a file to be named after it; the decoder says the rest.
var plainName = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]*$`)

// checkFolder refuses a folder in which nobody would look for the manifest.
func (k claimCommand) checkFolder(ctx context.Context, c *console) error {
	g, err := openClone(ctx, c, k.Repository, "origin")
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(k.Repository, "claims")); err == nil {
		return nil
	}
	top, err := g.git(ctx, "rev-parse", "--show-prefix") // of the folder within the clone
	if err == nil && top != "" {
		err = fmt.Errorf("%s has no folder claims and is not the root of the repository: name the folder with --repository", k.Repository)
	}
	return err
}

func (k claimCommand) manifest(namespace, name string) (string, error) {
	spec := model.ServerClaimSpec{Power: model.PowerOn, Image: cmp.Or(k.OS, k.Image)}
	if k.Server != "" {
		spec.ServerRef = &model.LocalRef{Name: k.Server}
	}
	if k.Selector != "" {
		selector, err := model.ParseLabelSelector(k.Selector)
		if err == nil {
			spec.ServerSelector, err = selector.Labels()
		}
		if err != nil {
			return "", usageError("--selector: %w", err)
		}
	}
	if k.Ignition != "" {
		spec.IgnitionSecretRef = &model.LocalRef{Name: k.Ignition}
	}
	meta := model.Meta{Name: name, Namespace: namespace}
	keys, err := k.sshKeys()
	if err != nil {
		return "", err
	}
	if keys != "" {
		meta.Annotations = map[string]string{model.AnnotationSSHKeys: keys}
	}
	data, err := yaml.Marshal(map[string]any{
		"apiVersion": model.APIVersion, "kind": model.KindServerClaim, "metadata": meta, "spec": spec,
	})
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(filepath.Join(k.Repository, schemaFile)); err == nil {
		return "# yaml-language-server: $schema=../../" + schemaFile + "\n" + string(data), nil
	}
	return string(data), nil
}

// sshKeys are the keys of the files, one a line.
func (k claimCommand) sshKeys() (string, error) {
	var all strings.Builder
	for _, file := range k.SSHKey {
		data, err := os.ReadFile(file)
		if err != nil {
			return "", fmt.Errorf("--ssh-key: %w", err)
		}
		keys, wrong := model.ParseSSHKeys(string(data))
		if len(wrong) > 0 {
			return "", fmt.Errorf("--ssh-key: %s:%d: %s", file, wrong[0].Line, wrong[0].Message)
		}
		if len(keys) == 0 {
			return "", fmt.Errorf("--ssh-key: %s has no public key", file)
		}
		all.WriteString(strings.Join(keys, "\n") + "\n")
	}
	return all.String(), nil
}

// schemaFile is where docs/manifests.md has the schema of all manifests.
const schemaFile = ".manifests.schema.json"

// check decodes the manifest as the daemon does, beside all others of the folder. What is wrong
// with others is not this command's.
func (k claimCommand) check(c *console, file, manifest string) error {
	all := newManifestCheck(false)
	var err error
	if all.open, err = opener(""); err != nil {
		return err
	}
	search, err := manifestFiles([]string{k.Repository})
	if err != nil {
		return err
	}
	own := displayName(file)
	for _, other := range search.files {
		if other != file {
			all.read(other, c.in, false)
		}
	}
	all.file(own, []byte(manifest), true)
	var wrong []error
	for _, p := range all.finish(search).Problems {
		switch {
		case p.File != own:
		case p.Severity == model.SeverityError:
			wrong = append(wrong, errors.New(p.String()))
		default:
			fmt.Fprintf(c.err, "%s\n", printable(p.String()))
		}
	}
	return errors.Join(wrong...)
}

func (k claimCommand) printNext(c *console, within, name string) {
	git := "git"
	if wd, err := os.Getwd(); err != nil || wd != k.Repository {
		git += " -C " + k.Repository
	}
	c.printf("%s written.\n\nNext:\n\n", filepath.Join(k.Repository, filepath.FromSlash(within)))
	c.printf("  stage it               %s add %s\n", git, within)
	c.printf("  commit it              %s commit -m \"claim %s\"\n", git, name)
	c.printf("  see what it would do   ingot plan\n")
	c.printf("  push it                %s push\n", git)
	c.printf("  wait for the server    ingot status --wait claim %s\n", name)
}
