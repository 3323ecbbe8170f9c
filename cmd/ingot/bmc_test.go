package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ingot/bmc"
	"ingot/bmc/sim"
	"ingot/model/must"
)

// simulatedBMC runs a rack of one BMC for as long as the test lasts, and writes its password
// to a file.
func simulatedBMC(t *testing.T) (b *sim.BMC, passwordFile string) {
	t.Helper()
	rack := must.Get(sim.New(sim.Options{Delays: sim.FastDelays()}))(t)
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- rack.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ran; err != nil {
			t.Error(err)
		}
	})
	b = rack.BMCs()[0]
	passwordFile = filepath.Join(t.TempDir(), "password")
	must.Do(t, os.WriteFile(passwordFile, []byte(b.Target().Password.Reveal()+"\n"), 0o600))
	return b, passwordFile
}

func TestBMCCheck(t *testing.T) {
	b, passwordFile := simulatedBMC(t)
	out, errs, code := command(t, "bmc", "check", "--address", b.Addr(), "--username", "admin", "--password-file", passwordFile)
	for _, want := range []string{
		"BMC at https://" + b.Addr() + "\n", "CHECK ", "login       works   a session\n", b.Fingerprint(),
		"\n/redfish/v1/Systems/", "identity       works   UUID ", "requests; the slowest took ", "All that Ingot needs works.\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing", want)
		}
	}
	if code != 0 || errs != "" || b.Sessions() > 0 {
		t.Errorf("exit code %d, %d sessions left, %s%s", code, b.Sessions(), errs, out)
	}
	var r struct {
		bmc.CheckReport
		Usable bool `json:"usable"`
	}
	out, errs, code = command(t, "bmc", "check", "--address", b.Addr(), "--username", "admin", "--password-file", passwordFile,
		"--fingerprint", strings.ToUpper(b.Fingerprint()), "-o", "json")
	if err := json.Unmarshal([]byte(out), &r); err != nil || code != 0 || !r.Usable || r.BMC == nil || len(r.Checks) < 10 || r.Requests == 0 {
		t.Errorf("exit code %d, %v, %s%s", code, err, errs, out)
	}
}

func TestBMCCheckOfAWrongPassword(t *testing.T) {
	b, passwordFile := simulatedBMC(t)
	must.Do(t, os.WriteFile(passwordFile, []byte("hunter2"), 0o600))
	out, errs, code := command(t, "bmc", "check", "--address", b.Addr(), "--username", "admin", "--password-file", passwordFile)
	if code != 1 || errs != "" || !strings.Contains(out, "login: AuthenticationFailed: correct the user name and password") || strings.Contains(out, "hunter2") {
		t.Errorf("exit code %d, %s%s", code, errs, out)
	}
}

func TestBMCCheckTeachesItsFlags(t *testing.T) {
	_, passwordFile := simulatedBMC(t)
	empty := filepath.Join(t.TempDir(), "empty")
	must.Do(t, os.WriteFile(empty, []byte("\n"), 0o600))
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"--address", "https://192.0.2.1"}, "write --address 192.0.2.1 --scheme https"},
		{[]string{"--address", "192.0.2.1:443", "--port", "8443"}, "has a port, and --port is another"},
		{[]string{"--address", "192.0.2.1", "--port", "70000"}, "want 1 to 65535"},
		{[]string{"--address", "192.0.2.1", "--fingerprint", "abc"}, "64 hexadecimal digits"},
		{[]string{"--address", "192.0.2.1", "--hostname", "x"}, "give --ca-file as well"},
		{[]string{"--address", "192.0.2.1", "--ca-file", passwordFile}, "holds no certificate"},
		{[]string{"--address", "192.0.2.1", "--password-file", empty}, "is empty"},
		{[]string{"--address", "192.0.2.1", "--password-file", "-"}, "is empty"},
		{[]string{"--address", "192.0.2.1", "--password-file", empty + "2"}, "read --password-file"},
		{[]string{"--address", "192.0.2.1", "--tls-minimum", "1.4"}, "--tls-minimum must be one of"},
		{[]string{}, "missing flags: --address"},
	} {
		args := append([]string{"bmc", "check", "--username", "admin"}, tt.args...)
		if !strings.Contains(strings.Join(args, " "), "--password-file") {
			args = append(args, "--password-file", passwordFile)
		}
		if _, errs, code := command(t, args...); code != exitFailed && code != exitUsage || !strings.Contains(errs, tt.want) {
			t.Errorf("%q: exit code %d, %s; want %q", tt.args, code, errs, tt.want)
		}
	}
}

func TestHostPort(t *testing.T) {
	for _, tt := range []struct {
		command bmcCheckCommand
		want    string
	}{
		{bmcCheckCommand{Address: "192.0.2.1", Scheme: "https"}, "192.0.2.1:443"},
		{bmcCheckCommand{Address: "192.0.2.1", Scheme: "http"}, "192.0.2.1:80"},
		{bmcCheckCommand{Address: "192.0.2.1:8443", Scheme: "https"}, "192.0.2.1:8443"},
		{bmcCheckCommand{Address: "bmc", Scheme: "https", Port: 8443}, "bmc:8443"},
		{bmcCheckCommand{Address: "2001:db8::1", Scheme: "https"}, "[2001:db8::1]:443"},
		{bmcCheckCommand{Address: "[2001:db8::1]:8443", Scheme: "https"}, "[2001:db8::1]:8443"},
		{bmcCheckCommand{Address: "[2001:db8::1]", Scheme: "https"}, "[2001:db8::1]:443"},
	} {
		if got, err := tt.command.hostPort(); err != nil || got != tt.want {
			t.Errorf("%+v: got %s, %v; want %s", tt.command, got, err, tt.want)
		}
	}
}
