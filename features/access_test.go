package features

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/crypto/bcrypt"

	"ingot/features/internal/rig"
)

// userPassword opens the admin listener. It is looked for with the BMCs' password.
const userPassword = "user-" + bmcPassword

const proxyAt = "127.0.0.77"

const userHeader = "X-Forwarded-User"

// adminAccess is how a scenario's admin listener is reached. The zero value is for one
// that lets everybody on this machine look.
type adminAccess struct {
	settings string // of admin, beside its address
	outside  bool   // it is reached from other machines
	tls      bool
	user     string // who asks, where the listener has users
	proxied  string // whom a proxy names
	site     string // the Host header, "" = as it should be
	from     string // where it is asked from, "" = wherever
	dir      string // of the files
}

func (w *site) adminSettings() string {
	address := w.admin
	if w.access.outside {
		address = ":0"
	}
	return fmt.Sprintf("listen: %q%s", address, w.access.settings)
}

func reachedByAll(ctx context.Context) error {
	siteOf(ctx).access = adminAccess{outside: true}
	return nil
}

func reachedByUser(ctx context.Context, name string) error {
	w := siteOf(ctx)
	a := &w.access
	*a = adminAccess{outside: true, tls: true, user: name, dir: w.dir}
	a.settings = fmt.Sprintf(", users: %q, tls: {certFile: %q, keyFile: %q}", a.file("users"), a.file("tls.crt"), a.file("tls.key"))
	return errors.Join(a.writePair("ingot.example"), usersAre(ctx, name))
}

func reachedByProxy(ctx context.Context) error {
	w := siteOf(ctx)
	w.access = adminAccess{proxied: "anna", from: proxyAt}
	w.access.settings = fmt.Sprintf(", trustedHeader: {name: %s, from: [%s]}", userHeader, proxyAt)
	return nil
}

func metricsForAll(ctx context.Context) error {
	siteOf(ctx).access.settings += ", openMetrics: true"
	return nil
}

func (a *adminAccess) file(name string) string { return filepath.Join(a.dir, name) }

// writePair writes a certificate that is good for this machine and for name, and its key.
func (a *adminAccess) writePair(name string) error {
	cert, key, err := selfSigned("127.0.0.1", name)
	return errors.Join(err, os.WriteFile(a.file("tls.key"), key, 0o600),
		os.WriteFile(a.file("tls.crt"), cert, 0o600), os.WriteFile(a.file("ca-"+name), cert, 0o600))
}

func usersAre(ctx context.Context, all string) error {
	a := &siteOf(ctx).access
	content := ""
	for _, name := range names(all) {
		hash, err := bcrypt.GenerateFromPassword([]byte(userPassword), bcrypt.MinCost)
		if err != nil {
			return err
		}
		content += name + ":" + string(hash) + "\n"
	}
	return errors.Join(os.WriteFile(a.file("password"), []byte(userPassword+"\n"), 0o600), os.WriteFile(a.file("users"), []byte(content), 0o600))
}

func usersByMD5(ctx context.Context) error {
	return os.WriteFile(siteOf(ctx).access.file("users"), []byte("anna:$apr1$0123$abcdefghijklmnopqrstuv\n"), 0o600)
}

func changeCertificate(ctx context.Context, how string) error {
	a := &siteOf(ctx).access
	if how == "broken" {
		return os.WriteFile(a.file("tls.crt"), []byte("no certificate\n"), 0o600)
	}
	return a.writePair("other.example")
}

func (a adminAccess) ask(ctx context.Context, p *program, path string) (*http.Response, []byte, error) {
	ctx, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	host, port, err := net.SplitHostPort(p.where.Admin)
	if err != nil {
		return nil, nil, err
	}
	if ip := net.ParseIP(host); ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	scheme := "http"
	if a.tls {
		scheme = "https"
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme+"://"+net.JoinHostPort(host, port)+path, nil)
	if err != nil {
		return nil, nil, err
	}
	if req.Host = a.site; a.user != "" {
		req.SetBasicAuth(a.user, userPassword)
	}
	if a.proxied != "" {
		req.Header.Set(userHeader, a.proxied)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}
	if a.from != "" {
		transport.DialContext = (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(a.from)}}).DialContext
	}
	resp, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		return nil, nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp, body, err
}

