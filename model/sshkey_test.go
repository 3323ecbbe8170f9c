package model

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
)

const (
	testEd25519 = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIF1juKY626E4fQzuHKLR/K2kbdeSBuEmw9YynTh72RL8 ed25519@example.com"
	testECDSA   = "ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBPjTJFsPPiyuClbTryAzjyB3uuBuiU6v1nfkIIGBFdnkgNOpd4Q3jWHlHLUMv22U0iC2X/71P4Cm73qmwSGTeI4= ecdsa@example.com"
	testRSA     = "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABAQCT6z5oWd+waXQJJgznz+mD/9wvWa4kXE9XR9IEmkbkx+IPvxVIAI3vMXCizxxBlHu68jqCd1d1W4YZM+0oRTk3r9cvkVRnko+tWMxjRZwXm3p+tdQeGoCNVJ7XBZGK67zJRKyrvCSP4f7SYwrq8U3SsbQk1g+bQVglKKKBLCsrvzkUmOyrW5hMmJUJtSuk2IA8TmmNc+9J0dHxfdXSgOh78bWq506kzkotZnzGWx/zPrNW3P84JCCIiaJGlnUHP0d19huLxbV/R28sTWjbHCCyS8lGnxs8wF+vQoo0r1akrpNbfHBdMxPXBfoOQtzI3upcCAaTQfnqYXq7cKnpdl1H rsa2048"
	testWeakRSA = "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAAAgQDRLhY1/o9a/C33jlF812B2pO8ybbL2msgYcpojvkHrjj+LLA3l6nIWzGxvK1LOJdXhwCE9T6UQIx/QI2K0PcI9xvVXYtNqaqOdNkHZHOqI9F1inZ7hSXOtlQndqu6ZuCx6u5Mn6cf23znq1m3wTa1nMR8f9hsUgyCKiH6xUJdxfw== rsa1024"
)

// testSecurityKey returns a key of a hardware token, which this machine cannot make.
func testSecurityKey() string {
	blob := ssh.Marshal(struct {
		Type, Key, Application string
	}{ssh.KeyAlgoSKED25519, strings.Repeat("k", 32), "ssh:"})
	return ssh.KeyAlgoSKED25519 + " " + base64.StdEncoding.EncodeToString(blob) + " token"
}

