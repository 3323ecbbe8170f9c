package ignition

import (
	"compress/gzip"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ingot/model"
	"ingot/model/must"
)

func cloudBoot(pairs ...string) ClaimBoot {
	return ClaimBoot{
		UUID: uuid1, Secret: secretOf(pairs...), BootStateURL: bootState,
		InstanceID: "s1-1-20261121T120000Z", Hostname: "web",
	}
}

func opened(t *testing.T, b ClaimBoot) Payload {
	t.Helper()
	sealed := must.Get(newIgnition(t, Options{}).ForClaim(b))(t)
	return must.Get(Open(sealed))(t)
}

func TestTheSameBytesFromEveryProcess(t *testing.T) {
	for title, b := range map[string]ClaimBoot{
		"nothing": cloudBoot(),
		"Butane": claimBoot(
			"variant: fcos\nversion: 1.4.0\nstorage: {files: [{path: /a, contents: {inline: b}}, {path: /c}]}\n", "fcos",
		),
		"JSON": claimBoot(`{"ignition":{"version":"3.4.0"},"storage":{"files":[{"path":"/a"},{"path":"/b"}]}}`, ""),
		"cloud-init": cloudBoot(
			"user-data", "#!/bin/sh\n", "meta-data", "{b: 1, a: 2}", "vendor-data", "#cloud-config\n", "network-config", "version: 2\n",
		),
		"a script":          cloudBoot("ipxe-script", "#!ipxe\nshell\n", "ignition", `{"ignition":{"version":"3.0.0"}}`),
		"kernel arguments":  {UUID: uuid1, BootStateURL: bootState, KernelArguments: "quiet"},
		"user-data of HTML": cloudBoot("user-data", "#cloud-config\na: '<&>\u2028\\\"'\n"),
	} {
		one, err := newIgnition(t, Options{}).ForClaim(b)
		if err != nil {
			t.Fatal(title, err)
		}
		for range 5 {
			if again, _ := newIgnition(t, Options{}).ForClaim(b); again != one {
				t.Errorf("T14: %s gives other bytes from another process", title)
			}
		}
		p, err := Open(one)
		if err != nil || p.Seal() != one {
			t.Errorf("%s: opened and sealed again it is something else, %v", title, err)
		}
	}
	if _, err := Open(model.NewSensitive(payloadMark + "{")); err == nil {
		t.Error("half a payload is taken")
	}
}

