package features

import (
	"context"
	"fmt"

	"ingot/model"
)

// catalog is an images.yaml that gives an image a name.
func (w *site) catalog(image, name string) (string, error) {
	_, digest, err := w.images.Push("images/"+image, "1", bootImage(image))
	w.image[name] = name
	return catalogOf(map[string]any{"name": name, "image": w.imagesSeen.host() + "/images/" + image + "@" + digest}), err
}

func catalogOf(images ...any) string {
	o := object(model.KindImageCatalog, model.CatalogName, nil)
	spec(o)["images"] = images
	return text(o)
}

func nameImage(ctx context.Context, image, name string) error {
	w := siteOf(ctx)
	catalog, err := w.catalog(image, name)
	if err != nil {
		return err
	}
	return w.commit(map[string]string{model.CatalogFile: catalog}, fmt.Sprintf("call image %s %s", image, name))
}

func nameNoImage(ctx context.Context) error {
	return siteOf(ctx).commit(map[string]string{model.CatalogFile: catalogOf()}, "name no image")
}

func breakCatalog(ctx context.Context) error {
	return siteOf(ctx).commit(map[string]string{model.CatalogFile: "kind: ImageCatalog\nspec: [\n"}, "break images.yaml")
}

func loseCatalog(ctx context.Context) error {
	return siteOf(ctx).anew(func(files map[string]string) { delete(files, model.CatalogFile) })
}

func commitCatalogBelow(ctx context.Context, tenant string) error {
	w := siteOf(ctx)
	catalog, err := w.catalog("newer-linux", "own-image")
	if err != nil {
		return err
	}
	return w.commit(map[string]string{"claims/" + tenant + "/" + model.CatalogFile: catalog}, "name an image for "+tenant)
}

func proposeImage(ctx context.Context, image, name string) error {
	catalog, err := siteOf(ctx).catalog(image, name)
	if err != nil {
		return err
	}
	return propose(ctx, func(dir string) error { return writeIn(dir, model.CatalogFile, catalog) })
}

func registryIs(ctx context.Context, how string) error {
	w := siteOf(ctx)
	w.imagesSeen.open(map[string]string{"back": w.images.Host()}[how])
	return nil
}
