package config

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"
)

// File is a file that a key of the configuration names.
type File struct {
	Key  string // redis.passwordFile
	Path string
	// Without is what does not work while the file cannot be read; "" = Ingot does not start.
	Without string
}

// Unreadable returns why the file cannot be read, nil if it can.
func (f File) Unreadable() error { return readable(f.Path) }

// SealKey is the file of the seal key, and whether it is Ingot's own, which it makes where
// none is configured.
func (o *Options) SealKey() (path string, own bool) {
	if o.Redis.SealKeyFile != "" {
		return o.Redis.SealKeyFile, false
	}
	return filepath.Join(o.State.Dir, "seal.key"), true
}

// fileRules have each key that names one file, and what does not work while that file cannot
// be read. Where it is "", Ingot does not start: nothing would work (the store), or it would do
// something less safe than what is asked for (certificates, who may look, signatures).
var fileRules = map[string]string{
	"git.auth.usernameFile":             noRepository,
	"git.auth.passwordFile":             noRepository,
	"git.auth.sshKeyFile":               noRepository,
	"git.auth.knownHostsFile":           noRepository,
	"git.auth.githubApp.privateKeyFile": noRepository,
	"git.auth.caFile":                   "",
	"git.ageKeyFile":                    "files that are encrypted with SOPS cannot be decrypted: what was in force before stays in force",
	"git.commitStatus.tokenFile":        "the Git host is not told what became of commits",
	"status.signingKeyFile":             "", // no unsigned commit may go out, and nothing disruptive is done without the status branch
	"redis.passwordFile":                "",
	"redis.caFile":                      "",
	"redis.sealKeyFile":                 "",
	"bmc.caFile":                        "", // without it certificates would be pinned at first contact
	"discovery.ignitionTemplateFile":    "servers are not discovered, wiped or installed from disk images",
	"discovery.macPrefixesFile":         "BMCs that only this file describes are left alone, and Ingot has to be restarted once it can be read",
	"boot.caFile":                       "",
	"boot.credentialsFile":              "images from registries that ask for credentials do not boot",
	"admin.tls.certFile":                "",
	"admin.tls.keyFile":                 "",
	"admin.users":                       "",
	"webhook.secretFile":                "announcements of pushes are refused, so a push is noticed after git.interval",
}

const noRepository = "the repository is neither read nor pushed to"

// Files are the files that o names, by key: credentials, keys, certificates and databases.
func (o *Options) Files() []File {
	var all []File
	for _, s := range settings(o) {
		if path := s.value.String(); namesFile(s.path) && path != "" {
			all = append(all, File{s.path, path, fileRules[s.path]})
		}
	}
	slices.SortStableFunc(all, func(a, b File) int { return cmp.Compare(a.Key, b.Key) })
	return all
}

func namesFile(path string) bool { return strings.HasSuffix(path, "File") || path == "admin.users" }
