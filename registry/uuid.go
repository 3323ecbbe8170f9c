package registry

import (
	"errors"

	"ingot/model"
)

// canonicalUUID returns a system UUID in its canonical spelling. UUIDs that
// firmware without one shows are refused.
func canonicalUUID(text string) (string, error) {
	canonical, err := model.CanonicalUUID(text)
	switch {
	case err != nil:
		return "", err
	case !model.UsableUUID(canonical):
		return "", errors.New("found the UUID of firmware that has none, want the machine's own")
	}
	return canonical, nil
}

// spellings are the canonical spellings of a usable UUID, in both byte orders: servers
// are found under each of them, so that looking one up makes none.
func spellings(text string) []string {
	if !model.UsableUUID(text) {
		return nil
	}
	return model.UUIDVariants(text)
}
