package gitsource

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
)

// CheckProxy returns what is wrong with a proxy, "" for none, for the repository at rawURL.
// An address of a repository that cannot be read is somebody else's to refuse.
func CheckProxy(proxy, rawURL string) error {
	endpoint, err := parseURL(rawURL)
	if proxy == "" || err != nil {
		return nil //nolint:nilerr // see above
	}
	protocol := endpoint.Protocol
	u, err := url.Parse(proxy)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" && u.Scheme != "socks5":
		return errors.New("the proxy is no address: write it as http://proxy.example.com:3128, https://… or socks5://…")
	case u.User != nil:
		return errors.New("the proxy's address holds a user or a password, which must not stand in a configuration: " +
			"use a proxy that lets this machine through")
	case protocol == "ssh" && (u.Scheme != "http" || u.Port() == ""):
		return errors.New("SSH is spoken through a proxy of the form http://host:port alone")
	case protocol == "file":
		return errors.New("a repository on this machine is reached through no proxy")
	}
	return nil
}

// connectThrough has an HTTP proxy connect to addr, see RFC 9110 §9.3.6.
func connectThrough(ctx context.Context, conn net.Conn, addr string) error {
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	req := &http.Request{Method: http.MethodConnect, URL: &url.URL{Opaque: addr}, Host: addr, Header: make(http.Header)}
	if err := req.Write(conn); err != nil {
		return err
	}
	// The server speaks first only once it is connected, and SSH servers do at once: what
	// follows the answer must not be lost in a buffer.
	res, err := http.ReadResponse(bufio.NewReaderSize(&limited{in: &byteReader{conn}, left: maxErrorText}, 16), req)
	if err != nil {
		return err
	}
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("the proxy does not connect to %s: %s", addr, shorten(oneLine(res.Status)))
	}
	return nil
}

// byteReader reads one byte at a time, so that a reader in front of it never holds more
// than it needed.
type byteReader struct{ net.Conn }

// Read implements io.Reader.
func (r *byteReader) Read(p []byte) (int, error) {
	if len(p) > 1 {
		p = p[:1]
	}
	return r.Conn.Read(p)
}
