package config

import (
	"ingot/bootsvc/oci"
	"ingot/gitsource"
)

// Credentials name the credential files of the repository as gitsource wants them.
func (g Git) Credentials() gitsource.Auth {
	a := g.Auth
	return gitsource.Auth{
		UsernameFile: a.UsernameFile, PasswordFile: a.PasswordFile, CAFile: a.CAFile,
		SSHKeyFile: a.SSHKeyFile, KnownHostsFile: a.KnownHostsFile, GitHubApp: a.App(), Proxy: g.Proxy,
	}
}

// Images are where images come from, as far as the configuration says it. A daemon that runs
// knows better where BMCs are.
func (o *Options) Images() oci.Options {
	return oci.Options{
		AllowedRegistries: o.Boot.AllowedRegistries, ImageDirs: o.Boot.ImageDirs, Own: []string{o.Discovery.Image, o.Cleanup.Image},
		PlainHTTP: o.Boot.InsecureRegistries, TLSHere: o.Boot.SecureRegistries, CAFile: o.Boot.CAFile,
		CredentialsFile: o.Boot.CredentialsFile, Inside: o.MayBeBMC,
	}
}
