package check

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"ingot/cmd/daemon/config"
	"ingot/model/must"
)

func TestFilesThatAreNotWhatTheyShouldBe(t *testing.T) {
	bad := filepath.Join(t.TempDir(), "bad")
	must.Do(t, os.WriteFile(bad, []byte("\xff: [\n"), 0o600))
	names := map[string]func(*config.Options) *string{
		"admin.users":                    func(o *config.Options) *string { return &o.Admin.Users },
		"admin.tls.certFile":             func(o *config.Options) *string { return &o.Admin.TLS.CertFile },
		"bmc.caFile":                     func(o *config.Options) *string { return &o.BMC.CAFile },
		"boot.caFile":                    func(o *config.Options) *string { return &o.Boot.CAFile },
		"boot.credentialsFile":           func(o *config.Options) *string { return &o.Boot.CredentialsFile },
		"discovery.ignitionTemplateFile": func(o *config.Options) *string { return &o.Discovery.IgnitionTemplateFile },
		"discovery.macPrefixesFile":      func(o *config.Options) *string { return &o.Discovery.MACPrefixesFile },
		"git.ageKeyFile":                 func(o *config.Options) *string { return &o.Git.AgeKeyFile },
		"git.auth.caFile":                func(o *config.Options) *string { return &o.Git.Auth.CAFile },
		"status.signingKeyFile":          func(o *config.Options) *string { return &o.Status.SigningKeyFile },
	}
	for key := range contents {
		t.Run(key, func(t *testing.T) {
			o := config.Default()
			if key == "webhook.secretFile" { // any text is a secret
				o.Webhook.SecretFile = filepath.Join(t.TempDir(), "blank")
				must.Do(t, os.WriteFile(o.Webhook.SecretFile, []byte("\n\n"), 0o600))
			} else {
				*names[key](&o) = bad
			}
			results := files(t.Context(), &o)
			if len(results) != 1 || results[0].Check != key || results[0].Outcome != Wrong || results[0].Fix == "" {
				t.Errorf("got %+v", results)
			}
		})
	}
}

func TestFoldersThatAreNotWhatTheyShouldBe(t *testing.T) {
	folder, right := t.TempDir(), t.TempDir()
	write := func(path, text string) {
		t.Helper()
		must.Do(t, errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)))
	}
	write(filepath.Join(folder, "default", "web", "ignition"), "{}")
	write(filepath.Join(folder, "default_web_ignition"), "{}") // the same Secret again
	write(filepath.Join(folder, "a.pub"), "no key")
	write(filepath.Join(right, "default", "web", "ignition"), "{}")
	write(filepath.Join(right, "a.pub"), "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGlNvpbk3wHhuDYfTV3BTcVFbDFbFSn7ZUX8SBgY3Lum a\n")
	for name, tc := range map[string]struct {
		set     func(o *config.Options)
		check   string
		outcome Outcome
	}{
		"keys that are none":         {func(o *config.Options) { o.Git.Verify = config.GitVerify{Mode: "head", Keys: folder} }, "git.verify.keys", Wrong},
		"keys that are not there":    {func(o *config.Options) { o.Git.Verify = config.GitVerify{Mode: "head", Keys: folder + "/none"} }, "git.verify.keys", Wrong},
		"keys":                       {func(o *config.Options) { o.Git.Verify = config.GitVerify{Mode: "head", Keys: right} }, "git.verify.keys", OK},
		"secrets that are not there": {func(o *config.Options) { o.SecretFiles = folder + "/none" }, "secretFiles", Wrong},
		"a secret that stands twice": {func(o *config.Options) { o.SecretFiles = folder }, "secretFiles", Wrong},
		"secrets":                    {func(o *config.Options) { o.SecretFiles = right }, "secretFiles", OK},
	} {
		t.Run(name, func(t *testing.T) {
			o := config.Default()
			tc.set(&o)
			results := folders(t.Context(), &o)
			if len(results) != 1 || results[0].Check != tc.check || results[0].Outcome != tc.outcome {
				t.Errorf("got %+v", results)
			}
		})
	}
}
