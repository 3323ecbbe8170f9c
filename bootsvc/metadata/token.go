package metadata

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"net/http"
	"net/netip"
	"strconv"
	"time"
)

// The headers of EC2's tokens (Instance Metadata Service, version 2).
const (
	headerToken    = "X-Aws-Ec2-Metadata-Token"
	headerTokenTTL = "X-Aws-Ec2-Metadata-Token-Ttl-Seconds"
)

// maxTokenTTL is how many seconds a token lives at most: six hours.
const maxTokenTTL = 21600

// tokenPath is where tokens are given, below /latest.
var tokenPath = []string{"api", "token"}

// tokens are EC2's session tokens. Nothing is kept of them: a token is when it ends,
// and proof that it was given to its address. They ask nothing of a server that it
// could not do without them, but cloud-init begins with asking for one, and a proxy on
// the server that others can make send a GET cannot send a PUT as well.
type tokens struct{ key []byte }

// newTokens returns tokens of a new kind: those of another process are worth nothing,
// and clients ask for another then.
func newTokens() tokens {
	key := make([]byte, sha256.Size)
	_, _ = rand.Read(key) // it never fails
	return tokens{key}
}

func (t tokens) issue(h http.Header, from netip.Addr, now time.Time) answer {
	if len(h.Values("X-Forwarded-For")) > 0 {
		return refuse(http.StatusForbidden, "tokens are not given through a proxy")
	}
	ttl, err := strconv.Atoi(h.Get(headerTokenTTL))
	if err != nil || ttl < 1 || ttl > maxTokenTTL {
		return refuse(http.StatusBadRequest, "header "+headerTokenTTL+" must be a number of seconds from 1 to "+strconv.Itoa(maxTokenTTL))
	}
	a := text(t.token(from, now.Add(time.Duration(ttl)*time.Second)))
	a.header = [2]string{headerTokenTTL, strconv.Itoa(ttl)}
	return a
}

// allow reports whether a request may be answered as far as tokens go: it shows none,
// or one of its address that has not ended.
func (t tokens) allow(h http.Header, from netip.Addr, now time.Time) bool {
	shown := h.Values(headerToken)
	if len(shown) == 0 {
		return true
	}
	raw, err := base64.RawURLEncoding.DecodeString(shown[0])
	if err != nil || len(raw) < 8 {
		return false
	}
	ends := time.Unix(int64(binary.BigEndian.Uint64(raw)), 0)
	return hmac.Equal([]byte(t.token(from, ends)), []byte(shown[0])) && now.Before(ends)
}

func (t tokens) token(from netip.Addr, ends time.Time) string {
	raw := binary.BigEndian.AppendUint64(nil, uint64(ends.Unix()))
	mac := hmac.New(sha256.New, t.key)
	mac.Write(raw)
	mac.Write(from.AsSlice())
	return base64.RawURLEncoding.EncodeToString(mac.Sum(raw))
}
