package proposal

import (
	"crypto/sha256"
	"encoding/base32"
	"strings"
)

// TokenLength is of the tokens that people approve by.
const TokenLength = 26

// Token makes a token of n letters and digits for what, out of a seed that nobody
// can guess.
func Token(seed, what string, n int) string {
	sum := sha256.Sum256([]byte(seed + "\x00" + what))
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:])[:n])
}
