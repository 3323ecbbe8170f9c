package main

import (
	"bytes"
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"time"

	"ingot/gitsource/smallfile"
	"ingot/model"
)

// The variables that say how a daemon is reached.
const (
	addressVariable  = "INGOT_ADDRESS"
	caVariable       = "INGOT_CA_FILE"
	usernameVariable = "INGOT_USERNAME"
	passwordVariable = "INGOT_PASSWORD_FILE"
)

type daemonSource struct {
	Address string      `placeholder:"URL" xor:"source" help:"The admin listener of the daemon ($$INGOT_ADDRESS). Default: http://127.0.0.1:8080."`
	Daemon  daemonFlags `embed:""`
}

// named is the address that somebody named, "" if nobody did.
func (d daemonSource) named(c *console) string { return cmp.Or(d.Address, c.lookup(addressVariable)) }

func (d daemonSource) address(c *console) string { return cmp.Or(d.named(c), c.daemon, defaultAddress) }

func (d daemonSource) client(c *console) (*adminClient, error) {
	return newAdminClient(d.address(c), d.Daemon.orVariables(c))
}

// daemonFlags say how a daemon is trusted, and who asks it.
type daemonFlags struct {
	CAFile       string `name:"ca-file" type:"path" placeholder:"FILE" help:"With --address: certificates to trust in addition to the system's ($$INGOT_CA_FILE)."`
	Username     string `placeholder:"NAME" help:"With --address: the user name, if the daemon requires one ($$INGOT_USERNAME)."`
	PasswordFile string `type:"path" placeholder:"FILE" help:"With --address: file that holds the user's password ($$INGOT_PASSWORD_FILE)."`
}

// orVariables returns the flags, with what the environment says where one is not given.
func (f daemonFlags) orVariables(c *console) daemonFlags {
	return daemonFlags{
		CAFile: cmp.Or(f.CAFile, c.lookup(caVariable)), Username: cmp.Or(f.Username, c.lookup(usernameVariable)),
		PasswordFile: cmp.Or(f.PasswordFile, c.lookup(passwordVariable)),
	}
}

// maxSmallFile bounds a file with a password or with certificates, in bytes.
const maxSmallFile = 1 << 20

// client returns an HTTP client that trusts what the flags say. It follows no redirect: the
// password is for the daemon alone.
func (f daemonFlags) client() (*http.Client, error) {
	client := &http.Client{
		Timeout:       10 * time.Second,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	if f.CAFile == "" {
		return client, nil
	}
	content, err := smallfile.Read(f.CAFile, maxSmallFile)
	if err != nil {
		return nil, fmt.Errorf("read --ca-file: %w", err)
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM(content) {
		return nil, fmt.Errorf("--ca-file %s holds no certificate; it is to be PEM, beginning with -----BEGIN CERTIFICATE-----", f.CAFile)
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	client.Transport = transport
	return client, nil
}

func (f daemonFlags) password(u *url.URL) (model.Sensitive, error) {
	switch {
	case f.Username == "" && f.PasswordFile == "":
		return model.Sensitive{}, nil
	case f.Username == "":
		return model.Sensitive{}, errors.New("--password-file is given without --username: whose password is it?")
	case f.PasswordFile == "":
		return model.Sensitive{}, errors.New("--username is given without --password-file: name the file that holds the password")
	case u.Scheme != "https" && !namesThisMachine(u.Hostname()):
		return model.Sensitive{}, errors.New("a password is sent over https, or to this machine, alone: write the address as https://" + u.Host)
	}
	content, err := smallfile.Read(f.PasswordFile, maxSmallFile)
	if err != nil {
		return model.Sensitive{}, fmt.Errorf("read --password-file: %w", err)
	}
	password := bytes.TrimRight(content, "\r\n")
	if len(password) == 0 {
		return model.Sensitive{}, fmt.Errorf("--password-file %s is empty", f.PasswordFile)
	}
	return model.NewSensitive(string(password)), nil
}

func namesThisMachine(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.Unmap().IsLoopback()
}

// unreached adds to the error of a request what to do about it.
func unreached(err error) error {
	if _, unknown := errors.AsType[x509.UnknownAuthorityError](err); unknown {
		return fmt.Errorf("ask the daemon: %w; name the certificates to trust with --ca-file", err)
	}
	return fmt.Errorf("ask the daemon: %w", err)
}

// wantsPassword is the error of a daemon that asks for another password, or for one at all.
func (a *adminClient) wantsPassword() error {
	if a.username == "" {
		return fmt.Errorf("%s answers to its users alone: say who asks with --username and --password-file, or in %s and %s",
			a.base, usernameVariable, passwordVariable)
	}
	return fmt.Errorf("%s does not take the password of user %s: look at --password-file, or ask who keeps its users (admin.users)", a.base, printable(a.username))
}
