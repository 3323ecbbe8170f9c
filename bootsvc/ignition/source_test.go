package ignition

import (
	"regexp"
	"strings"
	"testing"
)

// Y06: of a value that a library quotes, nothing may be left where its quotation marks are
// those of the message.
func TestNoPartOfAValueIsShown(t *testing.T) {
	butane := func(uid string) string {
		return "variant: fcos\nversion: 1.5.0\npasswd:\n  users:\n    - name: core\n      uid: " + uid + "\n    - {name: other, uid: [1]}\n"
	}
	const oneLine = "line 6: want a whole number; line 7: want a whole number"
	for title, tc := range map[string]struct{ source, want string }{
		"a value with a backtick":          {butane("\"a`S3cr3t-x\""), oneLine},
		"a value of three characters":      {butane("\"`S3\""), oneLine},
		"a long value with a backtick":     {butane("\"a`S3cr3t-is-long\""), oneLine},
		"a value with two":                 {butane("\"a`S3`t\""), oneLine},
		"a value that ends as the message": {butane("\"` into S3\""), oneLine},
		"a value with a line end":          {butane("\"a\\nS3cr3t-x\""), oneLine},
		"a long value with a line end":     {butane("\"a\\nS3cr3t-is-long\""), oneLine},
		"a date":                           {butane("2001-12-14"), "line 6: want a whole number"},
		"a value with a tag of its own": {
			butane("!mine \"a`S3cr3t-x\""), "line 6: want a whole number",
		},
	} {
		t.Run(title, func(t *testing.T) {
			_, err := toIgnition([]byte(tc.source), formatButane)
			if err == nil {
				t.Fatal("there is no error")
			}
			if !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got  %v\nwant %s", err, tc.want)
			}
			for _, part := range []string{"S3", "cr3", "t-x", "2001", "2-14", "mine"} {
				if strings.Contains(err.Error(), part) {
					t.Errorf("%q is of the value: %v", part, err)
				}
			}
		})
	}
}

