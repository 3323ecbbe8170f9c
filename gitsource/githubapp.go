package gitsource

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	githttp "github.com/go-git/go-git/v5/plumbing/transport/http"
)

// GitHubApp logs in as an installation of a GitHub App: its private key is exchanged for
// tokens that last an hour.
type GitHubApp struct {
	AppID, InstallationID int
	PrivateKeyFile        string // PEM, as GitHub gives it; read again for each token
	API                   string // such as https://api.github.com, without a slash at the end
}

// Check validates the app without the network. It returns the invalid field, and why.
func (a GitHubApp) Check() (field string, err error) {
	switch {
	case a.AppID <= 0:
		return "appID", errors.New("is not a number above 0: it is on the page of the app's settings")
	case a.InstallationID <= 0:
		return "installationID", errors.New("is not a number above 0: it ends the address of the installation's page")
	case a.PrivateKeyFile == "":
		return "privateKeyFile", errors.New("is empty: name the file with the private key that the page of the app's settings made")
	}
	return "", nil
}

const (
	// tokenMargin is how much longer than an operation a token has to last, for clocks that differ.
	tokenMargin = time.Minute
	// maxAssertion is how long GitHub lets what we sign last at most; it is used at once.
	maxAssertion = 10 * time.Minute
)

// installation holds the token of an installation, which cannot be printed.
type installation struct {
	mu      sync.Mutex
	token   func() string
	expires time.Time
	refused atomic.Bool // by the server, since it was made
}

// installationAuth returns a token that outlives an operation which begins now.
func (r *remote) installationAuth(ctx context.Context) (*githttp.BasicAuth, error) {
	i := &r.installation
	i.mu.Lock()
	defer i.mu.Unlock()
	if now := r.clock(); i.token == nil || i.refused.Swap(false) || i.expires.Before(now.Add(r.timeout+tokenMargin)) {
		token, expires, err := r.newToken(ctx, now)
		if err != nil {
			return nil, fmt.Errorf("log in as GitHub App %d: %w", r.auth.GitHubApp.AppID, err)
		}
		i.token, i.expires = func() string { return token }, expires
	}
	return r.basic("x-access-token", i.token()), nil
}

func (r *remote) newToken(ctx context.Context, now time.Time) (string, time.Time, error) {
	app := r.auth.GitHubApp
	assertion, err := app.assertion(now)
	if err != nil {
		return "", time.Time{}, &failure{failureAuth, err}
	}
	address := fmt.Sprintf("%s/app/installations/%d/access_tokens", app.API, app.InstallationID)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, http.NoBody)
	if err != nil {
		return "", time.Time{}, err
	}
	req.Header.Set("Authorization", "Bearer "+assertion)
	req.Header.Set("Accept", "application/vnd.github+json")
	transport, err := r.roundTripper()
	if err != nil {
		return "", time.Time{}, &failure{failureTLS, err}
	}
	client := http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := client.Do(req)
	if err != nil {
		return "", time.Time{}, r.explain(ctx, err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxErrorText))
	if err != nil {
		return "", time.Time{}, r.explain(ctx, err)
	}
	if res.StatusCode != http.StatusCreated {
		return "", time.Time{}, refusedToken(res.StatusCode, body)
	}
	var answer struct {
		Token   string    `json:"token"`
		Expires time.Time `json:"expires_at"`
	}
	// What is wrong with the answer is not quoted: it may hold the token.
	if json.Unmarshal(body, &answer) != nil || answer.Token == "" || strings.ContainsAny(answer.Token, " \r\n") || !answer.Expires.After(now) {
		return "", time.Time{}, errors.New("the answer has no valid token: is git.url a repository of this GitHub?")
	}
	return answer.Token, answer.Expires, nil
}

// refusedToken says who has to act when there is no token.
func refusedToken(code int, body []byte) error {
	var answer struct {
		Message string `json:"message"`
	}
	_ = json.Unmarshal(body, &answer) // whoever answers otherwise has nothing to add
	kind, text := failureAuth, "the API refuses it"
	switch {
	case code == http.StatusUnauthorized:
		text = "the key of git.auth.githubApp.privateKeyFile is none of the app's, or this machine's clock is wrong"
	case code == http.StatusNotFound:
		text = "the app has no such installation: look at git.auth.githubApp.installationID"
	case code == http.StatusTooManyRequests:
		kind, text = failureBusy, "the server was asked too often"
	case code >= http.StatusInternalServerError:
		kind, text = failureNetwork, "the API is not well"
	}
	return &failure{kind, fmt.Errorf("%s: status code: %d: %s", text, code, shorten(oneLine(answer.Message)))}
}

// assertion is what an app says who it is by, a JSON Web Token, see RFC 7519. It is dated
// back a little, for clocks that differ.
func (a GitHubApp) assertion(now time.Time) (string, error) {
	key, err := readRSAKey(a.PrivateKeyFile)
	if err != nil {
		return "", fmt.Errorf("git.auth.githubApp.privateKeyFile: %w", err)
	}
	claims := fmt.Sprintf(`{"iat":%d,"exp":%d,"iss":"%d"}`, now.Add(-tokenMargin).Unix(), now.Add(maxAssertion-2*tokenMargin).Unix(), a.AppID)
	encode := base64.RawURLEncoding.EncodeToString
	text := encode([]byte(`{"alg":"RS256","typ":"JWT"}`)) + "." + encode([]byte(claims))
	sum := sha256.Sum256([]byte(text))
	signature, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, sum[:])
	if err != nil {
		return "", fmt.Errorf("git.auth.githubApp.privateKeyFile: %w", err)
	}
	return text + "." + encode(signature), nil
}

func readRSAKey(file string) (*rsa.PrivateKey, error) {
	content, err := readSmall(file)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(content)
	if block == nil {
		return nil, fmt.Errorf("%s holds no PEM private key", file)
	}
	if key, err := x509.ParsePKCS1PrivateKey(block.Bytes); err == nil {
		return key, nil
	}
	if key, err := x509.ParsePKCS8PrivateKey(block.Bytes); err == nil {
		if key, ok := key.(*rsa.PrivateKey); ok {
			return key, nil
		}
	}
	return nil, fmt.Errorf("%s holds no RSA private key", file)
}
