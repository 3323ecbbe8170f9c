package image

import (
	"bytes"
	"cmp"
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Flavours of Debian's kernel.
const (
	FlavourGeneric = "generic" // for real hardware and virtual machines
	FlavourCloud   = "cloud"   // for virtual machines only
)

// DefaultArguments is the command line in the unified kernel image. The firmware
// adds nothing to it, so where the Ignition is comes from DHCP.
const DefaultArguments = "ip=any console=ttyS0,115200 console=tty0 panic=60"

// Options are the parts of an image. All but Out have defaults.
type Options struct {
	Out     string // the folder to write into
	Layout  string // the folder of the OCI image layout; default oci in Out
	Arch    string // amd64 or arm64; default amd64
	Flavour string // default FlavourGeneric

	// Kernel and Modules are a kernel and the folder of its modules, instead of Debian's.
	Kernel, Modules string
	// Stub is the UEFI program that starts the kernel of a unified kernel image, instead
	// of that of Debian's systemd-boot-efi; NoStub makes no such image.
	Stub string
	// Probe is a metalprobe for the architecture, linked statically. By default it
	// is built, which needs the Go tools and Ingot's source as working directory.
	Probe string
	// Version is the version of a metalprobe that is built here.
	Version string
	// Arguments is the kernel's command line in the unified kernel image.
	Arguments string
	// Firmware is a folder like /lib/firmware; what the drivers name is copied.
	Firmware string
	// CA is a PEM file of the authorities to trust when Ingot is reached by HTTPS.
	CA string
	// Cache is the folder for packages; default ingot/probeimage in the user's.
	Cache string
	// Progress receives a line for each step; nil discards them.
	Progress io.Writer
}

// NoStub as Options.Stub makes no unified kernel image.
const NoStub = "none"

// Result is where the image is.
type Result struct {
	Release   string // of the kernel, as in uname -r
	Kernel    string // path of the kernel
	Initramfs string // path of the initramfs
	UKI       string // path of the unified kernel image; "" for none
	Layout    string // folder of the OCI image layout, in which Tag is the image
	Sizes     Sizes
}

// Tag is the image's name in its OCI layout.
const Tag = "latest"

// Sizes are in bytes.
type Sizes struct{ Kernel, Initramfs, UKI int64 }

// MaxBooted is how much a server should load at most, in bytes: all of it goes through
// the firmware, which is slow, and is in memory twice for a while.
const MaxBooted = 25_000_000

// Booted is how much a server loads: kernel and initramfs, or both as one program.
func (s Sizes) Booted() int64 { return max(s.Kernel+s.Initramfs, s.UKI) }

// Build makes the image. Each file of an earlier build is replaced atomically.
func Build(ctx context.Context, o Options) (Result, error) {
	if err := o.complete(); err != nil {
		return Result{}, err
	}
	if o.Out == "" {
		return Result{}, errors.New("say where the image goes")
	}
	if err := mayReplace(o.Layout); err != nil {
		return Result{}, err
	}
	temp, err := os.MkdirTemp("", "probeimage-")
	if err != nil {
		return Result{}, err
	}
	defer func() { _ = os.RemoveAll(temp) }()
	b := builder{Options: o, temp: temp, debian: debian{arch: o.Arch, cache: o.Cache}}
	parts, err := b.parts(ctx)
	if err != nil {
		return Result{}, err
	}
	return b.save(ctx, parts)
}

// Fetch fetches the packages that Build makes an image of into the cache, so that it needs
// no network.
func Fetch(ctx context.Context, o Options) error {
	if err := o.complete(); err != nil {
		return err
	}
	d := debian{arch: o.Arch, cache: o.Cache}
	var names []string
	if o.Kernel == "" {
		kernel, err := d.kernelPackage(ctx, o.Flavour)
		if err != nil {
			return err
		}
		names = append(names, kernel)
	}
	if o.Stub == "" {
		names = append(names, stubPackage)
	}
	for _, name := range names {
		if _, err := d.fetch(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// complete fills in defaults and refuses options that contradict each other.
func (o *Options) complete() error {
	o.Arch = cmp.Or(o.Arch, "amd64")
	o.Flavour = cmp.Or(o.Flavour, FlavourGeneric)
	o.Arguments = cmp.Or(o.Arguments, DefaultArguments)
	o.Layout = cmp.Or(o.Layout, filepath.Join(o.Out, "oci"))
	if o.Progress == nil {
		o.Progress = io.Discard
	}
	switch {
	case o.Arch != "amd64" && o.Arch != "arm64":
		return fmt.Errorf("architecture %q is not known: use amd64 or arm64", o.Arch)
	case o.Flavour != FlavourGeneric && o.Flavour != FlavourCloud:
		return fmt.Errorf("flavour %q is not known: use %s or %s", o.Flavour, FlavourGeneric, FlavourCloud)
	case (o.Kernel == "") != (o.Modules == ""):
		return errors.New("a kernel and its modules belong together: give --kernel and --modules, or neither")
	case len(o.Arguments) > 2000 || strings.ContainsAny(o.Arguments, "\n\x00"):
		return errors.New("the kernel's command line must be one line of at most 2000 characters")
	}
	if o.Cache == "" {
		base, err := os.UserCacheDir()
		if err != nil {
			base = os.TempDir()
		}
		o.Cache = filepath.Join(base, "ingot", "probeimage")
	}
	return nil
}

type builder struct {
	Options
	debian
	temp string // a folder of its own
}

func (b *builder) say(format string, args ...any) {
	fmt.Fprintf(b.Progress, format+"\n", args...)
}

type parts struct {
	release                string
	kernel, initramfs, uki []byte
}

func (b *builder) parts(ctx context.Context) (parts, error) {
	k, err := b.kernel(ctx)
	if err != nil {
		return parts{}, err
	}
	probe, err := b.probe(ctx)
	if err != nil {
		return parts{}, err
	}
	packed, err := b.initramfs(k, probe)
	if err != nil {
		return parts{}, err
	}
	p := parts{release: k.release, kernel: k.image, initramfs: packed}
	if b.Stub == NoStub {
		return p, nil
	}
	p.uki, err = b.uki(ctx, p)
	return p, err
}

// kernel loads the user's own kernel or Debian's.
func (b *builder) kernel(ctx context.Context) (*kernel, error) {
	if b.Kernel != "" {
		return loadKernel(b.Kernel, b.Modules)
	}
	name, err := b.kernelPackage(ctx, b.Flavour)
	if err != nil {
		return nil, err
	}
	b.say("kernel      %s", name)
	folder, err := b.unpacked(ctx, name)
	if err != nil {
		return nil, err
	}
	files, _ := filepath.Glob(filepath.Join(folder, "boot", "vmlinuz-*"))
	if len(files) != 1 {
		return nil, fmt.Errorf("package %s has %d kernels in /boot, and not one", name, len(files))
	}
	return loadKernel(files[0], folder)
}

func (b *builder) unpacked(ctx context.Context, name string) (string, error) {
	file, err := b.fetch(ctx, name)
	if err != nil {
		return "", err
	}
	folder := filepath.Join(b.temp, name)
	return folder, b.unpack(ctx, file, folder)
}

func (b *builder) probe(ctx context.Context) ([]byte, error) {
	if b.Probe != "" {
		content, err := os.ReadFile(b.Probe)
		if err != nil {
			return nil, fmt.Errorf("read metalprobe: %w", err)
		}
		if err := checkProbe(content, b.Arch); err != nil {
			return nil, fmt.Errorf("%s: %w", b.Probe, err)
		}
		return content, nil
	}
	b.say("metalprobe  go build, %s", b.Arch)
	out := filepath.Join(b.temp, "metalprobe")
	// No build ID and no revision: the same source gives the same bytes.
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false",
		"-ldflags", "-s -w -buildid= -X main.version="+cmp.Or(b.Version, "dev"), "-o", out, "ingot/cmd/metalprobe")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+b.Arch)
	if text, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build metalprobe (in Ingot's source; or give one with --probe): %w: %s", err, bytes.TrimSpace(text))
	}
	return os.ReadFile(out)
}

// checkProbe refuses a program that does not start as the init of an architecture: the initramfs has no libraries.
func checkProbe(program []byte, arch string) error {
	f, err := elf.NewFile(bytes.NewReader(program))
	if err != nil {
		return fmt.Errorf("not a Linux program: %w", err)
	}
	if want := map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}[arch]; f.Machine != want {
		return fmt.Errorf("the program is for %s, not for %s", f.Machine, want)
	}
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return errors.New("the program is linked dynamically: build it with CGO_ENABLED=0")
		}
	}
	return nil
}

