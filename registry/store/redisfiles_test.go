package store

import (
	"crypto/tls"
	"encoding/pem"
	"io"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ingot/registry/internal/redistest"
)

func credentialFile(t *testing.T, content string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "file")
	replace(t, file, content)
	return file
}

func replace(t *testing.T, file, content string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// A password that changes in its file is used by the next connection; one that cannot be read
// is as it was.
func TestPasswordFile(t *testing.T) {
	server := redistest.New(t)
	admin := server.Client(t)
	file := credentialFile(t, "one\n")
	password := func(p string) {
		t.Helper()
		if err := admin.ConfigSet(t.Context(), "requirepass", p).Err(); err != nil {
			t.Fatal(err)
		}
	}
	password("one")
	s, err := OpenRedis(t.Context(), RedisConfig{URL: server.URL(), PasswordFile: file, Log: testLog(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	again := func() error {
		t.Helper()
		if err := admin.ClientKillByFilter(t.Context(), "TYPE", "normal", "SKIPME", "yes").Err(); err != nil {
			t.Fatal(err)
		}
		return s.client.Ping(t.Context()).Err()
	}
	if err := again(); err != nil {
		t.Fatal(err)
	}
	password("two")
	if err := again(); err == nil {
		t.Error("logged in with the former password")
	}
	replace(t, file, "two\r\n")
	if err := again(); err != nil {
		t.Errorf("with the new password: %v", err)
	}
	replace(t, file, "")
	if err := again(); err != nil {
		t.Errorf("with an empty file: %v", err)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if err := again(); err != nil {
		t.Errorf("without a file: %v", err)
	}
}

// A Redis with a certificate of one's own is trusted by a file.
func TestCAFile(t *testing.T) {
	server := redistest.New(t)
	front := httptest.NewUnstartedServer(nil)
	front.StartTLS() // for its certificate alone
	defer front.Close()
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: front.TLS.Certificates})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("unix", server.Socket())
			if err != nil {
				_ = in.Close()
				continue
			}
			go func() { _, _ = io.Copy(out, in); _ = out.Close() }()
			go func() { _, _ = io.Copy(in, out); _ = in.Close() }()
		}
	}()
	file := credentialFile(t, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: front.Certificate().Raw})))
	url := "rediss://" + l.Addr().String()
	s, err := OpenRedis(t.Context(), RedisConfig{URL: url, CAFile: file, Log: testLog(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := OpenRedis(t.Context(), RedisConfig{URL: url, Log: testLog(t)}); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("without the file: got %v", err)
	}
}

func TestWrongFilesAreRefused(t *testing.T) {
	for says, c := range map[string]RedisConfig{
		"redis.passwordFile: read /nowhere: no such file or directory": {URL: "redis://localhost", PasswordFile: "/nowhere"},
		"redis.url: holds a password":                                  {URL: "redis://:hunter2@localhost", PasswordFile: credentialFile(t, "x")},
		": it is empty":                                                {URL: "redis://localhost", PasswordFile: credentialFile(t, "\n")},
		"redis.caFile: redis.url is without TLS":                       {URL: "redis://localhost", CAFile: credentialFile(t, "x")},
		": it holds no certificate in PEM form":                        {URL: "rediss://localhost", CAFile: credentialFile(t, "hunter2")},
		"so a password and TLS are needed":                             {URL: "redis://redis.example.com", PasswordFile: credentialFile(t, "x")},
	} {
		c.Log = testLog(t)
		_, err := OpenRedis(t.Context(), c)
		if err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("got %v, want %q", err, says)
		}
	}
}

// Sentinels have the password too, unless the URL says otherwise.
func TestSentinelsHaveThePassword(t *testing.T) {
	for url, want := range map[string]string{
		"redis+sentinel://u@a/main": "secret", "redis+sentinel://u@a/main?sentinelAuth=no": "",
	} {
		o, err := parseRedisURL(url)
		if err != nil {
			t.Fatal(err)
		}
		if err := useFiles(o, RedisConfig{URL: url, PasswordFile: credentialFile(t, "secret")}); err != nil {
			t.Fatal(err)
		}
		user, password, err := o.CredentialsProviderContext(t.Context())
		if err != nil || user != "u" || password != "secret" || o.SentinelPassword != want {
			t.Errorf("%s: got %s, %s, %s, %v", url, user, password, o.SentinelPassword, err)
		}
	}
}
