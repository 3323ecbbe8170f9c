package ignition

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ingot/model"
	"ingot/model/must"
)

func diskBoot(pairs ...string) DiskBoot {
	return DiskBoot{
		ClaimBoot: cloudBoot(pairs...), RegistryURL: "http://registry.example:10000", Token: model.NewSensitive("tokenoftheticket"),
		Image:      model.DiskImage{Ref: "https://images.example/debian.qcow2", Digest: "sha512:00", Format: "qcow2", Bytes: 4 << 30, Starts: []model.StartMethod{model.StartBIOS}},
		Identities: model.DiskIdentities{Labels: []string{"root"}},
		Hints:      []string{"serial=S1"}, Previous: &model.RootDisk{Serial: "S0"}, MayOverwrite: true,
	}
}

func installed(t *testing.T, b DiskBoot) Payload {
	t.Helper()
	g := newIgnition(t, Options{})
	sealed := must.Get(g.ForDisk(b))(t)
	if again, _ := newIgnition(t, Options{}).ForDisk(b); again != sealed {
		t.Error("another process gives other bytes")
	}
	p, err := Open(sealed)
	if err != nil || p.Install == nil {
		t.Fatalf("the payload holds no install, %v", err)
	}
	return p
}

func TestTheInstallDocument(t *testing.T) {
	b := diskBoot("user-data", "#cloud-config\n")
	b.Image.Starts = append(b.Image.Starts, model.StartUEFIAMD64)
	got := *installed(t, b).Install
	got.Seed = nil
	want := model.InstallDocument{
		Version: 1, Install: b.InstanceID, Image: b.Image, Table: "table", Chunks: "chunks", Identities: b.Identities, Hints: b.Hints,
		Previous: b.Previous, MayOverwrite: true, BootEntry: "Ingot web",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the document (-want +got):\n%s", diff)
	}
	if entry := installed(t, diskBoot()).Install.BootEntry; entry != "" {
		t.Errorf("an image that UEFI cannot start gets the boot entry %q", entry)
	}
}

func TestTheProbeThatInstalls(t *testing.T) {
	const url = "http://boot.example:8082/install/" + uuid1 + "/abc"
	got := installed(t, diskBoot()).InstallIgnition(url)
	want := "--registry-url=http://registry.example:10000/r/tokenoftheticket --server-uuid=" + uuid1 + " --install=" + url
	if !strings.Contains(got, want) || strings.Contains(got, installMark) {
		t.Errorf("Ignition has not %q:\n%s", want, got)
	}
	file := []byte("variant: fcos\nversion: 1.3.0\nstorage: {files: [{path: /etc/probe, contents: {inline: \"{{.Flags}}\"}}]}\n")
	sealed := must.Get(newIgnition(t, Options{ProbeTemplate: file}).ForDisk(diskBoot()))(t)
	p, err := Open(sealed)
	if err != nil || !strings.Contains(p.InstallIgnition(url), "--install%3D"+url) {
		t.Errorf("flags in a file of a template of one's own are %s, %v", p.Ignition, err)
	}
}