func (b *builder) initramfs(k *kernel, probe []byte) ([]byte, error) {
	picked, index, err := k.library.pick(wanted)
	if err != nil {
		return nil, err
	}
	for name, m := range picked {
		if m.release != k.release {
			return nil, fmt.Errorf("module %s is for Linux %s and others are for %s: give the folder of one kernel's modules",
				name, m.release, k.release)
		}
	}
	a := initramfs(probe, picked, index)
	b.say("modules     %d of %d, for Linux %s", len(picked), len(k.library.files), k.release)
	if b.Firmware != "" {
		n, err := addFirmware(a, b.Firmware, picked)
		if err != nil {
			return nil, fmt.Errorf("copy firmware: %w", err)
		}
		b.say("firmware    %d files", n)
	}
	if b.CA != "" {
		pem, err := os.ReadFile(b.CA)
		if err != nil {
			return nil, fmt.Errorf("read authorities: %w", err)
		}
		a.file(certificates, 0o644, pem)
	}
	return a.compressed()
}

// stubPackage is Debian's package of the UEFI stub.
const stubPackage = "systemd-boot-efi"

func (b *builder) uki(ctx context.Context, p parts) ([]byte, error) {
	stub := b.Stub
	if stub == "" {
		folder, err := b.unpacked(ctx, stubPackage)
		if err != nil {
			return nil, fmt.Errorf("get the UEFI stub: %w", err)
		}
		cpu := map[string]string{"amd64": "x64", "arm64": "aa64"}[b.Arch]
		stub = filepath.Join(folder, "usr", "lib", "systemd", "boot", "efi", "linux"+cpu+".efi.stub")
	}
	content, err := os.ReadFile(stub)
	if err != nil {
		return nil, fmt.Errorf("read UEFI stub: %w", err)
	}
	return addSections(content, []section{
		{".osrel", []byte("ID=ingot\nNAME=Ingot\nPRETTY_NAME=\"Ingot discovery\"\nVERSION_ID=" + p.release + "\n")},
		{".uname", []byte(p.release)},
		{".cmdline", []byte(b.Arguments)},
		{".initrd", p.initramfs},
		{".linux", p.kernel},
	})
}

