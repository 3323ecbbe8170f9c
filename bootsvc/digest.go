package bootsvc

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"ingot/model"
)

// Digest identifies all that a boot ticket boots: the pinned image, the source of
// the Ignition and the kernel arguments. It reveals nothing of the source.
func Digest(image model.PinnedImage, ignitionSource model.Sensitive, args string) string {
	source := sha256.Sum256([]byte(ignitionSource.Reveal()))
	h := sha256.New()
	for _, part := range []string{"boot", image.Digest, hex.EncodeToString(source[:]), args} {
		fmt.Fprintf(h, "%d:%s", len(part), part) // lengths keep parts from running together
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}
