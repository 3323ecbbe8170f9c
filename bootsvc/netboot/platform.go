package netboot

import (
	"slices"
	"strings"
)

// LoaderKind is a kind of boot loader, whatever the platform (annotation
// ingot/boot-loader, boot.loaders).
type LoaderKind string

// The kinds of boot loaders.
const (
	LoaderIPXE    LoaderKind = "ipxe"    // iPXE with drivers of its own
	LoaderSNPOnly LoaderKind = "snponly" // iPXE with the firmware's driver of the one card that it was loaded from
	LoaderSNP     LoaderKind = "snp"     // iPXE with the firmware's drivers of all cards
	LoaderShim    LoaderKind = "shim"    // a distribution's shim, which starts its GRUB where Secure Boot is on
)

// LoaderKinds are all kinds.
var LoaderKinds = []LoaderKind{LoaderIPXE, LoaderSNPOnly, LoaderSNP, LoaderShim}

type loaderFile struct {
	kinds []LoaderKind // that it counts as
	name  string       // under which it is served
	// paths are where it is in one of the folders: as Debian's package ipxe, boot.ipxe.org or
	// those call it who build it.
	paths []string
}

// platform is a kind of firmware that the same boot loaders run on.
type platform struct {
	key     string // of boot.loaders
	name    string // for people
	image   string // the architecture of images whose UKI runs on it; "" where none does
	source  string // where to get a loader
	loaders []loaderFile
	// shim are what only those are told that ask for it: the shim, and what it asks for
	// beside itself.
	shim []loaderFile
}

// The platforms and the boot loaders that run on them: the first that is there wins,
// unless another kind is asked for.
var (
	bios = platform{
		key: "bios", name: "BIOS machines (amd64)", source: "install the package ipxe",
		loaders: []loaderFile{
			{[]LoaderKind{LoaderSNPOnly, LoaderSNP}, "undionly.kpxe", []string{"undionly.kpxe"}},
			{[]LoaderKind{LoaderSNPOnly, LoaderSNP}, "undionly.kkpxe", []string{"undionly.kkpxe"}},
			{[]LoaderKind{LoaderIPXE}, "ipxe.pxe", []string{"ipxe.pxe"}},
		},
	}
	x64 = platform{
		key: "amd64", name: "UEFI machines (amd64)", image: "amd64", source: "install the package ipxe",
		loaders: []loaderFile{
			uefiLoader(LoaderIPXE, "", "x86_64-efi"), uefiLoader(LoaderSNPOnly, "", "x86_64-efi"), uefiLoader(LoaderSNP, "", "x86_64-efi"),
		},
		shim: shimFiles("x64"),
	}
	arm64 = platform{
		key: "arm64", name: "UEFI machines (arm64)", image: "arm64",
		source: "install the package ipxe of Debian 13, or fetch https://boot.ipxe.org/arm64-efi/snponly.efi and save it as snponly-arm64.efi",
		loaders: []loaderFile{
			uefiLoader(LoaderSNP, "arm64", "arm64-efi"), uefiLoader(LoaderSNPOnly, "arm64", "arm64-efi"), uefiLoader(LoaderIPXE, "arm64", "arm64-efi"),
		},
		shim: shimFiles("aa64"),
	}
	ia32    = rarePlatform("386", "ia32", "i386-efi", LoaderIPXE, LoaderSNPOnly)
	arm32   = rarePlatform("arm", "arm32", "arm32-efi", LoaderSNP, LoaderSNPOnly, LoaderIPXE)
	riscv32 = rarePlatform("riscv", "riscv32", "riscv32-efi", LoaderSNP, LoaderSNPOnly, LoaderIPXE)
	riscv64 = rarePlatform("riscv64", "riscv64", "riscv64-efi", LoaderSNP, LoaderSNPOnly, LoaderIPXE)
	loong64 = rarePlatform("loong64", "loong64", "loong64-efi", LoaderSNP, LoaderSNPOnly, LoaderIPXE)
)

// rarePlatform is a platform of UEFI whose loaders are mostly built.
func rarePlatform(machine, suffix, folder string, kinds ...LoaderKind) platform {
	p := platform{key: machine, name: "UEFI machines (" + machine + ")", image: machine, source: "install the package ipxe or build one"}
	for _, k := range kinds {
		p.loaders = append(p.loaders, uefiLoader(k, suffix, folder))
	}
	return p
}

// shimFiles are a shim and what it asks for: GRUB, or else the keys' manager. The names that
// end in .signed are Debian's and Ubuntu's, whose GRUB for networks has a name of its own.
func shimFiles(arch string) []loaderFile {
	shim, grub, keys := "shim"+arch+".efi", "grub"+arch+".efi", "mm"+arch+".efi"
	return []loaderFile{
		{[]LoaderKind{LoaderShim}, shim, []string{shim, shim + ".signed"}},
		{nil, grub, []string{"grubnet" + arch + ".efi.signed", grub}},
		{nil, keys, []string{keys, keys + ".signed"}},
	}
}

// uefiLoader is the iPXE of a kind, which is called ipxe-arm64.efi here, and ipxe.efi in a
// folder of its architecture by those who build it.
func uefiLoader(kind LoaderKind, suffix, folder string) loaderFile {
	name := string(kind) + ".efi"
	if suffix != "" {
		name = string(kind) + "-" + suffix + ".efi"
	}
	return loaderFile{[]LoaderKind{kind}, name, []string{name, folder + "/" + string(kind) + ".efi"}}
}

var platforms = []struct {
	machine string
	*platform
}{
	{"amd64", &bios}, {"amd64", &x64}, {"386", &ia32}, {"arm", &arm32}, {"arm64", &arm64},
	{"riscv", &riscv32}, {"riscv64", &riscv64}, {"loong64", &loong64},
}

// LoaderPlatforms are the keys of boot.loaders.
func LoaderPlatforms() []string {
	keys := make([]string, 0, len(platforms))
	for _, p := range platforms {
		keys = append(keys, p.key)
	}
	return keys
}

// of returns p's boot loaders of a kind, all of them for "".
func (p *platform) of(kind LoaderKind) []loaderFile {
	switch {
	case kind == "":
		return p.loaders
	case kind == LoaderShim && len(p.shim) > 0:
		return p.shim[:1]
	}
	return slices.DeleteFunc(slices.Clone(p.loaders), func(f loaderFile) bool { return !slices.Contains(f.kinds, kind) })
}

func (p *platform) names(kind LoaderKind) string {
	var names []string
	for _, f := range p.of(kind) {
		names = append(names, f.name)
	}
	if len(names) == 0 {
		return "of the kind " + string(kind)
	}
	return strings.Join(names, " or ")
}
