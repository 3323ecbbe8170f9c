package image

import (
	"bytes"
	"debug/elf"
	"debug/pe"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/content/oci"

	"ingot/model/must"
)

func TestArchive(t *testing.T) {
	a := make(archive)
	a.file("/init", 0o755, []byte("hello"))
	a.link("sbin/poweroff", "/init")
	a.add("dev/console", entry{mode: modeDevice | 0o600, major: 5, minor: 1})
	var got bytes.Buffer
	must.Do(t, a.write(&got))
	golden := must.Get(os.ReadFile(filepath.Join("testdata", "archive.cpio")))(t)
	if diff := cmp.Diff(string(golden), got.String()); diff != "" {
		t.Errorf("archive (-want +got):\n%s", diff)
	}
}

func TestTheSameFilesMakeTheSameInitramfs(t *testing.T) {
	make := func() []byte {
		l := sampleLibrary()
		picked, index, err := l.pick([]string{"virtio-net", "nvme", "missing"})
		if err != nil {
			t.Fatal(err)
		}
		return must.Get(initramfs([]byte("probe"), picked, index).compressed())(t)
	}
	first := make()
	for range 5 {
		if !bytes.Equal(first, make()) {
			t.Fatal("two builds of the same files differ")
		}
	}
	z := must.Get(zstd.NewReader(bytes.NewReader(first)))(t)
	defer z.Close()
	unpacked, err := io.ReadAll(z)
	if err != nil || !strings.HasPrefix(string(unpacked), "070701") || !strings.Contains(string(unpacked), "TRAILER!!!") {
		t.Errorf("no archive: %v", err)
	}
}

func sampleLibrary() *library {
	known := map[string]module{
		"virtio_net": {
			needs: []string{"net-failover", "virtio"}, aliases: []string{"virtio:d00000001v*", "has a space"},
			content: []byte("n"),
		},
		"net_failover": {needs: []string{"failover"}, content: []byte("f")},
		"failover":     {content: []byte("o")},
		"virtio":       {content: []byte("v")},
		"nvme":         {needs: []string{"nvme-core", "built-in"}, content: []byte("m"), firmware: []string{"a.fw", "../b.fw", "gone.fw"}},
		"nvme_core":    {content: []byte("c")},
		"usb_storage":  {content: []byte("u")},
		"loop_a":       {needs: []string{"loop_b"}},
		"loop_b":       {needs: []string{"loop_a"}},
	}
	l := &library{files: make(map[string]string), known: known}
	for name := range known {
		l.files[name] = name + ".ko"
	}
	return l
}

func TestPick(t *testing.T) {
	picked, index, err := sampleLibrary().pick([]string{"virtio_net", "nvme", "missing"})
	if err != nil {
		t.Fatal(err)
	}
	want := "module failover\nmodule net_failover failover\nmodule nvme nvme_core\nmodule nvme_core\nmodule virtio\n" +
		"module virtio_net failover net_failover virtio\nalias virtio_net virtio:d00000001v*\n"
	if diff := cmp.Diff(want, string(index.Encode())); diff != "" {
		t.Errorf("index (-want +got):\n%s", diff)
	}
	if len(picked) != 6 {
		t.Errorf("%d modules picked, want 6", len(picked))
	}
	if _, _, err := sampleLibrary().pick([]string{"loop_a"}); err == nil || !strings.Contains(err.Error(), "loop_a, loop_b, loop_a") {
		t.Errorf("modules that need each other: got %v", err)
	}
}

func TestFirmwareThatModulesNameIsAdded(t *testing.T) {
	folder := t.TempDir()
	for _, name := range []string{"a.fw", "other.fw"} {
		must.Do(t, os.WriteFile(filepath.Join(folder, name), []byte(name), 0o600))
	}
	a := make(archive)
	n, err := addFirmware(a, folder, sampleLibrary().known)
	if err != nil || n != 1 || string(a["lib/firmware/a.fw"].content) != "a.fw" {
		t.Errorf("%d files, %v: %v", n, err, a)
	}
}