func TestEveryVariantOfButane(t *testing.T) {
	openshift := func(version string) string {
		return "variant: openshift\nversion: " + version +
			"\nmetadata: {name: a, labels: {machineconfiguration.openshift.io/role: worker}}\n"
	}
	sources := map[string]string{
		"fcos 1.0.0": "3.0.0", "fcos 1.1.0": "3.1.0", "fcos 1.2.0": "3.2.0", "fcos 1.3.0": "3.2.0",
		"fcos 1.4.0": "3.3.0", "fcos 1.5.0": "3.4.0", "fcos 1.6.0": "3.5.0", "fcos 1.7.0": "3.6.0",
		"flatcar 1.0.0": "3.3.0", "flatcar 1.1.0": "3.4.0", "r4e 1.0.0": "3.3.0", "r4e 1.1.0": "3.4.0", "fiot 1.0.0": "3.4.0",
	}
	for minor := 8; minor <= 22; minor++ {
		want := map[int]string{8: "3.2.0", 9: "3.2.0", 10: "3.2.0", 11: "3.2.0", 12: "3.2.0", 13: "3.2.0"}[minor]
		switch {
		case want != "":
		case minor < 19:
			want = "3.4.0"
		default:
			want = "3.5.0"
		}
		sources[fmt.Sprintf("openshift 4.%d.0", minor)] = want
	}
	g := newIgnition(t, Options{})
	for name, want := range sources {
		variant, version, _ := strings.Cut(name, " ")
		source := "variant: " + variant + "\nversion: " + version + "\n"
		if variant == "openshift" {
			source = openshift(version)
		}
		got, err := g.ForClaim(claimBoot(source, ""))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if have := versionOf(valid(t, got)); have != want {
			t.Errorf("%s became %s, want %s", name, have, want)
		}
	}
	for _, name := range []string{
		"fcos 1.8.0-experimental", "flatcar 1.2.0-experimental", "openshift 4.23.0-experimental",
		"r4e 1.2.0-experimental", "fiot 1.1.0-experimental",
		"fcos 1.9.0", "fcos 1.4", "rhcos 0.1.0", "gardenlinux 1.0.0",
	} {
		variant, version, _ := strings.Cut(name, " ")
		if _, err := g.ForClaim(claimBoot("variant: "+variant+"\nversion: "+version+"\n", "")); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}

func TestTheSecretOfAClaimSaysWhatIsWrong(t *testing.T) {
	const secret = "hunter2-is-the-secret"
	g := newIgnition(t, Options{})
	for title, tc := range map[string]struct {
		pairs []string
		want  string
	}{
		"Ignition and cloud-init": {
			pairs: []string{"ignition", "{}", "user-data", "#!/bin/sh\n"}, want: "user-data: the Secret has a key ignition as well",
		},
		"a decimal mode of Butane": {
			pairs: []string{"ignition", "variant: fcos\nversion: 1.4.0\nstorage:\n  files:\n    - path: /a\n      mode: 644\n"},
			want:  "ignition: line 6, column 13: unreasonable mode would be reasonable if specified in octal",
		},
		"Ignition of 100 MB": {
			pairs: []string{"ignition", strings.Repeat("[", 100<<20)}, want: "ignition: the source has 104857600 bytes; at most 2097152",
		},
		"a format of 100 MB": {
			pairs: []string{"ignition", "{}", "format", strings.Repeat("f", 100<<20)},
			want:  "format: the source has",
		},
		"user-data of 3 MB": {pairs: []string{"user-data", strings.Repeat("#", 3<<20)}, want: "user-data: the source has"},
		"Ignition that is no UTF-8": {
			pairs: []string{"ignition", "variant: fcos\nversion: \"\xff" + secret + "\"\n"},
			want:  "ignition: line 2, column 11: here is a byte that is no text in UTF-8",
		},
		"user-data that is a gzip bomb": {
			pairs: []string{"user-data", packed("#!/bin/sh\n", strings.Repeat(secret, 2<<20))},
			want:  "user-data: it is packed with gzip, and has more than 2097152 bytes when unpacked",
		},
		"user-data whose gzip is cut off": {
			pairs: []string{"user-data", packed("#!/bin/sh\n" + secret)[:20]},
			want:  "user-data: it is packed with gzip, and it is truncated, damaged or followed by other data",
		},
		"user-data with text behind its gzip": {
			pairs: []string{"user-data", packed("#!/bin/sh\n") + secret},
			want:  "user-data: it is packed with gzip, and it is truncated, damaged or followed by other data",
		},
		"user-data with half a gzip header":  {pairs: []string{"user-data", "\x1f\x8b\x08"}, want: "user-data: it is packed with gzip, and it is truncated"},
		"user-data that is packed twice":     {pairs: []string{"user-data", packed(packed("#!/bin/sh\n"))}, want: "user-data: it is packed with gzip twice"},
		"user-data that is encoded twice":    {pairs: []string{"user-data", encoded("#cloud-config\na: " + secret)}, want: "user-data: it is encoded with base64 twice"},
		"gzip that is encoded twice":         {pairs: []string{"user-data", encoded(packed("#!/bin/sh\n"))}, want: "user-data: it is encoded with base64 twice"},
		"Ignition that is encoded twice":     {pairs: []string{"ignition", encoded(`{"ignition":{}}`)}, want: "ignition: it is encoded with base64 twice"},
		"a packed cloud-config with a fault": {pairs: []string{"user-data", packed("#cloud-config\na: [" + secret)}, want: "user-data: line 1: a \",\""},
		"user-data with a zero byte": {
			pairs: []string{"user-data", "#!/bin/sh\n\x00" + secret}, want: "user-data: line 2, column 1: here is a byte",
		},
		"user-data that cloud-init passes over": {
			pairs: []string{"user-data", "hostname: " + secret + "\n"},
			want:  "user-data: line 1, column 1: cloud-init would ignore this",
		},
		"a cloud-config that is no YAML": {
			pairs: []string{"user-data", "#cloud-config\na: [" + secret + "\n"},
			want:  "user-data: line 1: a \",\" or a closing bracket is missing",
		},
		"a cloud-config with a key twice": {
			pairs: []string{"user-data", "#cloud-config\na: " + secret + "\na: b\n"},
			want:  "user-data: line 3: this key is already in line 2 of the document: keep one of them",
		},
		"a cloud-config that is a list": {
			pairs: []string{"user-data", "#cloud-config\n- " + secret + "\n"}, want: "user-data: line 2, column 1: this is not a mapping",
		},
		"a cloud-config that unfolds for ever": {
			pairs: []string{
				"user-data",
				"#cloud-config\na: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\n" +
					"d: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e]\n" +
					"g: [*f,*f,*f,*f,*f,*f,*f,*f,*f]\n",
			},
			want: "user-data: ",
		},
		"a cloud-config-archive that is no YAML": {
			pairs: []string{"user-data", "#cloud-config-archive\n- {\n"},
			want:  "user-data: ",
		},
		"meta-data that is a list": {
			pairs: []string{"user-data", "#!/bin/sh\n", "meta-data", "- " + secret},
			want:  "meta-data: line 1, column 1: this is not a mapping",
		},
		"network-config that is a word": {
			pairs: []string{"user-data", "#!/bin/sh\n", "network-config", secret},
			want:  "network-config: line 1, column 1: this is not a mapping",
		},
		"vendor-data that cloud-init passes over": {
			pairs: []string{"user-data", "#!/bin/sh\n", "vendor-data", secret},
			want:  "vendor-data: line 1",
		},
		"meta-data without user-data": {
			pairs: []string{"meta-data", "{}"},
			want:  "meta-data: the Secret has no key user-data",
		},
		"a script that is none": {
			pairs: []string{"ipxe-script", "#!/bin/sh\n" + secret},
			want:  "ipxe-script: line 1, column 1: an iPXE script begins with #!ipxe",
		},
		"a script of 65 KiB": {
			pairs: []string{"ipxe-script", "#!ipxe\n" + strings.Repeat("#", 65<<10)},
			want:  "ipxe-script: the script has 66567 bytes; at most 65536",
		},
		"a script that is no UTF-8": {pairs: []string{"ipxe-script", "#!ipxe\n\xc3"}, want: "ipxe-script: line 2, column 1"},
	} {
		t.Run(title, func(t *testing.T) {
			got, err := g.ForClaim(cloudBoot(tc.pairs...))
			if _, ok := errors.AsType[*SourceError](err); !ok {
				t.Fatalf("got %d bytes, %v", len(got.Reveal()), err)
			}
			if !strings.HasPrefix(err.Error(), tc.want) {
				t.Errorf("error %q does not say %q", err, tc.want)
			}
			if strings.Contains(err.Error(), secret[:7]) || len(err.Error()) > 4000 {
				t.Errorf("Y06: the error quotes the source: %v", err)
			}
		})
	}
}

func packed(members ...string) string {
	var b strings.Builder
	for _, text := range members {
		w := gzip.NewWriter(&b)
		_, _ = w.Write([]byte(text))
		_ = w.Close()
	}
	return b.String()
}

// encoded is base64 in lines, as programs write it.
func encoded(text string) string {
	e := base64.StdEncoding.EncodeToString([]byte(text))
	return e[:10] + "\n" + e[10:] + "\n"
}

func TestPackedDocumentsAreServedUnpacked(t *testing.T) {
	ign := `{"ignition":{"version":"3.4.0"}}`
	for title, tc := range map[string]struct{ plain, packed ClaimBoot }{
		"cloud-init": {
			cloudBoot("user-data", "#cloud-config\na: b\n", "meta-data", "a: b", "vendor-data", "#!/bin/sh\n", "network-config", "version: 2\n"),
			cloudBoot("user-data", packed("#cloud-config\n", "a: b\n"), "meta-data", packed("a: b"), "vendor-data", packed("#!/bin/sh\n"),
				"network-config", packed("version: 2\n")),
		},
		"Ignition": {cloudBoot("ignition", ign), cloudBoot("ignition", packed(ign))},
	} {
		want, got := opened(t, tc.plain), opened(t, tc.packed)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: plain -, packed +:\n%s", title, diff)
		}
	}
	seed := installed(t, diskBoot("user-data", packed("#cloud-config\na: b\n"))).Install.Seed
	if got := seed.Files["user-data"]; got != "#cloud-config\na: b\n" {
		t.Errorf("a disk gets %q", got)
	}
}

