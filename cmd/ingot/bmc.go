package main

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"ingot/bmc"
	"ingot/gitsource/smallfile"
	"ingot/model"
)

type bmcCommand struct {
	Check bmcCheckCommand `cmd:"" help:"Check which of the functions that Ingot needs work on a BMC, before it is in Git."`
}

type bmcCheckCommand struct {
	Address      string        `required:"" placeholder:"HOST" help:"Address or name of the BMC, such as 192.0.2.10."`
	Port         int           `placeholder:"N" help:"Port that it listens on. Default: 443; 80 for http."`
	Scheme       string        `enum:"https,http" default:"https" placeholder:"SCHEME" help:"https, or http, which sends the password unencrypted. Default: ${default}."`
	Username     string        `required:"" placeholder:"NAME" help:"Account of the BMC."`
	PasswordFile string        `required:"" type:"path" placeholder:"FILE" help:"File that holds its password; - reads it from standard input."`
	CAFile       string        `name:"ca-file" type:"path" placeholder:"FILE" help:"CA certificates that must have signed the BMC's certificate, as bmc.caFile. Default: its certificate is pinned."`
	Hostname     string        `placeholder:"NAME" help:"With --ca-file: the name in its certificate, as spec.hostname. Default: the address."`
	Fingerprint  string        `placeholder:"SHA256" help:"The expected certificate: its SHA-256 in hexadecimal."`
	TLSMinimum   string        `name:"tls-minimum" enum:",1.0,1.1,1.2,1.3" default:"" placeholder:"VERSION" help:"Lowest version of TLS, as annotation ingot/tls-minimum: 1.0 to 1.3. Default: 1.2."`
	Timeout      time.Duration `default:"60s" placeholder:"DURATION" help:"How long one request may take; real BMCs take up to 17 s. Default: ${default}."`
	Write        bool          `help:"Also test writing: switch the indicator LED and back, and set and clear the boot override. Power is never touched."`
}

// Help implements kong.HelpProvider.
func (bmcCheckCommand) Help() string {
	return `Talks to one BMC with the same code as "ingot run", and reports what works: the connection, TLS and certificate, login, which systems are servers (and why others are not), how each is identified, its inventory, power state and reset types, boot override and order, and more. Nothing is changed unless --write is given, and the session is closed at the end, also on Ctrl-C.

Exit codes: 0 everything that Ingot needs works; 1 something does not, or the check could not be made.

Examples:

  ingot bmc check --address 192.0.2.10 --username root --password-file bmc.password
  ingot bmc check --address 192.0.2.10 --username root --password-file bmc.password --write
  pass show rack1/bmc | ingot bmc check --address bmc-7.example.com --username root --password-file -
  ingot bmc check --address 192.0.2.10 --username root --password-file bmc.password -o json >bmc.json`
}

// Validate implements kong's validation of flags.
func (b *bmcCheckCommand) Validate() error {
	if strings.Contains(b.Address, "://") {
		u, err := url.Parse(b.Address)
		if err != nil || u.Host == "" || u.User != nil || strings.Trim(u.Path, "/") != "" {
			return errors.New("--address: write the host alone, such as 192.0.2.10; --scheme, --port, --username and --password-file say the rest")
		}
		return fmt.Errorf("--address %q: write --address %s --scheme %s", b.Address, u.Host, u.Scheme)
	}
	if b.Port < 0 || b.Port > 65535 {
		return fmt.Errorf("--port %d: want 1 to 65535", b.Port)
	}
	b.Fingerprint = strings.ToLower(strings.ReplaceAll(b.Fingerprint, ":", ""))
	if raw, err := hex.DecodeString(b.Fingerprint); err != nil || len(raw) != 0 && len(raw) != 32 {
		return fmt.Errorf("--fingerprint %q: want the SHA-256 of the certificate, 64 hexadecimal digits", b.Fingerprint)
	}
	switch {
	case b.CAFile != "" && b.Fingerprint != "":
		return errors.New("--ca-file and --fingerprint: a certificate is verified by one of them")
	case b.Hostname != "" && b.CAFile == "":
		return errors.New("--hostname is what a CA signed the certificate for: give --ca-file as well")
	case b.Timeout <= 0:
		return fmt.Errorf("--timeout %s: want more than nothing", b.Timeout)
	}
	return nil
}

// Run checks the BMC and prints what was found.
func (b *bmcCheckCommand) Run(ctx context.Context, c *console) error {
	o, err := b.options(c)
	if err != nil {
		return err
	}
	report := bmc.Check(ctx, o)
	if c.json() {
		err = c.printJSON(bmcCheckResult{report, report.Usable(), ctx.Err() != nil})
	} else {
		printCheck(c, report)
	}
	switch {
	case err != nil:
		return err
	case ctx.Err() != nil:
		return errors.New("interrupted: the rest was not checked")
	case !report.Usable():
		return exitStatus(exitFailed)
	}
	return nil
}

