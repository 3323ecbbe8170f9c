package ignition

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// NoCloudFiles are the names of the files of cloud-init's data source NoCloud.
var NoCloudFiles = []string{keyMetaData, UserData, keyVendorData, keyNetworkConfig}

// maxHostname is the length of the longest host name that Linux takes, in bytes.
const maxHostname = 63

// noCloud returns the files that cloud-init fetches: user-data and network-config as
// they are, meta-data with what it lacks, and vendor-data with a script that reports
// the machine up.
func noCloud(b ClaimBoot) (map[string]string, error) {
	user := b.value(UserData)
	if err := checkCloudData(UserData, user); err != nil {
		return nil, err
	}
	meta, err := metaData(b)
	if err != nil {
		return nil, err
	}
	vendor, err := vendorData(b)
	if err != nil {
		return nil, err
	}
	files := map[string]string{UserData: user, keyMetaData: meta, keyVendorData: vendor}
	if network := b.value(keyNetworkConfig); network != "" {
		if _, err := mapping(keyNetworkConfig, network); err != nil {
			return nil, err
		}
		files[keyNetworkConfig] = network
	}
	return files, nil
}

// metaData returns the claim's meta-data, with an instance-id and a local-hostname if
// it names none.
func metaData(b ClaimBoot) (string, error) {
	node, err := mapping(keyMetaData, b.value(keyMetaData))
	if err != nil {
		return "", err
	}
	for _, entry := range [][2]string{{"instance-id", b.InstanceID}, {"local-hostname", hostname63(b.Hostname)}} {
		if entry[1] != "" && !hasKey(node, entry[0]) {
			node.Content = append(node.Content, stringNode(entry[0]), stringNode(entry[1]))
		}
	}
	addPublicKeys(node, b.SSHKeys)
	text, err := yaml.Marshal(node)
	if err != nil {
		return "", sourceError(keyMetaData, "it cannot be written as YAML again")
	}
	return string(text), nil
}

// keyPublicKeys is where meta-data has the keys that cloud-init gives to the default user, whatever form user-data has.
const keyPublicKeys = "public-keys"

// addPublicKeys adds keys to those of meta-data.
func addPublicKeys(meta *yaml.Node, keys []string) {
	if len(keys) == 0 {
		return
	}
	var own any
	list := &yaml.Node{}
	for i := 0; i < len(meta.Content); i += 2 {
		if meta.Content[i].Value == keyPublicKeys {
			_ = meta.Content[i+1].Decode(&own) // parseYAML has decoded it before
			list = meta.Content[i+1]
		}
	}
	if own == nil && list.IsZero() {
		meta.Content = append(meta.Content, stringNode(keyPublicKeys), list)
	}
	_ = list.Encode(joinKeys(publicKeys(own), keys)) // texts always encode
}

// publicKeys returns the keys of meta-data, of which cloud-init reads a text with lines, a list, and a mapping of both.
func publicKeys(own any) (all []string) {
	switch own := own.(type) {
	case string:
		return strings.Split(strings.TrimSpace(own), "\n")
	case []any:
		for _, key := range own {
			all = append(all, publicKeys(key)...)
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(own)) {
			all = append(all, publicKeys(own[name])...)
		}
	}
	return all
}

// joinKeys returns all keys once, in their order.
func joinKeys(lists ...[]string) (all []string) {
	for _, key := range slices.Concat(lists...) {
		if !slices.Contains(all, key) {
			all = append(all, key)
		}
	}
	return all
}

// hostname63 cuts a name to what Linux takes as one.
func hostname63(name string) string {
	return strings.TrimRight(name[:min(len(name), maxHostname)], ".-")
}

func stringNode(value string) *yaml.Node {
	n := &yaml.Node{}
	n.SetString(value)
	return n
}

func hasKey(mapping *yaml.Node, key string) bool {
	for i := 0; i < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key {
			return true
		}
	}
	return false
}

// mapping parses YAML that has to be one mapping; nothing is an empty one.
func mapping(key, text string) (*yaml.Node, error) {
	root, err := parseYAML(key, text)
	if err != nil {
		return nil, err
	}
	if root.Kind != yaml.MappingNode {
		return nil, &SourceError{key, []SourceProblem{{root.Line, root.Column, "this is not a mapping of keys to values"}}}
	}
	return root, nil
}

// parseYAML returns the root of a document. It is decoded as well, for that finds a
// key given twice and aliases without end.
func parseYAML(key, text string) (*yaml.Node, error) {
	var document yaml.Node
	var all any
	err := yaml.Unmarshal([]byte(text), &document)
	if err == nil {
		err = document.Decode(&all)
	}
	if err != nil {
		return nil, explainSource(key, nil, nil, err)
	}
	if len(document.Content) == 0 || all == nil {
		return &yaml.Node{Kind: yaml.MappingNode}, nil
	}
	return document.Content[0], nil
}