// save writes the files and the OCI layout.
func (b *builder) save(ctx context.Context, p parts) (Result, error) {
	r := Result{
		Release: p.release,
		Kernel:  filepath.Join(b.Out, "vmlinuz"), Initramfs: filepath.Join(b.Out, "initramfs.zst"),
		Layout: b.Layout,
		Sizes:  Sizes{int64(len(p.kernel)), int64(len(p.initramfs)), int64(len(p.uki))},
	}
	files := map[string][]byte{r.Kernel: p.kernel, r.Initramfs: p.initramfs}
	if p.uki != nil {
		r.UKI = filepath.Join(b.Out, "ingot-probe.efi")
		files[r.UKI] = p.uki
	}
	if err := errors.Join(os.MkdirAll(b.Out, 0o755), os.MkdirAll(filepath.Dir(b.Layout), 0o755)); err != nil {
		return Result{}, err
	}
	for path, content := range files {
		if err := replace(path, content); err != nil {
			return Result{}, err
		}
	}
	if err := writeLayout(ctx, r.Layout, b.Arch, p); err != nil {
		return Result{}, fmt.Errorf("write OCI layout: %w", err)
	}
	return r, nil
}

// replace writes a file atomically, or leaves the previous one.
func replace(path string, content []byte) error {
	temp, err := os.CreateTemp(filepath.Dir(path), ".probeimage-")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(temp.Name()) }()
	_, err = temp.Write(content)
	if err := errors.Join(err, temp.Chmod(0o644), temp.Close()); err != nil {
		return err
	}
	return os.Rename(temp.Name(), path)
}
