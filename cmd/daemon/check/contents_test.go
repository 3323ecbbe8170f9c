package check

import (
	"os"
	"path/filepath"
	"testing"

	"ingot/cmd/daemon/config"
)

func TestFilesThatAreNotWhatTheyShouldBe(t *testing.T) {
	bad := filepath.Join(t.TempDir(), "bad")
	if err := os.WriteFile(bad, []byte("\xff: [\n"), 0o600); err != nil {
		t.Fatal(err)
	}
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
				if err := os.WriteFile(o.Webhook.SecretFile, []byte("\n\n"), 0o600); err != nil {
					t.Fatal(err)
				}
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
