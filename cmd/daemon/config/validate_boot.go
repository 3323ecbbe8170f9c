package config

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"ingot/bootsvc/netboot"
	"ingot/model"
)

func (c *checks) boot(o *Options) {
	c.bootFiles(o)
	c.bootLoaders(o.Boot.Loaders)
	if n := len(o.Boot.SSHKeys); n > model.MaxSSHKeys {
		c.wrong("boot.sshKeys", "found %d keys, at most %d are allowed", n, model.MaxSSHKeys)
		return
	}
	for i, text := range o.Boot.SSHKeys {
		if _, err := model.ParseSSHKey(strings.TrimSpace(text)); err != nil {
			c.wrong(fmt.Sprintf("boot.sshKeys[%d]", i), "%v", err)
		}
	}
}

func (c *checks) bootLoaders(kinds map[string]string) {
	for _, platform := range slices.Sorted(maps.Keys(kinds)) {
		if all := netboot.LoaderPlatforms(); !slices.Contains(all, platform) {
			c.wrong("boot.loaders", "%q is not allowed: must be among %s", platform, strings.Join(all, ", "))
		}
		if kind := netboot.LoaderKind(kinds[platform]); !slices.Contains(netboot.LoaderKinds, kind) {
			c.wrong("boot.loaders", "%q for %s is not allowed: must be one of %s", kind, platform, loaderKinds())
		}
	}
}

// bootFiles refuses a folder of boot files in which something lies that is not for
// everybody.
func (c *checks) bootFiles(o *Options) {
	if o.Boot.Files == "" {
		return
	}
	others := append(o.Files(), File{Key: "state.dir", Path: o.State.Dir}, File{Key: "secretFiles", Path: o.SecretFiles})
	for _, other := range others {
		if other.Path != "" && within(other.Path, o.Boot.Files) {
			c.wrong("boot.files", "%q holds %s of %s, and everybody on the boot network can read what is in boot.files: name a folder of its own, such as "+
				"/srv/ingot/files", o.Boot.Files, other.Path, other.Key)
			return
		}
	}
}

func within(path, folder string) bool {
	path, folder = resolved(path), resolved(folder)
	between, err := filepath.Rel(folder, path)
	return err == nil && between != ".." && !strings.HasPrefix(between, ".."+string(filepath.Separator))
}

// resolved returns a path without links, as far as it is there.
func resolved(path string) string {
	path, _ = filepath.Abs(path)
	for at := path; at != filepath.Dir(at); at = filepath.Dir(at) {
		if actual, err := filepath.EvalSymlinks(at); err == nil {
			return filepath.Join(actual, strings.TrimPrefix(path, at))
		}
	}
	return path
}

func loaderKinds() string {
	var names []string
	for _, k := range netboot.LoaderKinds {
		names = append(names, string(k))
	}
	return strings.Join(names, ", ")
}
