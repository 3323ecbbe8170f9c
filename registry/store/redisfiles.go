package store

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/url"
	"os"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"
)

// maxCredentialFile bounds a file with a password or certificates, in bytes.
const maxCredentialFile = 1 << 20

// useFiles has connections use the password and the certificates of files. Both are read
// for each connection, so that they change without a restart; what cannot be read then is as
// it was before.
func useFiles(o *redis.UniversalOptions, c RedisConfig) error {
	if c.PasswordFile != "" {
		if err := usePasswordFile(o, c); err != nil {
			return fmt.Errorf("redis.passwordFile: %w", err)
		}
	}
	if c.CAFile != "" {
		if err := useCAFile(o, c.CAFile); err != nil {
			return fmt.Errorf("redis.caFile: %w", err)
		}
	}
	return nil
}

func usePasswordFile(o *redis.UniversalOptions, c RedisConfig) error {
	read, err := lastGood(c.PasswordFile, func(content []byte) (string, error) {
		password := strings.TrimRight(string(content), "\r\n")
		if password == "" {
			return "", errors.New("it is empty")
		}
		return password, nil
	})
	if err != nil {
		return err
	}
	o.Password = read()
	if sentinelAuth(c.URL) {
		o.SentinelPassword = o.Password
	}
	username := o.Username
	o.CredentialsProviderContext = func(context.Context) (string, string, error) { return username, read(), nil }
	return nil
}

// sentinelAuth reports whether Sentinels have the password of Redis, too.
func sentinelAuth(raw string) bool {
	_, query, _ := strings.Cut(raw, "?")
	values, err := url.ParseQuery(query)
	return err == nil && !values.Has("sentinelAuth")
}

func useCAFile(o *redis.UniversalOptions, file string) error {
	if o.TLSConfig == nil {
		return errors.New("redis.url is without TLS: write it with rediss")
	}
	read, err := lastGood(file, func(content []byte) (*x509.CertPool, error) {
		pool, err := x509.SystemCertPool()
		if err != nil {
			pool = x509.NewCertPool() // there are none
		}
		if !pool.AppendCertsFromPEM(content) {
			return nil, errors.New("it holds no certificate in PEM form")
		}
		return pool, nil
	})
	if err != nil {
		return err
	}
	config, timeout := o.TLSConfig, o.DialTimeout
	o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
		trusting := config.Clone()
		trusting.RootCAs = read()
		d := tls.Dialer{NetDialer: &net.Dialer{Timeout: timeout}, Config: trusting}
		return d.DialContext(ctx, network, addr)
	}
	return nil
}

// lastGood returns a function that reads a file, and returns what it held when it could last
// be used. It fails if it cannot now.
func lastGood[T any](file string, parse func([]byte) (T, error)) (func() T, error) {
	read := func() (T, error) {
		content, err := readCredentialFile(file)
		if err != nil {
			var none T
			return none, err
		}
		return parse(content)
	}
	good, err := read()
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", file, err)
	}
	var mu sync.Mutex
	return func() T {
		mu.Lock()
		defer mu.Unlock()
		if now, err := read(); err == nil {
			good = now
		}
		return good
	}, nil
}

func readCredentialFile(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		if p, ok := errors.AsType[*fs.PathError](err); ok {
			err = p.Err
		}
		return nil, err
	}
	defer f.Close() // read only: nothing is lost
	content, err := io.ReadAll(io.LimitReader(f, maxCredentialFile+1))
	if err == nil && len(content) > maxCredentialFile {
		err = errors.New("it is larger than 1 MiB; is it the right file?")
	}
	return content, err
}