// bmcCheckResult is what is printed of a check in JSON.
type bmcCheckResult struct {
	*bmc.CheckReport
	Usable      bool `json:"usable"`
	Interrupted bool `json:"interrupted,omitempty"`
}

func (b *bmcCheckCommand) options(c *console) (bmc.CheckOptions, error) {
	password, err := b.password(c)
	if err != nil {
		return bmc.CheckOptions{}, err
	}
	address, err := b.hostPort()
	if err != nil {
		return bmc.CheckOptions{}, err
	}
	o := bmc.CheckOptions{Timeout: b.Timeout, Write: b.Write, Target: model.BMCTarget{
		Name: model.BMCName(address), Scheme: b.Scheme, Address: address, Hostname: b.Hostname,
		Username: b.Username, Password: password, Fingerprint: b.Fingerprint, TLSMinimum: b.TLSMinimum,
	}}
	if b.CAFile == "" {
		return o, nil
	}
	content, err := smallfile.Read(b.CAFile, maxSmallFile)
	if err != nil {
		return o, fmt.Errorf("read --ca-file: %w", err)
	}
	o.CA = x509.NewCertPool()
	if !o.CA.AppendCertsFromPEM(content) {
		return o, fmt.Errorf("--ca-file %s holds no certificate; it is to be PEM, beginning with -----BEGIN CERTIFICATE-----", b.CAFile)
	}
	return o, nil
}

func (b *bmcCheckCommand) hostPort() (string, error) {
	host, port := strings.Trim(b.Address, "[]"), map[string]string{"https": "443", "http": "80"}[b.Scheme]
	if h, p, err := net.SplitHostPort(b.Address); err == nil {
		if b.Port != 0 && p != strconv.Itoa(b.Port) {
			return "", fmt.Errorf("--address %s has a port, and --port is another", b.Address)
		}
		host, port = h, p
	}
	if b.Port != 0 {
		port = strconv.Itoa(b.Port)
	}
	return net.JoinHostPort(host, port), nil
}

func (b *bmcCheckCommand) password(c *console) (model.Sensitive, error) {
	var content []byte
	var err error
	if b.PasswordFile == "-" {
		content, err = io.ReadAll(io.LimitReader(c.in, maxSmallFile))
	} else {
		content, err = smallfile.Read(b.PasswordFile, maxSmallFile)
	}
	if err != nil {
		return model.Sensitive{}, fmt.Errorf("read --password-file: %w", err)
	}
	content = bytes.TrimRight(content, "\r\n")
	if len(content) == 0 {
		return model.Sensitive{}, fmt.Errorf("--password-file %s is empty", b.PasswordFile)
	}
	return model.NewSensitive(string(content)), nil
}

func printCheck(c *console, r *bmc.CheckReport) {
	c.printf("BMC at %s\n\n", printable(r.URL))
	for system, items := range bySystem(r.Checks) {
		if system > 0 {
			c.printf("\n%s\n\n", printable(items[0].System))
		}
		var rows [][]cell
		for _, item := range items {
			rows = append(rows, checkRow(item))
		}
		c.printTable([]string{"CHECK", "RESULT", "DETAIL"}, rows)
	}
	c.printf("\n%d requests", r.Requests)
	if r.Slowest != "" {
		c.printf("; the slowest took %s: %s", time.Duration(r.SlowestSeconds*float64(time.Second)).Round(time.Millisecond), printable(r.Slowest))
	}
	c.printf("\n\n")
	for _, item := range r.Checks {
		if item.Advice != "" {
			about := append(strings.Fields(printable(item.System)), item.Check)
			if item.Reason != "" {
				about = append(about, item.Reason)
			}
			c.printText(0, 2, fmt.Sprintf("%s: %s", strings.Join(about, ": "), printable(item.Advice)), plain)
		}
	}
	if r.Usable() {
		c.printf("%s\n", c.paint("All that Ingot needs works.", green))
	} else {
		c.printf("%s\n", c.paint("Something that Ingot needs does not work.", red))
	}
}

// bySystem are the items in groups: those of the BMC, and those of each system.
func bySystem(items []bmc.CheckItem) (groups [][]bmc.CheckItem) {
	for start := 0; start < len(items); {
		end := start
		for end < len(items) && items[end].System == items[start].System {
			end++
		}
		groups = append(groups, items[start:end])
		start = end
	}
	return groups
}

var checkColours = map[bmc.CheckResult]colour{bmc.CheckWorks: green, bmc.CheckPartly: yellow, bmc.CheckFails: red, bmc.CheckNone: faint}

func checkRow(item bmc.CheckItem) []cell {
	in := checkColours[item.Result]
	if item.Result == bmc.CheckFails && !item.Needed {
		in = yellow
	}
	return []cell{textCell(item.Check), {string(item.Result), in}, textCell(item.Detail)}
}
