package registry

import "ingot/model"

// spellings are the canonical spellings of a usable UUID, in both byte orders: servers
// are found under each of them, so that looking one up makes none.
func spellings(text string) []string {
	if !model.UsableUUID(text) {
		return nil
	}
	return model.UUIDVariants(text)
}