func TestWhichSeedIsWritten(t *testing.T) {
	const butane = "variant: fcos\nversion: 1.4.0\n"
	for title, tc := range map[string]struct {
		secret []string
		asked  model.SeedKind
		image  model.SeedKind
		want   model.SeedKind
		label  string
		files  []string
		noted  bool // it is said where Ignition goes
	}{
		"user-data goes by NoCloud": {
			secret: []string{"user-data", "#cloud-config\n"}, want: model.SeedNoCloud, label: "cidata",
			files: []string{"meta-data", "user-data", "vendor-data"},
		},
		"and so do its network's settings": {
			secret: []string{"user-data", "#cloud-config\n", "network-config", "version: 2\n"}, want: model.SeedNoCloud, label: "cidata",
			files: []string{"meta-data", "network-config", "user-data", "vendor-data"},
		},
		"without a Secret it is NoCloud that only reports": {
			want: model.SeedNoCloud, label: "cidata", files: []string{"meta-data", "user-data", "vendor-data"},
		},
		"Ignition goes by a config drive, which is said (N64)": {
			noted: true, secret: []string{"ignition", butane}, want: model.SeedOpenStack, label: "config-2",
			files: []string{"openstack/latest/meta_data.json", "openstack/latest/user_data", "openstack/latest/vendor_data.json"},
		},
		"which is not said where it was asked for": {
			secret: []string{"ignition", butane}, asked: model.SeedOpenStack, want: model.SeedOpenStack, label: "config-2",
			files: []string{"openstack/latest/meta_data.json", "openstack/latest/user_data", "openstack/latest/vendor_data.json"},
		},
		"but on Fedora CoreOS into its own filesystem": {
			secret: []string{"ignition", butane}, image: model.SeedFCOS, want: model.SeedFCOS, label: "boot", files: []string{"ignition/config.ign"},
		},
		"and on Flatcar": {
			secret: []string{"ignition", butane}, image: model.SeedFlatcar, want: model.SeedFlatcar, label: "OEM", files: []string{"config.ign"},
		},
		"as does what reports where there is no Secret": {
			image: model.SeedFCOS, want: model.SeedFCOS, label: "boot", files: []string{"ignition/config.ign"},
		},
		"user-data goes by NoCloud whatever the image": {
			secret: []string{"user-data", "#!/bin/sh\n"}, image: model.SeedFlatcar, want: model.SeedNoCloud, label: "cidata",
			files: []string{"meta-data", "user-data", "vendor-data"},
		},
		"the claim's word counts": {
			secret: []string{"user-data", "#cloud-config\n", "network-config", "{}"}, asked: model.SeedOpenStack, want: model.SeedOpenStack, label: "config-2",
			files: []string{
				"openstack/latest/meta_data.json", "openstack/latest/network_data.json", "openstack/latest/user_data", "openstack/latest/vendor_data.json",
			},
		},
		"auto is as if nothing were said": {
			secret: []string{"ignition", butane}, asked: model.SeedAuto, image: model.SeedFCOS, want: model.SeedFCOS, label: "boot",
			files: []string{"ignition/config.ign"},
		},
		"Ignition by NoCloud, for platforms that look there": {
			secret: []string{"ignition", butane}, asked: model.SeedNoCloud, want: model.SeedNoCloud, label: "cidata",
			files: []string{"meta-data", "user-data", "vendor-data"},
		},
	} {
		t.Run(title, func(t *testing.T) {
			b := diskBoot(tc.secret...)
			b.Seed, b.IgnitionSeed = tc.asked, tc.image
			if note := b.SeedNote(); strings.Contains(note, "config drive") != tc.noted || !tc.noted && note != "" {
				t.Errorf("it is said: %q", note)
			}
			s := installed(t, b).Install.Seed
			if s.Kind != tc.want || s.Label != tc.label {
				t.Errorf("seed %s in filesystem %s, want %s in %s", s.Kind, s.Label, tc.want, tc.label)
			}
			if diff := cmp.Diff(tc.files, slices.Sorted(maps.Keys(s.Files))); diff != "" {
				t.Errorf("files (-want +got):\n%s", diff)
			}
		})
	}
	b := diskBoot("user-data", "#cloud-config\n")
	if b.Seed = model.SeedNone; installed(t, b).Install.Seed != nil {
		t.Error("a seed is written that nobody wants")
	}
}

