package config

import (
	"cmp"
	"crypto/x509"
	"fmt"
	"os"

	"ingot/bootsvc/oci"
	"ingot/gitsource"
	"ingot/gitsource/forge"
)

// Credentials name the credential files of the repository as gitsource wants them.
func (g Git) Credentials() gitsource.Auth {
	a := g.Auth
	return gitsource.Auth{
		UsernameFile: a.UsernameFile, PasswordFile: a.PasswordFile, CAFile: a.CAFile,
		SSHKeyFile: a.SSHKeyFile, KnownHostsFile: a.KnownHostsFile, GitHubApp: g.app(),
	}
}

// Web returns the addresses of the repository's pages.
func (g Git) Web() (forge.Web, error) { return forge.NewWeb(g.URL, g.WebURL, g.CommitStatus.Provider) }

// Project returns where commit statuses are posted.
func (g Git) Project() (forge.Project, error) {
	return forge.NewProject(g.CommitStatus.Provider, cmp.Or(g.WebURL, g.URL), g.CommitStatus.URL)
}

// Images are where images come from, as far as the configuration says it. A daemon that runs
// knows better where BMCs are.
func (o *Options) Images() oci.Options {
	return oci.Options{
		Registries: o.Boot.Registries, ImageDirs: o.Boot.ImageDirs, Own: []string{o.Discovery.Image},
		CAFile: o.Boot.CAFile, CredentialsFile: o.Boot.CredentialsFile, Inside: o.MayBeBMC,
	}
}

// AllowedImages returns the check of a claim's image against boot.registries and boot.imageDirs.
func (o *Options) AllowedImages() (func(image string) error, error) {
	images, err := oci.New(oci.Options{Registries: o.Boot.Registries, ImageDirs: o.Boot.ImageDirs, Own: []string{o.Discovery.Image}, Inside: o.MayBeBMC})
	if err != nil {
		return nil, err
	}
	return images.Allowed, nil
}

// Authorities are the certificate authorities that BMCs are checked against, nil if none are named.
func (b BMC) Authorities() (*x509.CertPool, error) {
	if b.CAFile == "" {
		return nil, nil
	}
	pem, err := os.ReadFile(b.CAFile)
	if err != nil {
		return nil, fmt.Errorf("bmc.caFile: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("bmc.caFile: %s holds no certificate in PEM form", b.CAFile)
	}
	return pool, nil
}
