package main

import (
	"bytes"
	"encoding/pem"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ingot/model/must"
)

// guardedServer answers like a daemon with TLS and a user. It returns its address and the
// file of its certificate.
func guardedServer(t *testing.T) (address, ca string) {
	t.Helper()
	daemon := newFakeDaemon(t, exampleDocs)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		switch name, password, _ := r.BasicAuth(); {
		case name == "moved":
			http.Redirect(w, r, "https://other.example/", http.StatusFound)
		case name == "locked":
			http.Error(w, "too many passwords are being checked", http.StatusServiceUnavailable)
		case name != "anna" || password != "hunter2":
			http.Error(w, "a user and a password are needed", http.StatusUnauthorized)
		default:
			daemon.ServeHTTP(w, r)
		}
	}))
	server.Config.ErrorLog = log.New(&bytes.Buffer{}, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	ca = filepath.Join(t.TempDir(), "ca.pem")
	put(t, ca, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})))
	return server.URL, ca
}

func put(t *testing.T, name, content string) {
	t.Helper()
	must.Do(t, os.WriteFile(name, []byte(content), 0o600))
}

func TestADaemonWithUsersIsAskedWithAPassword(t *testing.T) {
	address, ca := guardedServer(t)
	dir := t.TempDir()
	right, wrong, text := filepath.Join(dir, "right"), filepath.Join(dir, "wrong"), filepath.Join(dir, "text")
	put(t, right, "hunter2\n")
	put(t, wrong, "hunter3\n")
	put(t, text, "hunter2")
	host := strings.TrimPrefix(address, "https://")
	for name, tc := range map[string]struct {
		args, env []string
		want      string // of the error; "" = it is shown
	}{
		"by flags": {
			args: []string{"--address", address, "--ca-file", ca, "--username", "anna", "--password-file", right},
		},
		"by variables": {
			env: []string{"INGOT_ADDRESS=" + address, "INGOT_CA_FILE=" + ca, "INGOT_USERNAME=anna", "INGOT_PASSWORD_FILE=" + right},
		},
		"by flags before variables": {
			args: []string{"--password-file", right},
			env:  []string{"INGOT_ADDRESS=" + address, "INGOT_CA_FILE=" + ca, "INGOT_USERNAME=anna", "INGOT_PASSWORD_FILE=" + wrong},
		},
		"a certificate that nobody trusts": {
			args: []string{"--address", address, "--username", "anna", "--password-file", right},
			want: "certificate signed by unknown authority; name the certificates to trust with --ca-file",
		},
		"nobody": {
			args: []string{"--address", address, "--ca-file", ca},
			want: address + " answers to its users alone: say who asks with --username and --password-file, or in INGOT_USERNAME and INGOT_PASSWORD_FILE",
		},
		"the wrong password": {
			args: []string{"--address", address, "--ca-file", ca, "--username", "anna", "--password-file", wrong},
			want: address + " does not take the password of user anna: look at --password-file, or ask who keeps its users (admin.users)",
		},
		"an address that is elsewhere": {
			args: []string{"--address", address, "--ca-file", ca, "--username", "moved", "--password-file", right},
			want: address + "/api/v1/fleet answered 302 Found; is it the admin listener of an Ingot daemon?",
		},
		"too many passwords": {
			args: []string{"--address", address, "--ca-file", ca, "--username", "locked", "--password-file", right},
			want: address + "/api/v1/fleet refuses: too many passwords are being checked",
		},
		"a user without a password": {
			args: []string{"--address", address, "--username", "anna"},
			want: "--username is given without --password-file: name the file that holds the password",
		},
		"a password without a user": {
			args: []string{"--address", address, "--password-file", right},
			want: "--password-file is given without --username: whose password is it?",
		},
		"a password in the clear": {
			args: []string{"--address", "http://metal01.example:8080", "--username", "anna", "--password-file", right},
			want: "a password is sent over https, or to this machine, alone: write the address as https://metal01.example:8080",
		},
		"a password in the address": {
			args: []string{"--address", "https://anna:hunter2@" + host},
			want: "the address of the daemon holds a user or a password; name them with --username and --password-file",
		},
		"an address without https": {
			args: []string{"--address", host},
			want: host + " speaks TLS: write the address as https://" + host,
		},
		"certificates that are none": {
			args: []string{"--address", address, "--ca-file", text},
			want: "--ca-file " + text + " holds no certificate; it is to be PEM, beginning with -----BEGIN CERTIFICATE-----",
		},
		"a password for a repository": {
			args: []string{"--git", dir, "--username", "anna"},
			want: "--ca-file, --username and --password-file are for a daemon; with --git use --git-ca-file, --git-username-file and --git-password-file",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var out, errs bytes.Buffer
			c := &console{in: strings.NewReader(""), out: &out, err: &errs, env: tc.env}
			code := execute(t.Context(), append([]string{"status"}, tc.args...), c)
			if shown := strings.Contains(out.String(), "server-2"); shown != (tc.want == "") || (code == 0) != shown {
				t.Errorf("exit code %d\n%s%s", code, out.String(), errs.String())
			}
			if !strings.HasSuffix(strings.TrimSpace(errs.String()), tc.want) {
				t.Errorf("got  %swant %s", errs.String(), tc.want)
			}
			if strings.Contains(out.String()+errs.String(), "hunter") {
				t.Errorf("the password is shown: %s%s", out.String(), errs.String())
			}
		})
	}
}

// Whoever answers at the address could otherwise write anything on the terminal.
func TestWhatAnotherHostAnswersCannotDriveTheTerminal(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		_, _ = conn.Write([]byte("HTTP/1.1 500 all is \x1b[32mwell\x1b[0m\r\nContent-Length: 0\r\n\r\n"))
	}))
	defer server.Close()
	for _, args := range [][]string{{"status"}, {"leases"}, {"explain", "server", "s1"}} {
		_, stderr, code := command(t, append(args, "--address", server.URL)...)
		if code != exitFailed || strings.Contains(stderr, "\x1b") || !strings.Contains(stderr, "all is") {
			t.Errorf("%v: %d %q", args, code, stderr)
		}
	}
}