func TestKernelArguments(t *testing.T) {
	for given, want := range map[string]string{
		"":                                      "",
		"  ":                                    "",
		"quiet":                                 "quiet",
		" quiet   console=ttyS1,115200n8 ":      "quiet console=ttyS1,115200n8",
		"root=LABEL=a/b ip=[fd00::1]:x*y?!~+%@": "root=LABEL=a/b ip=[fd00::1]:x*y?!~+%@",
		"ds=nocloud;s=http://a/":                "ds=nocloud;s=http://a/",
		strings.Repeat("a", maxArguments):       strings.Repeat("a", maxArguments),
	} {
		if got, err := KernelArguments(given); err != nil || got != want {
			t.Errorf("%q became %q, %v", given, got, err)
		}
	}
	for given, want := range map[string]string{
		"quiet\nboot":                       "annotation ingot/kernel-arguments: line 1, column 6: a character that is not allowed",
		"a\rb":                              "column 2",
		"a\tb":                              "column 2",
		"a ${uuid}":                         "column 3",
		"$x":                                "column 1",
		`dyndbg="file a +p"`:                "column 8",
		"a'b":                               "column 2",
		`a\`:                                "column 2",
		"a || reboot":                       "column 3",
		"a && reboot":                       "column 3",
		"a #b":                              "column 3",
		"a ; reboot":                        "a semicolon that stands alone",
		"a\x00":                             "column 2",
		"gr\u00fc\u00df":                    "column 3",
		"\xff":                              "column 1",
		strings.Repeat("a", maxArguments+1): "have 1025 bytes; at most 1024",
	} {
		_, err := KernelArguments(given)
		if _, ok := errors.AsType[*SourceError](err); !ok || !strings.Contains(err.Error(), want) {
			t.Errorf("Y07: %q: %v, want %s", given, err, want)
		}
	}
	b := ClaimBoot{UUID: uuid1, BootStateURL: bootState, KernelArguments: "a\nb"}
	if _, err := newIgnition(t, Options{}).ForClaim(b); err == nil {
		t.Error("Y07: a claim with a line in its kernel arguments is armed")
	}
}

// FuzzClaim feeds what people and their labels may hold: it must never crash, and a
// payload that is made must open again.
func FuzzClaim(f *testing.F) {
	f.Add("variant: fcos\nversion: 1.4.0\n", "#cloud-config\na: b\n", "instance-id: x\n", "#!/bin/sh\n", "web")
	f.Add(
		`{"ignition":{"version":"3.3.0"}}`, "Content-Type: multipart/mixed\nMIME-Version: 1.0\n\n", "a: &a [*a]", "MIME-Version: 1.0\n",
		"a\nb: c",
	)
	f.Add("\xff", "## template: jinja\n", "\"${uuid}\": '\n'", "#cloud-config\n{", strings.Repeat("a.", 200))
	g := must.Get(New(Options{}))(f)
	f.Fuzz(func(t *testing.T, ignition, user, meta, vendor, host string) {
		for _, b := range []ClaimBoot{
			cloudBoot("ignition", ignition, "format", host),
			cloudBoot("user-data", user, "meta-data", meta, "vendor-data", vendor),
			cloudBoot("user-data", "#!/bin/sh\n", "meta-data", meta),
		} {
			b.Hostname = host
			sealed, err := g.ForClaim(b)
			if err != nil {
				continue
			}
			p := must.Get(Open(sealed))(t)
			if _, err := mapping(keyMetaData, p.NoCloud[keyMetaData]); err != nil {
				t.Fatalf("meta-data %q of %q and host %q: %v", p.NoCloud[keyMetaData], meta, host, err)
			}
		}
	})
}
