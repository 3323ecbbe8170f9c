package model

import (
	"slices"
	"strings"
	"unicode"
)

// loginUsers are the users that publishers' images have, by a word of the image's name. Of two words of a name the
// first in this order counts: Fedora CoreOS has core.
var loginUsers = [][2]string{
	{"coreos", "core"}, {"fcos", "core"}, {"rhcos", "core"}, {"flatcar", "core"}, {"debian", "debian"}, {"ubuntu", "ubuntu"},
	{"fedora", "fedora"}, {"rocky", "rocky"}, {"almalinux", "almalinux"},
}

// IgnitionUser is the user of systems with Ignition.
const IgnitionUser = "core"

// LoginUser is the user to log in as to a server with an image, as far as the image's name shows it: "" = unknown. The
// last part of the name counts first.
func LoginUser(image string) string {
	image, _, _ = strings.Cut(image, "#")
	image, _, _ = strings.Cut(image, "@")
	parts := strings.Split(strings.TrimPrefix(image, "https://"), "/")
	for _, part := range slices.Backward(parts) {
		words := strings.FieldsFunc(strings.ToLower(part), func(r rune) bool { return !unicode.IsLetter(r) })
		for _, known := range loginUsers {
			if slices.Contains(words, known[0]) {
				return known[1]
			}
		}
	}
	return ""
}

// isDistribution reports whether the name of an image, before its tag, is that of a distribution.
func isDistribution(image string) bool {
	name, _, _ := strings.Cut(image, ":")
	return slices.ContainsFunc(loginUsers, func(known [2]string) bool { return known[0] == name })
}
