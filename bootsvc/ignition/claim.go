package ignition

import (
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"ingot/model"
)

// The keys of the Secret that a claim names: Ignition, or cloud-init's documents,
// and an iPXE script in the place of Ingot's own.
const (
	keyIgnition      = "ignition"
	keyFormat        = "format" // of ignition: fcos is Butane
	keyMetaData      = "meta-data"
	keyVendorData    = "vendor-data"
	keyNetworkConfig = "network-config"
	keyScript        = "ipxe-script"
)

// UserData is the key, and the file, of what cloud-init makes a machine of.
const UserData = "user-data"

// maxScript bounds a claim's own iPXE script, in bytes.
const maxScript = 64 << 10

// ClaimBoot is what a claimed server boots with, beside its image.
type ClaimBoot struct {
	UUID string // canonical system UUID
	// Secret is what the claim's Secret holds, by key; none is fine. The key ignition
	// is Butane if format is fcos or it has a variant, else Ignition JSON. With
	// user-data the server is configured by cloud-init instead, from that and from
	// meta-data, vendor-data and network-config. An ipxe-script is served as it is.
	Secret map[string]model.Sensitive
	// KernelArguments are added to those of Ingot (annotation ingot/kernel-arguments
	// of the claim).
	KernelArguments string
	// SSHKeys are the public keys that may log in, as authorized_keys has them. cloud-init gives them to the image's
	// default user, Ignition to User.
	SSHKeys []string
	User    string // "" = core
	// BootStateURL is where the server reports that it is up, with its ticket's
	// token: <registry.url>/r/<token>/bootstate.
	BootStateURL string
	// InstanceID and Hostname are what cloud-init knows the machine by, unless
	// meta-data says otherwise: the ticket and the claim.
	InstanceID, Hostname string
}

// value is what the Secret holds under a key, "" for nothing.
func (b ClaimBoot) value(key string) string { return b.Secret[key].Reveal() }

// ForClaim returns the payload of a claimed server's ticket: all that is served to it
// beside the image, made of the claim's own documents and of what reports the server
// up. The same values give the same bytes, in every process. What is wrong with a
// document is a *SourceError, which quotes none of its values.
func (g *Compiler) ForClaim(b ClaimBoot) (model.Sensitive, error) {
	if err := checkFill(b.BootStateURL, b.UUID); err != nil {
		return model.Sensitive{}, fmt.Errorf("boot of a claim: %w", err)
	}
	p, err := g.claimed(b)
	if err != nil {
		return model.Sensitive{}, err
	}
	return p.Seal(), nil
}

func (g *Compiler) claimed(b ClaimBoot) (p Payload, err error) {
	if err := b.takeDocuments(maxSource); err != nil {
		return p, err
	}
	if p.KernelArguments, err = KernelArguments(b.KernelArguments); err != nil {
		return p, err
	}
	p.Script = b.value(keyScript)
	switch {
	case b.value(UserData) != "":
		p.NoCloud, err = noCloud(b)
	case b.value(keyIgnition) != "" || p.Script == "":
		p.Ignition, err = g.document(b)
	}
	return p, err
}

// takeDocuments unpacks the documents, and refuses what no machine could be given, before anything is parsed. most is
// how large user-data and Ignition may be, in bytes.
func (b *ClaimBoot) takeDocuments(most int) error {
	documents := make(map[string]model.Sensitive, len(b.Secret))
	for _, key := range []string{keyIgnition, keyFormat, UserData, keyMetaData, keyVendorData, keyNetworkConfig, keyScript} {
		limit := maxSource
		if key == UserData || key == keyIgnition {
			limit = most
		}
		text, err := unpacked(key, b.value(key), limit)
		if err != nil {
			return err
		}
		if err := checkText(key, text, limit); err != nil {
			return err
		}
		documents[key] = model.NewSensitive(text)
	}
	b.Secret = documents
	script := b.value(keyScript)
	switch {
	case b.value(keyIgnition) != "" && b.value(UserData) != "":
		return sourceError(UserData, "the Secret has a key ignition as well; a machine is configured by Ignition or by cloud-init, so leave one of them out")
	case len(script) > maxScript:
		return sourceError(keyScript, "the script has %d bytes; at most %d are allowed. Let it chain to a larger one", len(script), maxScript)
	case script != "" && !strings.HasPrefix(script, "#!ipxe"):
		return &SourceError{keyScript, []SourceProblem{{Line: 1, Column: 1, Message: "an iPXE script begins with #!ipxe; iPXE does not run anything else"}}}
	case b.value(UserData) != "":
		return nil
	}
	for _, key := range []string{keyMetaData, keyVendorData, keyNetworkConfig} {
		if b.value(key) != "" {
			return sourceError(key, "the Secret has no key user-data, so cloud-init would see none of it")
		}
	}
	return nil
}

const gzipMark = "\x1f\x8b"

// unpacked returns a document as text if it is packed with gzip, as Terraform's cloudinit_config does.
func unpacked(key, text string, most int) (string, error) {
	if !strings.HasPrefix(text, gzipMark) {
		return text, nil
	}
	var raw []byte
	reader, err := gzip.NewReader(strings.NewReader(text))
	if err == nil {
		raw, err = io.ReadAll(io.LimitReader(reader, int64(most)+1))
	}
	switch {
	case len(raw) > most:
		return "", sourceError(key, "it is packed with gzip, and has more than %d bytes when unpacked. Let it fetch large files by URL", most)
	case err != nil:
		return "", sourceError(key, "it is packed with gzip, and it is truncated, damaged or followed by other data")
	case strings.HasPrefix(string(raw), gzipMark):
		return "", sourceError(key, "it is packed with gzip twice; pack it once, or leave gzip off")
	}
	return string(raw), nil
}

// isBase64 reports whether text is base64 and not just a word. No document is: each has a colon or a "#".
func isBase64(text string) bool {
	raw, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(text), ""))
	return err == nil && len(raw) > 8
}

// checkText refuses what is too large, or no text.
func checkText(key, text string, most int) error {
	if len(text) > most {
		return sourceError(key, "the source has %d bytes; at most %d are allowed. Let it fetch large files by URL", len(text), most)
	}
	if key != keyFormat && isBase64(text) {
		return sourceError(key, "it is encoded with base64 twice: under data encode the document itself, once; stringData takes it as text")
	}
	for at, r := range text {
		if r != 0 && (r != utf8.RuneError || strings.HasPrefix(text[at:], string(utf8.RuneError))) {
			continue
		}
		line, column := position([]byte(text), int64(at)+1)
		return &SourceError{key, []SourceProblem{{line, column, "here is a byte that is no text in UTF-8"}}}
	}
	return nil
}
