package gitserver

import (
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"time"
)

// GitHubApp stands in for GitHub's API at /api/v3: it gives installation 42 of the app 7
// tokens, which the repository then takes as a password.
type GitHubApp struct {
	Key    *rsa.PublicKey // of the app
	Now    func() time.Time
	Repo   *HTTPServer
	Given  atomic.Int32                   // tokens
	Answer func(http.ResponseWriter) bool // in place of a token
}

// Beside serves the API on the host of a repository.
func (g *GitHubApp) Beside(repository http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/api/v3/") {
			g.ServeHTTP(w, r)
			return
		}
		repository.ServeHTTP(w, r)
	})
}

// ServeHTTP implements http.Handler.
func (g *GitHubApp) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	fail := func(code int, text string) { w.WriteHeader(code); fmt.Fprintf(w, `{"message":%q}`, text) }
	parts := strings.Split(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), ".")
	if len(parts) != 3 {
		fail(http.StatusUnauthorized, "no token")
		return
	}
	sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	signature, _ := base64.RawURLEncoding.DecodeString(parts[2])
	if rsa.VerifyPKCS1v15(g.Key, crypto.SHA256, sum[:], signature) != nil {
		fail(http.StatusUnauthorized, "A JSON web token could not be decoded")
		return
	}
	var claims struct {
		Iat, Exp int64
		Iss      string
	}
	raw, _ := base64.RawURLEncoding.DecodeString(parts[1])
	_ = json.Unmarshal(raw, &claims) // what is no JSON has no time
	now := g.Now().Unix()
	switch {
	case claims.Iss != "7" || claims.Iat > now || claims.Exp < now || claims.Exp > now+600:
		fail(http.StatusUnauthorized, "'Expiration time' claim is wrong")
	case r.Method != http.MethodPost || r.URL.Path != "/api/v3/app/installations/42/access_tokens":
		fail(http.StatusNotFound, "Not Found")
	case g.Answer != nil && g.Answer(w):
	default:
		token := fmt.Sprintf("ghs_secret%d", g.Given.Add(1))
		g.Repo.AddPassword(token)
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(map[string]any{"token": token, "expires_at": g.Now().Add(time.Hour)})
	}
}