func elfModule(info string) []byte {
	const names = "\x00.modinfo\x00.shstrtab\x00"
	var b bytes.Buffer
	header := elf.Header64{
		Type: uint16(elf.ET_REL), Machine: uint16(elf.EM_X86_64), Version: 1,
		Ehsize: 64, Shentsize: 64, Shnum: 3, Shstrndx: 2, Shoff: uint64(64 + len(info) + len(names)),
	}
	copy(header.Ident[:], "\x7fELF\x02\x01\x01")
	must := func(v any) {
		if err := binary.Write(&b, binary.LittleEndian, v); err != nil {
			panic(err)
		}
	}
	must(header)
	b.WriteString(info + names)
	must(elf.Section64{})
	must(elf.Section64{Name: 1, Type: uint32(elf.SHT_PROGBITS), Off: 64, Size: uint64(len(info)), Addralign: 1})
	must(elf.Section64{Name: 10, Type: uint32(elf.SHT_STRTAB), Off: uint64(64 + len(info)), Size: uint64(len(names)), Addralign: 1})
	return b.Bytes()
}

const modinfo = "alias=pci:v1\x00alias=pci:v2\x00softdep=pre: crc32c x-y post: other\x00" +
	"depends=virtio,virtio_ring\x00firmware=a.fw\x00vermagic=6.1.0-9-amd64 SMP mod_unload\x00"

func TestReadModule(t *testing.T) {
	content := elfModule(modinfo)
	got := must.Get(readModule(content))(t)
	want := module{
		content: content, needs: []string{"crc32c", "x-y", "virtio", "virtio_ring"}, aliases: []string{"pci:v1", "pci:v2"},
		firmware: []string{"a.fw"}, release: "6.1.0-9-amd64",
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(module{})); diff != "" {
		t.Errorf("module (-want +got):\n%s", diff)
	}
	for _, broken := range [][]byte{nil, []byte("\x7fELF"), content[:80], elfModule("")[:0]} {
		if _, err := readModule(broken); err == nil {
			t.Errorf("%d bytes are taken for a module", len(broken))
		}
	}
}

func FuzzReadModule(f *testing.F) {
	f.Add(elfModule(modinfo))
	f.Fuzz(func(t *testing.T, content []byte) { _, _ = readModule(content) })
}

func TestModuleNames(t *testing.T) {
	for file, want := range map[string]string{
		"a/virtio-net.ko": "virtio_net ", "x.ko.xz": "x xz", "x.ko.zst": "x zst", "x.koala": " ", "modules.dep": " ", "x.ko": "x ",
	} {
		if name, compression := moduleName(file); name+" "+compression != want {
			t.Errorf("%s: %q %q, want %q", file, name, compression, want)
		}
	}
}

// x86Kernel is a file with the header of an x86 kernel.
func x86Kernel(release string) []byte {
	b := make([]byte, 0x2000)
	copy(b[0x202:], "HdrS")
	binary.LittleEndian.PutUint16(b[0x20e:], 0x1000)
	copy(b[0x1200:], release+" (builder) #1\x00")
	return b
}

// program is an ELF file with one segment.
func program(machine elf.Machine, segment elf.ProgType) []byte {
	h := elf.Header64{
		Ident: [elf.EI_NIDENT]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)},
		Type:  uint16(elf.ET_EXEC), Machine: uint16(machine), Version: uint32(elf.EV_CURRENT), Phoff: 64, Ehsize: 64, Phentsize: 56, Phnum: 1,
	}
	var b bytes.Buffer
	for _, part := range []any{h, elf.Prog64{Type: uint32(segment)}} {
		if err := binary.Write(&b, binary.LittleEndian, part); err != nil {
			panic(err) // of fixed size
		}
	}
	return b.Bytes()
}