func (a adminAccess) answered(ctx context.Context, path string, code int, says string) error {
	return rig.Within(patience, func() error {
		resp, body, err := a.ask(ctx, siteOf(ctx).ingot, path)
		if err == nil && (resp.StatusCode != code || !strings.Contains(string(body), says)) {
			err = fmt.Errorf("%s was answered %d %.300s, want %d %s", path, resp.StatusCode, body, code, says)
		}
		return err
	})
}

func startsNot(ctx context.Context, says string) error {
	w := siteOf(ctx)
	if err := w.start(); err == nil {
		return errors.New("it starts")
	}
	w.ingot = nil
	if !strings.Contains(w.log.text(), says) {
		return fmt.Errorf("it does not say %q:\n%s", says, w.log.text())
	}
	return nil
}

const fleetPath = "/api/v1/fleet"

func anybodySees(ctx context.Context) error {
	return adminAccess{}.answered(ctx, fleetPath, http.StatusOK, `"counts"`)
}

func rebindingRefused(ctx context.Context) error {
	return adminAccess{site: "evil.example"}.answered(ctx, fleetPath, http.StatusForbidden, "localhost")
}

func anybodyLearnsReady(ctx context.Context) error {
	return adminAccess{tls: true}.answered(ctx, "/readyz", http.StatusOK, "ready\n")
}

func metricsRefused(ctx context.Context) error {
	return adminAccess{tls: true}.answered(ctx, "/metrics", http.StatusUnauthorized, "a user and a password are needed")
}

func metricsSeen(ctx context.Context) error {
	return adminAccess{tls: true}.answered(ctx, "/metrics", http.StatusOK, "ingot_servers")
}

func usersUnusable(ctx context.Context) error {
	return siteOf(ctx).access.answered(ctx, "/metrics", http.StatusOK, `ingot_admin_files_unusable{setting="admin.users"} 1`)
}

func seesThroughProxy(ctx context.Context, name string) error {
	return adminAccess{proxied: name, from: proxyAt}.answered(ctx, fleetPath, http.StatusOK, `"counts"`)
}

func namedWithoutProxy(ctx context.Context, name string) error {
	return adminAccess{proxied: name}.answered(ctx, fleetPath, http.StatusForbidden, userHeader)
}

// ingotStatus runs "ingot status" for a user, nobody for "".
func ingotStatus(ctx context.Context, name, ca string) (string, error) {
	w := siteOf(ctx)
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	_, port, err := net.SplitHostPort(w.ingot.where.Admin)
	if err != nil {
		return "", err
	}
	arguments := []string{"status", "--address", "https://" + net.JoinHostPort("127.0.0.1", port), "--ca-file", w.access.file("ca-" + ca)}
	if name != "" {
		arguments = append(arguments, "--username", name, "--password-file", w.access.file("password"))
	}
	out, err := exec.CommandContext(ctx, ingotProgram, arguments...).CombinedOutput()
	return string(out), err
}

func userSees(ctx context.Context, name string) error { return fleetShown(ctx, name, "ingot.example") }

func userSeesOther(ctx context.Context, name string) error {
	return fleetShown(ctx, name, "other.example")
}

func fleetShown(ctx context.Context, name, ca string) error {
	return rig.Within(patience, func() error {
		out, err := ingotStatus(ctx, name, ca)
		if err == nil && !strings.Contains(out, "Revision") {
			err = errors.New("the fleet is not shown")
		}
		if err != nil {
			return fmt.Errorf("ingot status: %w\n%s", err, out)
		}
		return nil
	})
}

func userTold(ctx context.Context, name, want string) error {
	out, err := ingotStatus(ctx, name, "ingot.example")
	if err == nil || !strings.Contains(out, want) || strings.Contains(out, userPassword) {
		return fmt.Errorf("ingot status ends with %w, and does not say %q:\n%s", err, want, out)
	}
	return nil
}
