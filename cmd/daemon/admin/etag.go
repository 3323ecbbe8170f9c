package admin

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"ingot/reconcile/report"
)

// etagOf is the tag of what is the same for as long as the generation of rows is: another
// process has others (RFC 9110 §8.8.3). There is none before the first generation.
func (h *handler) etagOf(generation uint64) string {
	if generation == 0 {
		return ""
	}
	return `"` + h.process + "-" + strconv.FormatUint(generation, 10) + `"`
}

// statusTag is the tag of the status, which beside rows shows that of commits at the Git host.
func (h *handler) statusTag(generation uint64, commits *report.Trouble) string {
	tag := h.etagOf(generation)
	if tag == "" || commits == nil {
		return tag
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %s", commits.Since.UnixNano(), commits.Message))
	return strings.TrimSuffix(tag, `"`) + "-" + hex.EncodeToString(sum[:8]) + `"`
}

// unchanged answers 304 if the client has what a tag is of, and reports whether it did.
func unchanged(w http.ResponseWriter, r *http.Request, etag string) bool {
	if etag == "" {
		return false
	}
	w.Header().Set("ETag", etag)
	if !matches(r.Header.Get("If-None-Match"), etag) {
		return false
	}
	asked(w)
	w.WriteHeader(http.StatusNotModified)
	return true
}

// matches reports whether a tag is among those of an If-None-Match (RFC 9110 §13.1.2).
func matches(given, etag string) bool {
	for one := range strings.SplitSeq(given, ",") {
		one = strings.TrimSpace(one)
		if one == "*" || strings.TrimPrefix(one, "W/") == etag {
			return true
		}
	}
	return false
}

// asked has the client ask each time whether what it has is still so.
func asked(w http.ResponseWriter) {
	w.Header().Set("Cache-Control", "private, no-cache")
}

// answer writes a body as JSON. Without a tag it has that of its content.
func (h *handler) answer(w http.ResponseWriter, r *http.Request, etag string, body any) {
	data, err := json.MarshalIndent(body, "", "  ")
	if err != nil {
		h.log.Error("answer cannot be written as JSON", "err", err)
		http.Error(w, "internal error", http.StatusInternalServerError)
		return
	}
	if etag == "" {
		sum := sha256.Sum256(data)
		if unchanged(w, r, `"`+hex.EncodeToString(sum[:16])+`"`) {
			return
		}
	}
	h.answerJSON(w, append(data, '\n'))
}

// answerJSON writes JSON that the client may keep and ask for again.
func (h *handler) answerJSON(w http.ResponseWriter, data []byte) {
	asked(w)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(data)))
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write(data) // the client may be gone
}
