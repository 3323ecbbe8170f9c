package model

import (
	"strconv"

	"go.yaml.in/yaml/v3"
)

const (
	// maxEntries is how many taints, tolerations, expressions of a selector and values of one
	// there may be: all of one are compared with all of another.
	maxEntries = 256
	// maxLabels is how many labels an object may have, or a selector ask for: each is compared
	// with those of many others.
	maxLabels = 256
	// maxAnnotationBytes is how much Kubernetes lets the annotations of an object hold.
	maxAnnotationBytes = 256 << 10
)

// tooMany reports labels or annotations that are more than are read, and complains. It looks
// at none of them, so that they cost little.
func (d *nodeDecoder) tooMany(n *yaml.Node) bool {
	name, in := "", ""
	if last := len(d.path) - 1; last > 0 {
		name, in = d.path[last].name, d.path[last-1].name
	}
	switch {
	case name == "labels" && in == "metadata", name == "matchLabels":
		if count := len(n.Content) / 2; count > maxLabels {
			d.bad("", "found "+strconv.Itoa(count)+" labels, at most "+strconv.Itoa(maxLabels)+" are allowed")
			return true
		}
	case name == "annotations" && in == "metadata":
		if size := sizeOf(n); size > maxAnnotationBytes {
			d.bad("", "the annotations have "+strconv.Itoa(size)+" bytes, at most "+strconv.Itoa(maxAnnotationBytes)+" are allowed")
			return true
		}
	}
	return false
}

// sizeOf returns how many bytes the keys and values of a mapping have.
func sizeOf(n *yaml.Node) (bytes int) {
	for _, text := range n.Content {
		bytes += len(text.Value)
	}
	return bytes
}

// few reports whether a list has at most maxEntries, and complains if not.
func (d *fieldChecker) few(name string, entries int) bool {
	if entries > maxEntries {
		d.bad(name, "found "+strconv.Itoa(entries)+" entries, at most "+strconv.Itoa(maxEntries)+" are allowed")
	}
	return entries <= maxEntries
}
