package check

import (
	"log/slog"
	"net"
	"os"
	"time"

	"ingot/bootsvc/ignition"
	"ingot/bootsvc/oci"
	"ingot/cmd/daemon/access"
	"ingot/cmd/daemon/config"
	"ingot/gitsource"
	"ingot/gitsource/forge"
	"ingot/gitsource/sops"
	"ingot/model"
)

// contents are what reads the files whose contents the daemon judges, by key.
var contents = map[string]func(*config.Options) error{
	"admin.users": func(o *config.Options) error { return guarded(access.Options{UsersFile: o.Admin.Users}) },
	"admin.tls.certFile": func(o *config.Options) error {
		return guarded(access.Options{CertFile: o.Admin.TLS.CertFile, KeyFile: o.Admin.TLS.KeyFile})
	},
	"bmc.caFile":                     func(o *config.Options) error { _, err := o.BMC.Authorities(); return err },
	"boot.caFile":                    imageAuthorities,
	"boot.credentialsFile":           func(o *config.Options) error { return oci.CheckCredentials(o.Boot.CredentialsFile) },
	"discovery.ignitionTemplateFile": template,
	"discovery.macPrefixesFile":      macPrefixes,
	"git.ageKeyFile":                 func(o *config.Options) error { _, err := sops.NewKeys(o.Git.AgeKeyFile).Reload(); return err },
	"git.auth.caFile":                func(o *config.Options) error { _, err := o.Git.Credentials().Transport(); return err },
	"status.signingKeyFile":          func(o *config.Options) error { return gitsource.CheckSigningKey(o.Status.SigningKeyFile) },
	"webhook.secretFile":             func(o *config.Options) error { return forge.CheckSecrets(o.Webhook.SecretFile) },
}

// guarded reads the files of the admin listener.
func guarded(o access.Options) error {
	o.Listener, o.Log, o.Clock = &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}, slog.New(slog.DiscardHandler), time.Now
	_, err := access.New(o)
	return err
}

func imageAuthorities(o *config.Options) error {
	images, err := oci.New(o.Images())
	if err == nil {
		images.Close()
	}
	return err
}

func template(o *config.Options) error {
	_, err := ignition.New(ignition.Options{ProbeTemplateFile: o.Discovery.IgnitionTemplateFile, ProbeImage: o.Discovery.Image})
	return err
}

func macPrefixes(o *config.Options) error {
	data, err := os.ReadFile(o.Discovery.MACPrefixesFile)
	if err != nil {
		return err
	}
	_, problems := model.DecodeMACPrefixes(o.Discovery.MACPrefixesFile, data, model.TokenKey{})
	return model.JoinErrors(problems)
}