func TestAKernelOfTheUsersOwn(t *testing.T) {
	folder := t.TempDir()
	write := func(name string, content []byte) string {
		path := filepath.Join(folder, name)
		must.Do(t, errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, content, 0o600)))
		return path
	}
	right, wrong := write("right", x86Kernel("6.1.0-9-amd64")), write("wrong", x86Kernel("6.12.1"))
	probe, stub := write("metalprobe", program(elf.EM_X86_64, elf.PT_LOAD)), write("stub", uefiStub())
	write("modules/kernel/virtio_net.ko", elfModule(modinfo))
	empty := filepath.Join(folder, "empty")
	must.Do(t, os.Mkdir(empty, 0o755))
	modules := filepath.Join(folder, "modules")
	for title, tc := range map[string]struct {
		o   Options
		err string
	}{
		"a kernel and its modules": {o: Options{Kernel: right, Modules: modules, Probe: probe, Stub: stub}, err: ""},
		"no unified image":         {o: Options{Kernel: right, Modules: modules, Probe: probe, Stub: NoStub}, err: ""},
		"a layout in a place of its own": {
			o:   Options{Kernel: right, Modules: modules, Probe: probe, Stub: NoStub, Layout: filepath.Join(folder, "images", "probe")},
			err: "",
		},
		"modules of another kernel": {
			o:   Options{Kernel: wrong, Modules: modules, Probe: probe, Stub: stub},
			err: "the modules are for Linux 6.1.0-9-amd64",
		},
		"no modules": {
			o: Options{Kernel: right, Modules: empty, Probe: probe, Stub: stub}, err: "there are no modules in",
		},
		"a kernel only":                {o: Options{Kernel: right}, err: "belong together"},
		"an architecture that is none": {o: Options{Arch: "sparc"}, err: "use amd64 or arm64"},
		"a flavour that is none":       {o: Options{Flavour: "rt"}, err: "use generic or cloud"},
		"a command line of two lines":  {o: Options{Arguments: "a\nb"}, err: "one line"},
		"a kernel that is not there":   {o: Options{Kernel: right + "x", Modules: modules}, err: "read kernel: open"},
		"a probe linked dynamically": {
			o:   Options{Kernel: right, Modules: modules, Probe: write("dynamic", program(elf.EM_X86_64, elf.PT_INTERP)), Stub: stub},
			err: "dynamic: the program is linked dynamically: build it with CGO_ENABLED=0",
		},
		"a probe of another architecture": {
			o:   Options{Kernel: right, Modules: modules, Probe: write("arm", program(elf.EM_AARCH64, elf.PT_LOAD)), Stub: stub},
			err: "arm: the program is for EM_AARCH64, not for EM_X86_64",
		},
		"a script as probe": {
			o: Options{Kernel: right, Modules: modules, Probe: write("script", []byte("#!/bin/sh\n")), Stub: stub}, err: "script: not a Linux program",
		},
		"a stub that is no UEFI program": {o: Options{Kernel: right, Modules: modules, Probe: probe, Stub: probe}, err: "read UEFI stub"},
	} {
		t.Run(title, func(t *testing.T) {
			tc.o.Out = filepath.Join(t.TempDir(), "out")
			r, err := Build(t.Context(), tc.o)
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("got %v, want %q", err, tc.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(filepath.Join(r.Layout, "index.json")); err != nil || tc.o.Layout != "" && r.Layout != tc.o.Layout {
				t.Errorf("the layout is %s, want %s: %v", r.Layout, tc.o.Layout, err)
			}
			if r.Release != "6.1.0-9-amd64" || (r.UKI == "") != (tc.o.Stub == NoStub) || r.Sizes.Initramfs == 0 {
				t.Errorf("result %+v", r)
			}
			if _, err := Build(t.Context(), tc.o); err != nil {
				t.Errorf("once more over the first: %v", err)
			}
		})
	}
}

func uefiStub() []byte {
	var b bytes.Buffer
	b.WriteString("MZ" + strings.Repeat("\x00", 0x3a))
	put := func(v any) {
		if err := binary.Write(&b, binary.LittleEndian, v); err != nil {
			panic(err)
		}
	}
	put(uint32(0x40))
	b.WriteString("PE\x00\x00")
	put(pe.FileHeader{
		Machine: pe.IMAGE_FILE_MACHINE_AMD64, NumberOfSections: 1,
		SizeOfOptionalHeader: uint16(binary.Size(pe.OptionalHeader64{})), Characteristics: 0x206,
	})
	put(pe.OptionalHeader64{
		Magic: 0x20b, SectionAlignment: 0x200, FileAlignment: 0x200, SizeOfHeaders: 0x200, SizeOfImage: 0x1200,
		CheckSum: 7, NumberOfRvaAndSizes: 16,
	})
	put(pe.SectionHeader32{
		Name: [8]uint8{'.', 't', 'e', 'x', 't'}, VirtualSize: 5, VirtualAddress: 0x1000,
		SizeOfRawData: 0x200, PointerToRawData: 0x200, Characteristics: 0x60000020,
	})
	b.Write(make([]byte, 0x200-b.Len()))
	b.WriteString("start" + strings.Repeat("\x00", 0x200-5))
	return b.Bytes()
}

