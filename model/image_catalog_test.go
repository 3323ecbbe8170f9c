package model

import (
	"strings"
	"testing"
)

const catalogDigest = "@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

func decodeAll(t *testing.T, files map[string]string) (*Desired, []string) {
	t.Helper()
	d := NewDesired()
	var texts []string
	for name, text := range files {
		objects, problems := Decode(name, []byte(text), DecodeOptions{})
		for _, p := range problems {
			texts = append(texts, p.String())
		}
		for _, o := range objects {
			d.Add(o)
		}
	}
	for _, p := range (CrossChecker{}).Check(d) {
		texts = append(texts, p.String())
	}
	return d, texts
}

func catalogOf(entries ...string) string {
	return "apiVersion: " + APIVersion + "\nkind: ImageCatalog\nmetadata:\n  name: images\nspec:\n  images:\n" + strings.Join(entries, "")
}

func claimOf(image string) string {
	return "apiVersion: " + APIVersion + "\nkind: ServerClaim\nmetadata:\n  name: web\nspec:\n  power: \"On\"\n  image: " + image + "\n"
}

func TestCatalogNames(t *testing.T) {
	debian := "    - name: debian-13\n      image: r.example/debian" + catalogDigest + "\n      user: debian\n"
	for name, tc := range map[string]struct{ catalog, image, want string }{
		"a known name":                   {catalogOf(debian), "debian-13", ""},
		"a whole reference":              {catalogOf(debian), "r.example/debian:13", ""},
		"a reference of Docker Hub":      {catalogOf(debian), "library/debian", ""},
		"a name with a tag is no name":   {catalogOf(debian), "debian:13", ""},
		"a near name":                    {catalogOf(debian), "debian-31", `web.yaml:7:10: ServerClaim default/web: spec.image: "debian-31" is neither in images.yaml nor a whole reference such as registry.example.com/os/image:tag, did you mean "debian-13"?`},
		"no catalogue":                   {"", "debian-13", `web.yaml:7:10: ServerClaim default/web: spec.image: "debian-13" is a name for images.yaml, which names no image`},
		"an image without a digest":      {catalogOf("    - name: a\n      image: r.example/debian:13\n"), "a", "images.yaml:8:14: ImageCatalog images: spec.images[0].image: has no digest"},
		"a name for a name":              {catalogOf(debian, "    - name: a\n      image: debian-13\n"), "a", "images.yaml:11:14: ImageCatalog images: spec.images[1].image: found \"debian-13\", which is a name"},
		"two images of a name":           {catalogOf(debian, debian), "debian-13", "images.yaml:10:13: ImageCatalog images: spec.images[1].name: the image \"debian-13\" is given twice"},
		"an image for each architecture": {catalogOf("    - name: a\n      image: r.example/a"+catalogDigest+"\n      architecture: amd64\n", "    - name: a\n      image: r.example/b"+catalogDigest+"\n      architecture: arm64\n"), "a", ""},
		"another name of the catalogue":  {strings.Replace(catalogOf(debian), "name: images", "name: mine", 1), "r.example/os:1", `images.yaml:4:9: ImageCatalog mine: metadata.name: found "mine", want images`},
		"a name that is a path":          {catalogOf(strings.Replace(debian, "debian-13", "debian/13", 1)), "r.example/os:1", "images.yaml:7:13: ImageCatalog images: spec.images[0].name: found \"debian/13\""},
		"a user that is none":            {catalogOf(strings.Replace(debian, "user: debian", "user: -oProxyCommand=x", 1)), "r.example/os:1", "images.yaml:9:13: ImageCatalog images: spec.images[0].user: found"},
	} {
		t.Run(name, func(t *testing.T) {
			files := map[string]string{"web.yaml": claimOf(tc.image)}
			if tc.catalog != "" {
				files["images.yaml"] = tc.catalog
			}
			_, got := decodeAll(t, files)
			text := strings.Join(got, "\n")
			if (tc.want == "") != (text == "") || !strings.Contains(text, tc.want) {
				t.Errorf("got  %s\nwant %s", text, tc.want)
			}
		})
	}
}

func TestCatalogChangeIsCheckedAgainstAllClaims(t *testing.T) {
	before, _ := decodeAll(t, map[string]string{"images.yaml": catalogOf("    - name: a\n      image: r.example/a" + catalogDigest + "\n"), "web.yaml": claimOf("a")})
	removal := Change{Before: before.Images}
	if (CrossChecker{}).StillFits(before.With([]Change{removal}), []Change{removal}) {
		t.Error("a catalogue that a claim needs was removed, and nothing is checked")
	}
	claim, _ := Decode("b.yaml", []byte(strings.Replace(claimOf("b"), "name: web", "name: b", 1)), DecodeOptions{})
	added := Change{After: claim[0]}
	if (CrossChecker{}).StillFits(before.With([]Change{added}), []Change{added}) {
		t.Error("a claim names an unknown image, and nothing is checked")
	}
}

func TestCatalogHasOnePlace(t *testing.T) {
	tenants := Tenants{{Path: "teams/a", Kinds: []Kind{"*"}, Namespaces: []string{"*"}}, {Path: "infra/b", Kinds: []Kind{KindImageCatalog}}}
	for file, want := range map[string]bool{"infra/images.yaml": true, "images.yaml": false, "infra/b/images.yaml": false, "infra/other.yaml": false, "teams/a/images.yaml": false} {
		for _, t2 := range []Tenants{nil, tenants} {
			objects, problems := Decode(file, []byte(catalogOf("    - name: a\n      image: r.example/a"+catalogDigest+"\n")), DecodeOptions{})
			if len(objects) != 1 {
				t.Fatal(problems)
			}
			t2.WithCatalog("infra").Place(file, objects)
			PlaceCatalog("infra", file, objects)
			if got := objects[0].Metadata().Refused == ""; got != want {
				t.Errorf("%s, with %d tenants: counts = %t: %s", file, len(t2), got, objects[0].Metadata().Refused)
			}
		}
	}
}