// cloudHeaders are what cloud-init tells the kinds of data by that are no MIME
// message.
var cloudHeaders = []string{
	"#cloud-config", "#!", "#include", "#cloud-boothook", "#part-handler", "## template: jinja",
}

// checkCloudData refuses data that cloud-init would pass over with no more than a
// line in its log.
func checkCloudData(key, text string) error {
	head := strings.ToLower(strings.TrimLeft(text, " \t\r\n"))
	first, _, _ := strings.Cut(head, "\n")
	kind := strings.TrimRight(first, " \t\r")
	switch {
	case isMIME(text):
		return nil
	case kind == "#cloud-config":
		_, err := mapping(key, text)
		return err
	case kind == "#cloud-config-archive":
		_, err := parseYAML(key, text)
		return err
	case slices.ContainsFunc(cloudHeaders, func(h string) bool { return strings.HasPrefix(head, h) }):
		return nil
	}
	return &SourceError{key, []SourceProblem{{Line: 1, Column: 1,
		Message: "cloud-init would ignore this: the first line must be #cloud-config, #! with a program, another header that cloud-init knows, or that of a MIME message"}}}
}

// isMIME reports whether cloud-init takes text for a MIME message.
func isMIME(text string) bool {
	return strings.Contains(strings.ToLower(text[:min(len(text), 4096)]), "mime-version:")
}

// vendorData returns a script that reports the machine up, beside the claim's own
// vendor-data. A script it is because cloud-init runs those of vendor-data whatever
// user-data says, whereas a runcmd of user-data would replace one of vendor-data.
func vendorData(b ClaimBoot) (string, error) {
	report := reportScript(b.BootStateURL, b.UUID)
	own := b.value(keyVendorData)
	if own == "" {
		return report, nil
	}
	if err := checkCloudData(keyVendorData, own); err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(own))
	boundary := "part-" + hex.EncodeToString(sum[:16]) // so it is nowhere within
	var m strings.Builder
	m.WriteString("MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"" + boundary + "\"\n\n")
	for _, part := range []string{own, report} {
		m.WriteString("--" + boundary + "\n" + mimePart(part))
	}
	m.WriteString("--" + boundary + "--\n")
	return m.String(), nil
}

// mimePart returns text as one part of a MIME message (RFC 2045). cloud-init finds
// out by itself what kind of data plain text is, and walks through messages in
// messages.
func mimePart(text string) string {
	if isMIME(text) {
		return strings.TrimLeft(text, " \t\r\n") + "\n"
	}
	var b strings.Builder
	b.WriteString("Content-Type: text/plain; charset=\"utf-8\"\nMIME-Version: 1.0\nContent-Transfer-Encoding: base64\n\n")
	encoded := base64.StdEncoding.EncodeToString([]byte(text))
	for len(encoded) > 76 { // RFC 2045 §6.8
		b.WriteString(encoded[:76] + "\n")
		encoded = encoded[76:]
	}
	b.WriteString(encoded + "\n")
	return b.String()
}

// reportScript reports that the machine is up, and once cloud-init has ended how it fared. It
// does so in the background, and tries each for twenty minutes, so that a boot service that is
// away does not hold the boot up. Scripts of vendor-data run before cloud-init's end, and what
// they leave running stays: its unit has KillMode=process. result.json is what cloud-init
// writes last, status.json what it has written just before. No other process sees the token in
// its arguments. url and uuid are plain, see checkFill.
func reportScript(url, uuid string) string {
	return `#!/bin/sh
# Report to Ingot that this machine is up.
url='` + url + `'
body='{"systemUUID":"` + uuid + `","booted":true}'
report() {
	if command -v curl >/dev/null 2>&1; then
		printf 'url = %s\n' "$url" | curl --config - --fail --silent --max-time 30 \
			--header 'Content-Type: application/json' --data "$body"
		return
	fi
	INGOT_URL="$url" INGOT_BODY="$body" python3 -c '
import os, urllib.request as r
r.urlopen(r.Request(os.environ["INGOT_URL"], os.environ["INGOT_BODY"].encode(), {"Content-Type": "application/json"}), timeout=30)'
}
send() {
	tries=60
	until report; do
		tries=$((tries - 1))
		[ "$tries" -gt 0 ] || return
		sleep 20
	done
}
(
	send
	left=86400
	until [ -e /run/cloud-init/result.json ]; do
		left=$((left - 1))
		[ "$left" -gt 0 ] || exit
		sleep 1
	done
	body="${body%\}},\"cloudInit\":$(head -c 65536 /run/cloud-init/status.json)}"
	send
) </dev/null >/dev/null 2>&1 &
`
}