func TestWhatTheSeedsSay(t *testing.T) {
	nocloud := installed(t, diskBoot("user-data", "#cloud-config\na: 1\n", "meta-data", "tags: [a]\n")).Install.Seed.Files
	golden(t, "vendor-data.sh", nocloud["vendor-data"])
	if got, want := nocloud["meta-data"], "tags: [a]\ninstance-id: s1-1-20261121T120000Z\nlocal-hostname: web\n"; got != want {
		t.Errorf("meta-data is %q, want %q", got, want)
	}
	drive := diskBoot("user-data", "#cloud-config\na: 1\n", "meta-data", "local-hostname: db\ntags: [a]\n")
	drive.Seed = model.SeedOpenStack
	files := installed(t, drive).Install.Seed.Files
	for name, want := range map[string]any{
		"meta_data.json":   map[string]any{"uuid": "s1-1-20261121T120000Z", "hostname": "db", "tags": []any{"a"}},
		"vendor_data.json": map[string]any{"cloud-init": nocloud["vendor-data"]},
	} {
		var got any
		if err := json.Unmarshal([]byte(files["openstack/latest/"+name]), &got); err != nil {
			t.Fatal(name, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	ignited := diskBoot("ignition", "variant: fcos\nversion: 1.4.0\n")
	ignited.IgnitionSeed, ignited.KernelArguments = model.SeedFCOS, " ip=dhcp  quiet"
	s := installed(t, ignited).Install.Seed
	if !strings.Contains(s.Files["ignition/config.ign"], bootStateUnit) || s.KernelArguments != "ip=dhcp quiet" {
		t.Errorf("Fedora CoreOS does not report, or has the arguments %q:\n%s", s.KernelArguments, s.Files)
	}
	ignited.IgnitionSeed, ignited.KernelArguments = "", ""
	if s = installed(t, ignited).Install.Seed; !strings.Contains(s.Files["openstack/latest/user_data"], bootStateUnit) {
		t.Errorf("Ignition of a config drive does not report:\n%s", s.Files)
	}
	for _, talos := range []string{"version: v1alpha1\nmachine:\n  type: worker\n", "apiVersion: v1alpha1\nkind: HostnameConfig\n---\nmachine: {}\n"} {
		if got := installed(t, diskBoot("user-data", talos)).Install.Seed.Files["user-data"]; got != talos {
			t.Errorf("the machine configuration of Talos became %q", got)
		}
	}
}

func TestSeedsThatCannotBe(t *testing.T) {
	for title, tc := range map[string]struct {
		secret []string
		change func(*DiskBoot)
		of     string
		says   string
	}{
		"an instance-id that would not tell installs apart": {
			secret: []string{"user-data", "#cloud-config\n", "meta-data", "instance-id: i-1\n"}, of: "meta-data", says: "leave it out",
		},
		"a script of one's own": {secret: []string{"ipxe-script", "#!ipxe\n"}, of: "ipxe-script", says: "leave it out"},
		"user-data for what reads Ignition": {
			secret: []string{"user-data", "#cloud-config\n"}, change: func(b *DiskBoot) { b.Seed = model.SeedFlatcar }, of: annotationSeed, says: "seed flatcar is for Ignition",
		},
		"kernel arguments of an image that has its own": {
			secret: []string{"user-data", "#cloud-config\n"}, change: func(b *DiskBoot) { b.KernelArguments = "quiet" }, of: annotationArguments, says: "only the seed fcos",
		},
		"a kind that there is not":     {change: func(b *DiskBoot) { b.Seed = "floppy" }, of: annotationSeed, says: "nocloud, openstack, fcos, flatcar or none"},
		"user-data that nothing reads": {secret: []string{"user-data", "hello"}, of: "user-data", says: "ignore this"},
		"NoCloud's network on a config drive": {
			secret: []string{"user-data", "#cloud-config\n", "network-config", "version: 2\n"}, change: func(b *DiskBoot) { b.Seed = model.SeedOpenStack },
			of: "network-config", says: "network_data.json",
		},
		"N63: user-data of more than 3.9 MiB": {
			secret: []string{"user-data", "#!/bin/sh\n" + strings.Repeat("#", maxDiskSource)}, of: "user-data", says: "at most 4089446 are allowed",
		},
	} {
		b := diskBoot(tc.secret...)
		if tc.change != nil {
			tc.change(&b)
		}
		_, err := newIgnition(t, Options{}).ForDisk(b)
		source, ok := errors.AsType[*SourceError](err)
		if !ok || source.Of != tc.of || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: %v", title, err)
		}
	}
	large := diskBoot("user-data", "#!/bin/sh\n"+strings.Repeat("#", maxDiskSource-10))
	if _, err := newIgnition(t, Options{}).ForDisk(large); err != nil {
		t.Errorf("user-data of 3.9 MiB is refused: %v", err)
	}
	for title, change := range map[string]func(*DiskBoot){
		"a token of more than letters and digits": func(b *DiskBoot) { b.Token = model.NewSensitive("a b") },
		"a registry that is no URL":               func(b *DiskBoot) { b.RegistryURL = "http://a b" },
		"a UUID that is none":                     func(b *DiskBoot) { b.UUID = "x" },
	} {
		b := diskBoot()
		if change(&b); b.check(t) == nil {
			t.Errorf("%s is taken", title)
		}
	}
}

func (b *DiskBoot) check(t *testing.T) error {
	_, err := newIgnition(t, Options{}).ForDisk(*b)
	return err
}

func TestTheSeedThatAnImageLooksFor(t *testing.T) {
	for title, tc := range map[string]struct {
		labels    []string
		firstBoot bool
		want      model.SeedKind
	}{
		"Fedora CoreOS":                    {[]string{"EFI-SYSTEM", "boot", "root"}, true, model.SeedFCOS},
		"a filesystem boot of another":     {[]string{"boot", "root"}, false, ""},
		"Flatcar":                          {[]string{"EFI-SYSTEM", "USR-A", "OEM", "ROOT"}, false, model.SeedFlatcar},
		"an image that reads no Ignition":  {[]string{"cloudimg-rootfs", "UEFI"}, false, ""},
		"an image without any filesystems": {nil, true, ""},
	} {
		if got := SeedOf(tc.labels, tc.firstBoot); got != tc.want {
			t.Errorf("%s: %q, want %q", title, got, tc.want)
		}
	}
}