func TestUnifiedKernelImage(t *testing.T) {
	sections := []section{
		{".osrel", []byte("ID=ingot\n")}, {".uname", []byte("6.1")}, {".cmdline", []byte("a b")},
		{".initrd", bytes.Repeat([]byte("i"), 5000)}, {".linux", bytes.Repeat([]byte("k"), 600)},
	}
	image := must.Get(addSections(uefiStub(), sections))(t)
	file := must.Get(pe.NewFile(bytes.NewReader(image)))(t)
	optional := file.OptionalHeader.(*pe.OptionalHeader64)
	want := append([]section{{".text", []byte("start")}}, sections...)
	if len(file.Sections) != len(want) {
		t.Fatalf("%d sections, want %d", len(file.Sections), len(want))
	}
	var end uint32
	for i, s := range file.Sections {
		data := must.Get(s.Data())(t)
		if s.Name != want[i].name || !bytes.Equal(data[:s.VirtualSize], want[i].content) {
			t.Errorf("section %d is %s with %d bytes, want %s with %d", i, s.Name, s.VirtualSize, want[i].name, len(want[i].content))
		}
		aligned := s.VirtualAddress%pageSize == 0 && s.Offset%optional.FileAlignment == 0
		if s.VirtualAddress < end || !aligned || s.Offset < optional.SizeOfHeaders {
			t.Errorf("section %s lies at %#x in memory and %#x in the file, after %#x", s.Name, s.VirtualAddress, s.Offset, end)
		}
		end = s.VirtualAddress + s.VirtualSize
	}
	if optional.SizeOfImage < end || optional.CheckSum != 0 || int(optional.SizeOfHeaders) > len(image) {
		t.Errorf("headers %+v", optional)
	}
	many := make([]section, 100)
	for i := range many {
		many[i].name = fmt.Sprintf(".s%d", i)
	}
	if _, err := addSections(uefiStub(), many); err == nil || !strings.Contains(err.Error(), "no room") {
		t.Errorf("more sections than there is room for: %v", err)
	}
}

func FuzzAddSections(f *testing.F) {
	f.Add(uefiStub())
	f.Fuzz(func(t *testing.T, stub []byte) { _, _ = addSections(stub, []section{{".linux", []byte("k")}}) })
}

func TestLayout(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "oci")
	p := parts{release: "6.1", kernel: []byte("kernel"), initramfs: []byte("initramfs"), uki: []byte("uki")}
	must.Do(t, writeLayout(t.Context(), folder, "amd64", p))
	store := must.Get(oci.NewFromFS(t.Context(), os.DirFS(folder)))(t)
	options := oras.DefaultResolveOptions
	options.TargetPlatform = &ocispec.Platform{Architecture: "amd64", OS: "linux"}
	d := must.Get(oras.Resolve(t.Context(), store, Tag, options))(t)
	raw := must.Get(content.FetchAll(t.Context(), store, d))(t)
	var manifest ocispec.Manifest
	must.Do(t, json.Unmarshal(raw, &manifest))
	got := map[string]string{}
	for _, l := range manifest.Layers {
		blob := must.Get(content.FetchAll(t.Context(), store, l))(t)
		got[l.MediaType] = string(blob)
	}
	want := map[string]string{
		"application/vnd.ironcore.image.kernel":    "kernel",
		"application/vnd.ironcore.image.initramfs": "initramfs",
		"application/vnd.ironcore.image.uki":       "uki",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("layers (-want +got):\n%s", diff)
	}
	if manifest.Config.MediaType != "application/vnd.oci.image.config.v1+json" {
		t.Errorf("config is %s", manifest.Config.MediaType)
	}
	options.TargetPlatform = &ocispec.Platform{Architecture: "arm64", OS: "linux"}
	if _, err := oras.Resolve(t.Context(), store, Tag, options); err == nil {
		t.Error("the image is taken for one of another architecture")
	}
}

