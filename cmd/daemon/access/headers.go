package access

import "net/http"

// headers are set with every answer, whatever it is. A page may use what comes from here,
// and nothing else: no script, style or picture that somebody wrote into a label, and no
// frame of another site around it (CSP Level 3). There are no cookies.
var headers = map[string]string{
	"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
		"form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
	"X-Content-Type-Options":       "nosniff",
	"X-Frame-Options":              "DENY",
	"Referrer-Policy":              "no-referrer",
	"Cross-Origin-Opener-Policy":   "same-origin",
	"Cross-Origin-Resource-Policy": "same-origin",
	"Cache-Control":                "no-store", // unless the handler knows better
}

func setHeaders(h http.Header) {
	for name, value := range headers {
		h.Set(name, value)
	}
}

// briefWriter answers with no more than whether Ingot is ready.
type briefWriter struct {
	http.ResponseWriter
	said bool
}

// WriteHeader implements http.ResponseWriter.
func (b *briefWriter) WriteHeader(code int) {
	if b.said {
		return
	}
	b.said = true
	text := "not ready\n"
	if code == http.StatusOK {
		text = "ready\n"
	}
	b.Header().Del("Content-Length")
	b.Header().Set("Content-Type", "text/plain; charset=utf-8")
	b.ResponseWriter.WriteHeader(code)
	_, _ = b.ResponseWriter.Write([]byte(text)) // the client may be gone
}

// Write implements http.ResponseWriter. What it is given is not for everybody.
func (b *briefWriter) Write(p []byte) (int, error) {
	b.WriteHeader(http.StatusOK)
	return len(p), nil
}
