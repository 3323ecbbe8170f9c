package bootsvc

import (
	"crypto/subtle"
	"encoding/json"
	"mime"
	"strings"

	"github.com/coreos/go-semver/semver"

	"ingot/model"
)

// ignitionMedia is the media type that Ignition asks for, with the newest version
// it reads as a parameter.
const ignitionMedia = "application/vnd.coreos.ignition+json"

// sameToken compares in constant time.
func sameToken(token model.Sensitive, shown string) bool {
	return !token.IsZero() && subtle.ConstantTimeCompare([]byte(token.Reveal()), []byte(shown)) == 1
}

// tooNewFor reports whether payload has a newer version of the Ignition
// specification than the client says that it reads. A client that says nothing
// reads everything.
func tooNewFor(accept []string, payload string) (asked, have string, tooNew bool) {
	asked = acceptedVersion(accept)
	if asked == "" {
		return "", "", false
	}
	have = ignitionVersion(payload)
	reads, err := semver.NewVersion(asked)
	if err != nil {
		return asked, have, false
	}
	is, err := semver.NewVersion(have)
	return asked, have, err == nil && reads.LessThan(*is)
}

// acceptedVersion returns the version that an Accept header names for Ignition,
// or "".
func acceptedVersion(accept []string) string {
	for _, header := range accept {
		for part := range strings.SplitSeq(header, ",") {
			if !strings.Contains(part, ignitionMedia) {
				continue
			}
			media, params, err := mime.ParseMediaType(strings.TrimSpace(part))
			if err == nil && media == ignitionMedia && params["version"] != "" {
				return params["version"]
			}
		}
	}
	return ""
}

// ignitionVersion returns ignition.version of Ignition JSON, or "". It reads no
// further than the section ignition, which comes first in what Ingot makes.
func ignitionVersion(payload string) string {
	dec := json.NewDecoder(strings.NewReader(payload))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return ""
	}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return ""
		}
		if key != "ignition" {
			var skipped json.RawMessage
			if dec.Decode(&skipped) != nil {
				return ""
			}
			continue
		}
		var section struct {
			Version string `json:"version"`
		}
		_ = dec.Decode(&section) // "" is the answer to what cannot be read
		return section.Version
	}
	return ""
}
