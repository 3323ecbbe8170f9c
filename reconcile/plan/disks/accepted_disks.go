package disks

import (
	"slices"
	"strings"

	"ingot/model"
)

// Accepts reports whether what a person accepts names a disk: by serial number, or by name
// if it has none.
func Accepts(what string, d model.MissingDisk) bool {
	return slices.ContainsFunc(strings.Split(what, ","), func(named string) bool {
		named = serialKey(named)
		return named != "" && (named == serialKey(d.Serial) || d.Serial == "" && named == strings.ToLower(d.Name))
	})
}
