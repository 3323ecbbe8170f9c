package oci

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	"oras.land/oras-go/v2/registry/remote/auth"

	"ingot/bootsvc/internal/syntax"
	"ingot/model"
)

// maxCredentials bounds the size of a docker config.json in bytes.
const maxCredentials = 1 << 20

// credentialsFile is a docker config.json, or none when its path is empty. It is read
// each time that a registry asks for credentials, so that they can be changed while
// Ingot runs; what came of them is remembered elsewhere. Package credentials would ask
// for a registry's host alone, and knows neither entries for a path nor two spellings of
// a registry.
type credentialsFile struct {
	path string
	// helper gives the credential of a registry where there is no file; nil gives none.
	helper auth.CredentialFunc
}

// dockerConfig is what Ingot reads of a docker config.json.
type dockerConfig struct {
	Auths       map[string]dockerAuth `json:"auths"`
	CredsStore  string                `json:"credsStore"`
	CredHelpers map[string]string     `json:"credHelpers"`
}

// dockerAuth is the entry of one registry, or of repositories in it.
type dockerAuth struct {
	Auth          string `json:"auth"` // base64 of username:password, goes before both
	Username      string `json:"username"`
	Password      string `json:"password"`
	IdentityToken string `json:"identitytoken"`
	RegistryToken string `json:"registrytoken"`
}

// CheckCredentials returns an error when a docker config.json cannot be used at all. Of none,
// which has an empty path, it finds nothing wrong.
func CheckCredentials(path string) error {
	if path == "" {
		return nil
	}
	_, err := credentialsFile{path: path}.read()
	return err
}

// lookup returns the credential for r: that of its repository, else of the nearest path
// above it that has one, else of its registry. It is anonymous when there is none.
func (f credentialsFile) lookup(ctx context.Context, r model.ImageReference) (auth.Credential, error) {
	if f.path == "" && f.helper != nil {
		if r.Registry == model.DockerHub {
			return f.helper(ctx, dockerHubHost)
		}
		return f.helper(ctx, r.Registry)
	}
	if f.path == "" {
		return auth.EmptyCredential, nil
	}
	config, err := f.read()
	if err != nil {
		return auth.EmptyCredential, err
	}
	entries := config.entries()
	for name := r.Name(); name != "."; name = path.Dir(name) {
		if entry, ok := entries[name]; ok {
			return f.decode(name, entry)
		}
	}
	if config.CredsStore != "" || config.CredHelpers[r.Registry] != "" {
		return auth.EmptyCredential, fmt.Errorf("boot.credentialsFile: %s leaves the credentials of %s to a helper program, "+
			"which Ingot does not run: write them into its auths", f.path, r.Registry)
	}
	return auth.EmptyCredential, nil
}

func (f credentialsFile) read() (dockerConfig, error) {
	var config dockerConfig
	raw, err := readBounded(f.path, maxCredentials)
	if err != nil {
		return config, fmt.Errorf("boot.credentialsFile: %w", err)
	}
	if err := json.Unmarshal(raw, &config); err != nil {
		return config, fmt.Errorf("boot.credentialsFile: %s is not JSON as docker login writes it: %w", f.path, err)
	}
	return config, nil
}

// readBounded reads a file of at most limit bytes.
func readBounded(path string, limit int64) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	raw, err := io.ReadAll(io.LimitReader(file, limit+1))
	switch {
	case err != nil:
		return nil, err
	case int64(len(raw)) > limit:
		return nil, fmt.Errorf("%s is larger than %d bytes", path, limit)
	}
	return raw, nil
}

// entries returns the entries by registry, or registry and path, in their normal form.
// Of several that mean the same, the one that is written in that form counts.
func (c dockerConfig) entries() map[string]dockerAuth {
	entries := make(map[string]dockerAuth, len(c.Auths))
	for _, key := range slices.Sorted(maps.Keys(c.Auths)) {
		name, ok := credentialName(key)
		if _, taken := entries[name]; ok && (!taken || key == name) {
			entries[name] = c.Auths[key]
		}
	}
	return entries
}

// credentialName returns the registry, or registry and path, that a key of auths is for.
// Keys that are URLs are for a whole registry, and so are those that name the version
// of its API: Docker Hub's is https://index.docker.io/v1/.
func credentialName(key string) (string, bool) {
	_, rest, isURL := strings.Cut(key, "://")
	if !isURL {
		rest = key
	}
	host, path, _ := strings.Cut(rest, "/")
	registry, err := model.ParseRegistry(host)
	path = strings.Trim(path, "/")
	if isURL || path == "" || path == "v1" || path == "v2" {
		return registry, err == nil
	}
	return registry + "/" + path, err == nil
}

var errAuthField = errors.New("its auth is not base64 of username:password")

func (f credentialsFile) decode(name string, entry dockerAuth) (auth.Credential, error) {
	c := auth.Credential{
		Username: entry.Username, Password: entry.Password, RefreshToken: entry.IdentityToken, AccessToken: entry.RegistryToken,
	}
	if entry.Auth == "" {
		return c, nil
	}
	plain, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(strings.TrimSpace(entry.Auth), "="))
	username, password, ok := strings.Cut(string(plain), ":")
	if err != nil || !ok {
		return auth.EmptyCredential, fmt.Errorf("boot.credentialsFile: %s, entry %s: %w", f.path, syntax.Printable(name), errAuthField)
	}
	c.Username, c.Password = username, strings.TrimRight(password, "\x00")
	return c, nil
}

func (f credentialsFile) name() string {
	if f.path == "" && f.helper != nil {
		return "docker login"
	}
	return "boot.credentialsFile"
}

func (f credentialsFile) lacks(r model.ImageReference) string {
	if f.path == "" && f.helper == nil {
		return "boot.credentialsFile is not set"
	}
	return fmt.Sprintf("%s has none for %s", f.name(), r.Registry)
}
