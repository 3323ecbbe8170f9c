package bmc

import (
	"bytes"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// relative matches a link that does not begin with a slash or a scheme, with the name of its property.
var relative = regexp.MustCompile(`("(?:[^"]*@odata\.(?:id|nextLink)|target)"\s*:\s*")([^"/#:?\\][^":\\]*)"`)

// absolute returns a document with its links relative to the service, though the document has them relative to itself
// (RFC 3986 §5.2). The members of a collection are below it, whether its URI ends in a slash or not.
func absolute(doc []byte, of *url.URL) []byte {
	if !hasRelative(doc) {
		return doc
	}
	base := *of
	if bytes.Contains(doc, []byte(`"Members"`)) && !strings.HasSuffix(base.Path, "/") {
		base.Path += "/"
	}
	return relative.ReplaceAllFunc(doc, func(found []byte) []byte {
		parts := relative.FindSubmatch(found)
		link := string(parts[2])
		ref, err := url.Parse(link)
		switch {
		case err != nil:
			return found
		case len(link) > 8 && strings.EqualFold(link[:8], "redfish/"):
			link = "/" + link
		case strings.HasPrefix(link, lastOf(of.Path)+"/"): // Systems/1 in /redfish/v1/Systems
			link = of.ResolveReference(ref).RequestURI()
		default:
			link = base.ResolveReference(ref).RequestURI()
		}
		return slices.Concat(parts[1], []byte(link), []byte{'"'})
	})
}

func lastOf(path string) string {
	path = strings.TrimSuffix(path, "/")
	return path[strings.LastIndex(path, "/")+1:]
}

// hasRelative reports whether a document may have a relative link, without the cost of the expression.
func hasRelative(doc []byte) bool {
	for _, key := range [][]byte{[]byte(`@odata.id"`), []byte(`@odata.nextLink"`), []byte(`"target"`)} {
		for rest := doc; ; {
			i := bytes.Index(rest, key)
			if i < 0 {
				break
			}
			rest = bytes.TrimLeft(rest[i+len(key):], ": \t\r\n")
			if len(rest) > 1 && rest[0] == '"' && rest[1] != '/' && rest[1] != '"' && rest[1] != '#' {
				return true
			}
		}
	}
	return false
}
