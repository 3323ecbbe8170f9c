package main

import (
	"strings"
	"testing"

	"ingot/bootsvc/oci/ociserver"
	"ingot/model/must"
)

func TestImageInspectVerifiesRegistryOnRequest(t *testing.T) {
	images := must.Get(ociserver.New())(t)
	defer images.Close()
	files := bootFiles()
	right, _, err := images.PushBootImage("os", "right", files["vmlinuz"], files["initrd"], []byte("hsqs"))
	must.Do(t, err)
	wrong, _, err := images.PushBootImage("os", "wrong", files["vmlinuz"], []byte("an initramfs"), []byte("hsqs"))
	must.Do(t, err)
	for name, tc := range map[string]struct {
		args []string
		code int
		want string
	}{
		"layers are not fetched by default": {[]string{wrong}, 0, "yes"},
		"valid layers":                      {[]string{"--verify", "--arch", "amd64", right}, 0, "yes"},
		"a layer of another format":         {[]string{"--verify", wrong}, 1, `initramfs: it begins with "an initr"`},
	} {
		t.Run(name, func(t *testing.T) {
			stdout, stderr, code := command(t, append([]string{"image", "inspect"}, tc.args...)...)
			if code != tc.code || !strings.Contains(stdout, tc.want) {
				t.Errorf("exit code %d: %s%s", code, stdout, stderr)
			}
		})
	}
}