func TestParseSSHKey(t *testing.T) {
	base64Of := func(key string) string { return strings.Fields(key)[1] }
	for name, tc := range map[string]struct{ text, want, err string }{
		"an Ed25519 key":                {text: testEd25519, want: testEd25519},
		"an ECDSA key":                  {text: testECDSA, want: testECDSA},
		"an RSA key":                    {text: testRSA, want: testRSA},
		"a key of a hardware token":     {text: testSecurityKey(), want: testSecurityKey()},
		"a key without a comment":       {text: "ssh-ed25519 " + base64Of(testEd25519), want: "ssh-ed25519 " + base64Of(testEd25519)},
		"spaces are made one":           {text: " \t" + strings.Replace(testEd25519, " ", "   ", 1) + " work \r", err: "line break"},
		"spaces between words":          {text: strings.Replace(testEd25519, " ", "  ", 1) + "\tat work", want: testEd25519 + " at work"},
		"options":                       {text: `from="10.0.0.1" ` + testEd25519, err: "options such as from= and command= are not allowed"},
		"a command with spaces":         {text: `command="rm -rf /",no-pty ` + testEd25519, err: "options such as from= and command= are not allowed"},
		"an authority for certificates": {text: "cert-authority " + testEd25519, err: "options such as"},
		"a line break":                  {text: testEd25519 + "\nssh-ed25519 AAAA", err: "line break"},
		"a line separator of Unicode":   {text: testEd25519 + "\u2028" + "x", err: "cannot be printed"},
		"an escape":                     {text: testEd25519 + "\x1b[2J", err: "cannot be printed"},
		"two keys on one line":          {text: testEd25519 + " " + testRSA, err: "found two keys on one line"},
		"a weak RSA key":                {text: testWeakRSA, err: "the RSA key has 1024 bits, at least 2048 are required"},
		"a DSA key":                     {text: "ssh-dss AAAAB3NzaC1kc3MAAACBAP", err: `found "ssh-dss", want a public key on one line`},
		"a certificate":                 {text: "ssh-ed25519-cert-v01@openssh.com AAAA", err: "want a public key on one line"},
		"a fingerprint":                 {text: "SHA256:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU", err: `found "SHA256:`},
		"a path":                        {text: "~/.ssh/id_ed25519.pub", err: `found "~/.ssh/id_ed25519.pub", want a public key`},
		"a type alone":                  {text: "ssh-ed25519", err: "the key ends after its type"},
		"base64 that is cut":            {text: testEd25519[:50], err: "copy the line of the .pub file whole"},
		"no base64":                     {text: "ssh-ed25519 AAAA!", err: "is not base64"},
		"another type than it says":     {text: "ssh-rsa " + base64Of(testEd25519), err: "damaged or of another type"},
		"data behind the key":           {text: "ssh-ed25519 " + base64.StdEncoding.EncodeToString(append(must64(base64Of(testEd25519)), 'x')), err: "damaged"},
		"a point that is off its curve": {text: "ecdsa-sha2-nistp256 " + base64.StdEncoding.EncodeToString(offCurve()), err: "damaged"},
		"a key that is too long":        {text: testEd25519 + strings.Repeat(" x", maxSSHKey/2), err: "at most 8192 are allowed"},
		"a private key":                 {text: "-----BEGIN OPENSSH PRIVATE KEY-----", err: "found a private key"},
		"nothing":                       {text: " ", err: "the key is empty"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ParseSSHKey(tc.text)
			if got != tc.want || (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Errorf("got %q, %v\nwant %q, %q", got, err, tc.want, tc.err)
			}
		})
	}
}

func must64(text string) []byte {
	raw, _ := base64.StdEncoding.DecodeString(text)
	return raw
}

func offCurve() []byte {
	raw := must64(strings.Fields(testECDSA)[1])
	raw[len(raw)-1] ^= 1
	return raw
}

func TestParseSSHKeys(t *testing.T) {
	pem := "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAMwAAAAtzc2gtZW\n-----END OPENSSH PRIVATE KEY-----\n"
	for name, tc := range map[string]struct {
		text  string
		keys  []string
		lines []int // with a problem
	}{
		"no key":                            {text: "\n"},
		"keys, comments and empty lines":    {text: "# team a\n" + testEd25519 + "\r\n\n  " + testRSA + "\n", keys: []string{testEd25519, testRSA}},
		"a key that is there twice":         {text: testEd25519 + "\n" + testEd25519, keys: []string{testEd25519}},
		"each wrong line is reported":       {text: "x\n" + testEd25519 + "\ny\n", keys: []string{testEd25519}, lines: []int{1, 3}},
		"a private key is reported once":    {text: testEd25519 + "\n" + pem, keys: []string{testEd25519}, lines: []int{2}},
		"more keys than a server may have":  {text: manyKeys(MaxSSHKeys + 3), keys: strings.Split(manyKeys(MaxSSHKeys), "\n"), lines: []int{MaxSSHKeys + 1}},
		"as many keys as a server may have": {text: manyKeys(MaxSSHKeys), keys: strings.Split(manyKeys(MaxSSHKeys), "\n")},
	} {
		t.Run(name, func(t *testing.T) {
			keys, wrong := ParseSSHKeys(tc.text)
			var lines []int
			for _, w := range wrong {
				lines = append(lines, w.Line)
			}
			if !slices.Equal(keys, tc.keys) || !slices.Equal(lines, tc.lines) {
				t.Errorf("got %q and problems %v\nwant %q and lines %v", keys, wrong, tc.keys, tc.lines)
			}
		})
	}
}

func manyKeys(n int) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf("%s%d", testEd25519, i))
	}
	return strings.Join(all, "\n")
}
