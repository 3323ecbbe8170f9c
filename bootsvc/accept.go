package bootsvc

import (
	"encoding/json"
	"mime"
	"strconv"
	"strings"

	"github.com/coreos/go-semver/semver"
)

// ignitionMedia is the media type that Ignition asks for, with the newest version
// it reads as a parameter.
const ignitionMedia = "application/vnd.coreos.ignition+json"

// acceptable reports whether a client reads the Ignition that there is, by the Accept
// headers that it sent (RFC 9110 §12.5.1). If not, it says what the client reads and
// what there is. Whoever reads a version reads all older ones. A client that does not
// speak of Ignition, or names no version, reads everything.
func acceptable(accept []string, ignition string) (reads, have string, ok bool) {
	ranges := ignitionRanges(accept)
	if len(ranges) == 0 {
		return "", "", true
	}
	have = ignitionVersion(ignition)
	is, err := semver.NewVersion(have)
	if err != nil {
		return "", have, true
	}
	var newest *semver.Version
	for _, r := range ranges {
		switch {
		case r.refused:
		case r.version == nil, !r.version.LessThan(*is):
			return "", have, true
		case newest == nil || newest.LessThan(*r.version):
			newest = r.version
		}
	}
	if newest == nil {
		return "none", have, false
	}
	return "at most " + newest.String(), have, false
}

// ignitionRange is one media range of Ignition in an Accept header.
type ignitionRange struct {
	version *semver.Version // nil for any
	refused bool            // by the quality value 0
}

// ignitionRanges returns the media ranges that speak of Ignition.
func ignitionRanges(accept []string) []ignitionRange {
	var ranges []ignitionRange
	for _, header := range accept {
		for part := range strings.SplitSeq(header, ",") {
			if !strings.Contains(strings.ToLower(part), ignitionMedia) {
				continue
			}
			media, params, err := mime.ParseMediaType(strings.TrimSpace(part))
			if err != nil || media != ignitionMedia {
				continue
			}
			version, err := semver.NewVersion(params["version"])
			if err != nil {
				version = nil
			}
			quality, err := strconv.ParseFloat(params["q"], 64)
			ranges = append(ranges, ignitionRange{version, err == nil && quality <= 0})
		}
	}
	return ranges
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
