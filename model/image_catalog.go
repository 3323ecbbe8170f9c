package model

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

// CatalogFile is the file with the ImageCatalog, at the root of git.path; CatalogName is the object's name.
const (
	CatalogFile = "images.yaml"
	CatalogName = "images"
)

// CatalogIdentity is the identity of the ImageCatalog.
var CatalogIdentity = Identity{Kind: KindImageCatalog, Name: CatalogName}

// IsCatalogName reports whether the image of a claim is a name for the catalogue: a label without "/", ":" and ".".
func IsCatalogName(image string) bool { return image != "" && labelFault(image) == "" }

// CatalogImages returns the images of a name, one for each architecture.
func (d *Desired) CatalogImages(name string) (images []CatalogImage) {
	if d.Images != nil {
		for _, image := range d.Images.Spec.Images {
			if image.Name == name {
				images = append(images, image)
			}
		}
	}
	return images
}

// UnknownImage says that the catalogue does not have a name.
func (d *Desired) UnknownImage(name string, guesses *Guesses) string {
	if d.Images == nil || len(d.Images.Spec.Images) == 0 {
		return show(name) + " is a name for " + CatalogFile + ", which names no image; name it there, at the root of git.path, or write the whole reference: registry.example.com/os/image:tag"
	}
	known := make([]string, len(d.Images.Spec.Images))
	for i, image := range d.Images.Spec.Images {
		known[i] = image.Name
	}
	slices.Sort(known)
	return show(name) + " is neither in " + CatalogFile + " nor a whole reference such as registry.example.com/os/image:tag" + guesses.Near(name, known)
}

// CheckImage returns what is wrong with a reference that names no registry, "" for other images and for names of the
// catalogue. It is an error for a distribution, and where a catalogue has names for images; else Docker Hub is meant.
func (d *Desired) CheckImage(image string) (Severity, string) {
	name := strings.TrimPrefix(image, "oci://")
	if first, _, ok := strings.Cut(name, "/"); ok && isRegistry(first) || IsCatalogName(image) {
		return "", ""
	}
	ref, err := ParseImageReference(image)
	if err != nil || ref.Layout != "" {
		return "", ""
	}
	short := strings.TrimPrefix(name, "library/")
	switch {
	case d.Images != nil:
		write := "a name of " + CatalogFile
		word, _, _ := strings.Cut(short, ":")
		for _, i := range d.Images.Spec.Images {
			if strings.HasPrefix(i.Name, word+"-") {
				write = i.Name + " of " + CatalogFile
			}
			if i.Name == strings.ReplaceAll(short, ":", "-") {
				break
			}
		}
		return SeverityError, fmt.Sprintf("%.80q has no registry; write %s, or the whole reference: registry.example.com/%.80s", image, write, name)
	case isDistribution(short):
		return SeverityError, fmt.Sprintf("%.80q has no registry; write it in full, such as registry.example.com/%.80s, oci:/PATH of a layout, or the URL of a "+
			"disk image with its digest (https://…#sha256:…)", image, name)
	}
	return SeverityWarning, fmt.Sprintf("%.80q has no registry, so Ingot asks Docker Hub (%.200s); write registry/name:tag", image, ref)
}

// HasDigest reports whether an image is a reference or a URL with a digest.
func HasDigest(image string) bool {
	if IsImageURL(image) {
		return true // or it would not be valid
	}
	r, err := ParseImageReference(image)
	return err == nil && r.Digest != ""
}

// PlaceCatalog refuses an ImageCatalog in any file but CatalogFile. root is the folder where that is, "" if it is unknown.
func PlaceCatalog(root, file string, objects []Object) {
	for _, o := range objects {
		elsewhere := path.Base(file) != CatalogFile || root != "" && path.Dir(file) != root
		if _, is := o.(*ImageCatalog); is && elsewhere {
			o.Metadata().Refused = "the fleet has one ImageCatalog, in " + CatalogFile + " at the root of git.path; an ImageCatalog in another file has no effect"
		}
	}
}

// WithCatalog adds the owner of CatalogFile below root, who defines nothing else. Tenants cannot define an ImageCatalog.
func (t Tenants) WithCatalog(root string) Tenants {
	if len(t) == 0 {
		return t
	}
	return append(slices.Clip(t), Tenant{Path: path.Join(root, CatalogFile), Kinds: []Kind{KindImageCatalog}})
}

// imageUserPattern matches names of login users, as useradd takes them.
const imageUserPattern = `[a-z_][a-z0-9_-]{0,31}`

var (
	imageUsers         = regexp.MustCompile("^" + imageUserPattern + "$")
	imageArchitectures = []string{"amd64", "arm64"}
)

func checkCatalog(d *fieldChecker, s *ImageCatalogSpec) {
	seen := make(map[CatalogImage]bool, len(s.Images))
	if !d.few("images", len(s.Images)) {
		return
	}
	each(d.nodeDecoder, "images", s.Images, func(i *CatalogImage) {
		if d.required("name", i.Name) {
			d.fault("name", i.Name, labelFault(i.Name))
		}
		if IsCatalogName(i.Image) {
			d.bad("image", "found "+show(i.Image)+", which is a name: want a reference with a digest")
		} else if d.image(i.Image); !HasDigest(i.Image) && i.Image != "" {
			d.bad("image", "has no digest: write registry.example.com/os/image@sha256:…, or https://…#sha256:…")
		}
		d.oneOf("architecture", i.Architecture, imageArchitectures)
		if i.User != "" && !imageUsers.MatchString(i.User) {
			d.bad("user", "found "+show(i.User)+", want the name of a login user, such as debian")
		}
		for _, architecture := range []string{i.Architecture, ""} {
			if key := (CatalogImage{Name: i.Name, Architecture: architecture}); seen[key] && i.Name != "" {
				d.bad("name", "the image "+show(i.Name)+" is given twice; give each entry an architecture of its own")
				break
			}
		}
		seen[CatalogImage{Name: i.Name, Architecture: i.Architecture}] = true
	})
}
