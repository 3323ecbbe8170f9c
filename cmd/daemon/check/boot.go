package check

import (
	"cmp"
	"context"
	"strings"

	"ingot/bootsvc"
	"ingot/bootsvc/bootfiles"
	"ingot/bootsvc/netboot"
	"ingot/bootsvc/oci"
	"ingot/cmd/daemon/config"
	"ingot/cmd/daemon/secretfiles"
	"ingot/gitsource"
	"ingot/gitsource/signing"
)

// architectures are those that servers usually have.
var architectures = []string{"amd64", "arm64"}

// loaders checks whether there are boot loaders for all machines of an architecture.
func loaders(_ context.Context, o *config.Options) []Result {
	const check = "boot.loaderDirs"
	if !o.ServesLoaders() {
		return []Result{skipped(check, "neither dhcp nor tftp serves boot loaders")}
	}
	var served []string
	var results []Result
	for _, architecture := range architectures {
		missing := netboot.OpenLoaders(o.Boot.LoaderDirs).Missing([]string{architecture})
		if len(missing) == 0 {
			served = append(served, architecture)
		}
		for _, line := range missing {
			what, _, _ := strings.Cut(line, ";")
			results = append(results, wrong(check, what, "install iPXE (Debian: apt install ipxe)"))
		}
	}
	if len(served) > 0 {
		return []Result{ok(check, "there are boot loaders for "+strings.Join(served, ", "))}
	}
	return results
}

// files checks whether the operator's own files can be read, and are what they should be.
func files(_ context.Context, o *config.Options) []Result {
	var results []Result
	for _, f := range o.Files() {
		err, read := f.Unreadable(), contents[f.Key]
		switch {
		case err == nil && read != nil:
			results = append(results, judged(f.Key, read(o), f.Path+" can be used", "correct it, or remove the key"))
		case f.Without != "": // others are checked with the configuration
			results = append(results, judged(f.Key, err, f.Path+" can be read", "create it, or remove the key; until then, "+f.Without))
		}
	}
	if script := o.Boot.Rescue; script != "" {
		results = append(results, judged("boot.rescue", bootsvc.RescueScript{File: script}.Check(), script+" is an iPXE script",
			"correct the file, or remove the key: machines without a boot ticket boot from their disks until then"))
	}
	return results
}

// folders checks whether the operator's own folders can be read, and hold what they should.
func folders(_ context.Context, o *config.Options) []Result {
	var results []Result
	if v := o.Git.Verification(); v.Keys != "" && v.Mode != gitsource.VerifyNone {
		_, err := signing.Load(v.Keys)
		results = append(results, judged("git.verify.keys", err, v.Keys+" holds keys that may sign", "correct it: no revision is verified until then"))
	}
	if dir := o.SecretFiles; dir != "" {
		results = append(results, judged("secretFiles", secretfiles.Check(dir), dir+" can be used",
			"correct it: a Secret that cannot be used keeps what needs it waiting"))
	}
	if dir := o.Boot.Files; dir != "" {
		results = append(results, judged("boot.files", bootfiles.New(dir, nil).Check(), dir+" can be read",
			"create the folder and let everybody enter it, or remove the key: no file of it is served until then"))
	}
	return results
}

// image checks whether the probe's image can be booted, and on which architectures.
func image(ctx context.Context, o *config.Options) []Result {
	const check = "discovery.image"
	if o.Discovery.Image == "" {
		return []Result{wrong(check, "is not set, so no server is discovered",
			"copy the discovery image to a folder of boot.imageDirs, as "+firstOf(o.Boot.ImageDirs)+"/probe, or set discovery.image")}
	}
	options := o.Images()
	images, err := oci.New(options)
	if err != nil {
		return []Result{wrong(check, err.Error(), "correct the keys of boot")}
	}
	defer images.Close()
	var boots []string
	for _, architecture := range architectures {
		_, resolveErr := images.Resolve(ctx, o.Discovery.Image, architecture)
		if resolveErr == nil {
			boots = append(boots, architecture)
		}
		err = cmp.Or(err, resolveErr)
	}
	if len(boots) == 0 {
		return []Result{wrong(check, err.Error(), "see `ingot image inspect`")}
	}
	return []Result{ok(check, o.Discovery.Image+" boots "+strings.Join(boots, ", "))}
}

func firstOf(dirs []string) string {
	if len(dirs) == 0 {
		return "/usr/share/ingot/images"
	}
	return dirs[0]
}
