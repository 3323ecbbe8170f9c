// Probeimage makes the image that servers boot for discovery and cleanup: a Linux
// kernel and an initramfs with metalprobe as its init.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"ingot/cmd/probeimage/image"
)

const usage = `Probeimage makes the image that Ingot boots on servers for discovery and cleanup:
a kernel and an initramfs with metalprobe as its init, the same as one UEFI program
(a unified kernel image), and all of them as an OCI image layout.

  go run ./cmd/probeimage
  go run ./cmd/probeimage --layout /usr/share/ingot/images/probe
  go run ./cmd/probeimage --push registry.example.com/ingot/probe:1

The layout /usr/share/ingot/images/probe is what Ingot takes when discovery.image is
empty; else put the reference into its configuration there. The kernel is
Debian's: apt-get and dpkg-deb are needed, or --kernel, --modules and --stub.

Flags:
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "probeimage:", err)
		os.Exit(1)
	}
}

// run is the program without the process around it.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o, reference, err := parse(args, stderr)
	if err != nil {
		return err
	}
	o.Progress = stderr
	r, err := image.Build(ctx, o)
	if err != nil {
		return err
	}
	show(stdout, r)
	if size := r.Sizes.Booted(); size > image.MaxBooted {
		fmt.Fprintf(stderr, "warning: a server loads %.1f MB, and many a firmware is slow beyond %.0f MB: "+
			"leave out --firmware that no server needs, or strip the modules\n", float64(size)/mb, float64(image.MaxBooted)/mb)
	}
	if reference == "" {
		return nil
	}
	digest, err := r.Push(ctx, reference)
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "pushed      %s, %s\n", reference, digest)
	return nil
}

func parse(args []string, stderr io.Writer) (o image.Options, reference string, err error) {
	f := flag.NewFlagSet("probeimage", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.Usage = func() {
		fmt.Fprint(stderr, usage)
		f.PrintDefaults()
	}
	f.StringVar(&o.Out, "out", "dist/probe", "the folder to write into")
	f.StringVar(&o.Layout, "layout", "", "the folder of the OCI image layout (default: oci in --out)")
	f.StringVar(&o.Arch, "arch", "amd64", "architecture of the servers: amd64 or arm64")
	f.StringVar(&o.Flavour, "flavour", image.FlavourGeneric, "Debian's kernel: generic, or cloud for virtual machines only")
	f.StringVar(&o.Kernel, "kernel", "", "a kernel of your own, with --modules")
	f.StringVar(&o.Modules, "modules", "", "the folder of the kernel's modules")
	f.StringVar(&o.Stub, "stub", "", "a UEFI stub of your own, as systemd's linuxx64.efi.stub; none = no unified kernel image")
	f.StringVar(&o.Probe, "probe", "", "a metalprobe built before, linked statically (default: go build)")
	f.StringVar(&o.Version, "version", "dev", "the version of the metalprobe that is built")
	f.StringVar(&o.Arguments, "arguments", image.DefaultArguments, "the kernel's command line in the unified kernel image")
	f.StringVar(&o.Firmware, "firmware", "", "a folder as /lib/firmware, of which what drivers name is copied")
	f.StringVar(&o.CA, "ca", "", "a PEM file of authorities to trust, for an Ingot behind HTTPS")
	f.StringVar(&reference, "push", "", "push the image to registry/repository:tag, with the credentials of docker login")
	if err := f.Parse(args); err != nil {
		return o, "", err
	}
	if f.NArg() > 0 {
		return o, "", fmt.Errorf("argument %q is not expected: flags only; see --help", f.Arg(0))
	}
	return o, reference, nil
}

const mb = 1e6

func show(w io.Writer, r image.Result) {
	line := func(what, path string, size int64) {
		fmt.Fprintf(w, "%-11s %5.1f MB  %s\n", what, float64(size)/mb, path)
	}
	line("kernel", r.Kernel, r.Sizes.Kernel)
	line("initramfs", r.Initramfs, r.Sizes.Initramfs)
	line("together", "Linux "+r.Release, r.Sizes.Kernel+r.Sizes.Initramfs)
	if r.UKI != "" {
		line("UKI", r.UKI, r.Sizes.UKI)
	}
	fmt.Fprintf(w, "%-11s %8s  %s:%s\n", "OCI layout", "", r.Layout, image.Tag)
}