// uploads is a registry that takes an image (distribution specification v1.1,
// "Push").
type uploads struct {
	mu   sync.Mutex
	kept map[string]string // by path
}

func (u *uploads) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	u.mu.Lock()
	defer u.mu.Unlock()
	body, _ := io.ReadAll(r.Body)
	switch {
	case r.Method == http.MethodPost:
		w.Header().Set("Location", r.URL.Path+"1")
		w.WriteHeader(http.StatusAccepted)
	case r.Method == http.MethodPut && r.URL.Query().Get("digest") != "":
		u.kept[r.URL.Query().Get("digest")] = string(body)
		w.WriteHeader(http.StatusCreated)
	case r.Method == http.MethodPut:
		u.kept[r.URL.Path] = string(body)
		w.WriteHeader(http.StatusCreated)
	default:
		http.NotFound(w, r)
	}
}

func TestPush(t *testing.T) {
	u := &uploads{kept: make(map[string]string)}
	registry := httptest.NewServer(u)
	defer registry.Close()
	folder := filepath.Join(t.TempDir(), "oci")
	must.Do(t, writeLayout(t.Context(), folder, "arm64", parts{release: "6.1", kernel: []byte("k"), initramfs: []byte("i")}))
	host := strings.TrimPrefix(registry.URL, "http://")
	digest, err := Result{Layout: folder}.Push(t.Context(), host+"/ingot/probe:1")
	if err != nil {
		t.Fatal(err)
	}
	index := u.kept["/v2/ingot/probe/manifests/1"]
	if !strings.Contains(index, `"architecture":"arm64"`) || !strings.HasPrefix(digest, "sha256:") {
		t.Errorf("pushed %s: %s; kept %v", digest, index, u.kept)
	}
	_, err = Result{Layout: folder}.Push(t.Context(), "no reference")
	if err == nil || !strings.Contains(err.Error(), "no reference") {
		t.Errorf("a reference that is none: %v", err)
	}
}

func TestWhatAptSays(t *testing.T) {
	shown := "Package: linux-image-amd64\nVersion: 6.1.1\nDepends: initramfs-tools | x, linux-image-6.1.0-9-amd64 (= 6.1.1)\n"
	if got := kernelOf(shown); got != "linux-image-6.1.0-9-amd64" {
		t.Errorf("kernel %q", got)
	}
	if got := kernelOf("Package: other\nDepends: libc6\n"); got != "" {
		t.Errorf("kernel %q of a package that is none", got)
	}
	got, err := parseOffer("'http://127.0.0.1/pool/a%7eb.deb' a~b_1_amd64.deb 12 SHA256:00ff\n")
	if err != nil || got != (offer{"a~b_1_amd64.deb", "00ff"}) {
		t.Errorf("%+v, %v", got, err)
	}
	for _, printed := range []string{"", "Reading lists...\n", "'u' ../../etc/passwd 1 SHA256:00\n", "'u' a.deb 1 MD5Sum:00\n"} {
		if o, err := parseOffer(printed); err == nil {
			t.Errorf("%q is taken: %+v", printed, o)
		}
	}
}

func TestAFolderWithSomethingElseIsNotReplaced(t *testing.T) {
	dir := t.TempDir()
	write := func(path string) {
		t.Helper()
		must.Do(t, errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, nil, 0o600)))
	}
	write(filepath.Join(dir, "images", "probe", "oci-layout"))
	write(filepath.Join(dir, "images", "os", "oci-layout"))
	must.Do(t, os.Mkdir(filepath.Join(dir, "empty"), 0o755))
	for folder, may := range map[string]bool{"missing": true, "empty": true, "images/probe": true, "images": false, "images/probe/oci-layout": false} {
		if err := mayReplace(filepath.Join(dir, folder)); (err == nil) != may {
			t.Errorf("%s: %v, want it to be replaced: %t", folder, err, may)
		}
	}
	o := Options{Out: dir, Layout: filepath.Join(dir, "images")}
	if _, err := Build(t.Context(), o); err == nil || !strings.Contains(err.Error(), "holds something else than an OCI image layout") {
		t.Errorf("built: %v", err)
	}
}