// A marker at each place of each document, as text, key, anchor, alias, tag, URL, and in what breaks the syntax, is in
// no error.
func TestNoErrorShowsTheTextOfASecret(t *testing.T) {
	const butane = `variant: fcos
version: 1.5.0
passwd:
  users:
    - name: core
      uid: 1000
      ssh_authorized_keys: [key]
storage:
  files:
    - path: /a
      mode: 0644
      contents: {inline: b}
  links: [{path: /l, target: /a}]
  filesystems: [{device: /dev/sda, format: ext4, label: l}]
systemd:
  units:
    - name: a.service
      enabled: true
      contents: "[Service]\nExecStart=/bin/a\n[Install]\nWantedBy=multi-user.target\n"
`
	const ignition = `{"ignition": {"version": "3.4.0", "config": {"merge": [{"source": "https://a/b"}]}},
	"storage": {"files": [{"path": "/a", "mode": 420, "contents": {"source": "data:,x", "compression": ""}}]},
	"systemd": {"units": [{"name": "a.service", "enabled": true, "contents": "[Install]\nWantedBy=a"}]}}`
	documents := map[string]struct {
		text string
		boot func(text string) ClaimBoot
	}{
		"Butane":   {butane, func(s string) ClaimBoot { return cloudBoot("ignition", s) }},
		"Ignition": {ignition, func(s string) ClaimBoot { return cloudBoot("ignition", s) }},
		"user-data": {
			"#cloud-config\nusers:\n  - name: a\n    plain: &p {b: 1}\nruncmd: [[a, b]]\nc: {<<: *p}\n",
			func(s string) ClaimBoot { return cloudBoot("user-data", s) },
		},
		"an archive": {"#cloud-config-archive\n- {type: text/x, content: a}\n", func(s string) ClaimBoot { return cloudBoot("user-data", s) }},
		"network-config": {
			"version: 2\nethernets: {a: {dhcp4: true}}\n", func(s string) ClaimBoot { return cloudBoot("user-data", "#!/bin/sh\n", "network-config", s) },
		},
		"meta-data": {"instance-id: a\nb: [c]\n", func(s string) ClaimBoot { return cloudBoot("user-data", "#!/bin/sh\n", "meta-data", s) }},
		"vendor-data": {
			"#cloud-config\na: {b: c}\n", func(s string) ClaimBoot { return cloudBoot("user-data", "#!/bin/sh\n", "vendor-data", s) },
		},
		"a script": {"#!ipxe\nshell\n", func(s string) ClaimBoot { return cloudBoot("ipxe-script", s) }},
		"a format": {"fcos", func(s string) ClaimBoot { return cloudBoot("ignition", butane, "format", s) }},
	}
	inserts := []string{
		"zq7xv9", "7351964", "zq7xv9: ", "\"zq7xv9\": ", "{zq7xv9: 1}", "[zq7xv9]", "&zq7xv9 ", "*zq7xv9 ", "!zq7xv9 ", "!!int zq7xv9", "`zq7xv9` into zq7",
		"http://zq7xv9:zq7 /", "'zq7xv9", "\"zq7xv9", "\nzq7xv9: \n", "\n  line 7: zq7xv9", "\tzq7xv9", "%zq7xv9", "\\zq7xv9", "\x00zq7xv9", "? {zq7xv9: 7351964}\n: a\n",
		`"zq7xv9": 7351964.5,`, "2073-5-19", "<<: zq7xv9\n",
	}
	marker := regexp.MustCompile("zq7|q7x|7xv|xv9|7351|3519|1964|2073")
	g := newIgnition(t, Options{})
	errs := 0
	for title, d := range documents {
		for at := range len(d.text) + 1 {
			if at > 0 && afterWord(d.text[at-1:]) != d.text[at-1:] && at < len(d.text) && afterWord(d.text[at:]) != d.text[at:] {
				continue // within a word
			}
			for _, insert := range inserts {
				for _, rest := range []string{d.text[at:], afterWord(d.text[at:])} { // before the present word, and in its place
					_, err := g.ForClaim(d.boot(d.text[:at] + insert + rest))
					if err == nil {
						continue
					}
					errs++
					if marker.MatchString(err.Error()) {
						t.Fatalf("%s with %q at byte %d: %v", title, insert, at, err)
					}
				}
			}
		}
	}
	if errs < 4_000 {
		t.Errorf("only %d sources were wrong", errs)
	}
}

func afterWord(s string) string {
	return strings.TrimLeft(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./")
}

func TestAnUnknownKeyIsNotShown(t *testing.T) {
	g := newIgnition(t, Options{})
	butane := "variant: fcos\nversion: 1.5.0\n"
	for source, want := range map[string]string{
		butane + "passwd:\n  users:\n    - name: core\n      pasword_hash: x\n": `line 6, column 7: unknown key, did you mean "password_hash"?`,
		butane + "storage:\n  files:\n    - path: /a\n      contents:\n        inline: |\n          a\n        hunter2: \n": "line 9, column 9: unknown key; known here: " +
			"compression, http_headers, inline, local, source, verification",
		butane + "storage: {disk: [], hunter2-is-long: 1}\n": `line 3, column 11: unknown key, did you mean "disks"?`,
		butane + "hunter2: {}\n":                             "line 3, column 1: unknown key; known here: boot_device, grub, ignition, kernel_arguments, passwd, storage, systemd, variant, version",
		"variant: openshift\nversion: 4.14.0\nmetadata: {name: a, label: {}, labels: {machineconfiguration.openshift.io/role: worker}}\n": `line 3, column 21: unknown key, did you mean "labels"?`,
		`{"ignition":{"version":"3.3.0"}, "storage":{"files":[{"path":"/a","contents":{"sorce":"x"}}]}}`:                                  `unknown key, did you mean "source"?`,
	} {
		_, err := g.ForClaim(claimBoot(source, ""))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s\ngot  %v\nwant %s", source, err, want)
		}
	}
}
