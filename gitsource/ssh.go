package gitsource

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-git/go-git/v5/plumbing/transport"
	gitssh "github.com/go-git/go-git/v5/plumbing/transport/ssh"
	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
	"golang.org/x/net/proxy"
)

// sshAuth returns the key to log in with, and accepts the host keys that
// known_hosts holds and no other.
func sshAuth(endpoint *transport.Endpoint, files Auth) (transport.AuthMethod, error) {
	pem, err := readSmall(files.SSHKeyFile)
	if err != nil {
		return nil, fmt.Errorf("read SSH key: %w", err)
	}
	passphrase, err := credential(files.PasswordFile)
	if err != nil {
		return nil, err
	}
	user := endpoint.User
	if user == "" {
		user = "git"
	}
	keys, err := gitssh.NewPublicKeys(user, pem, passphrase)
	if err != nil {
		return nil, fmt.Errorf("SSH key %s: %w", files.SSHKeyFile, err)
	}
	db, err := gitssh.NewKnownHostsDb(files.KnownHostsFile)
	if err != nil {
		return nil, fmt.Errorf("known hosts: %w", err)
	}
	// Without the algorithms of the keys that are known, the server would choose
	// which of its keys to show, and a known_hosts that holds another one of its
	// keys would not match.
	keys.HostKeyAlgorithms = db.HostKeyAlgorithms(hostPort(endpoint))
	keys.HostKeyCallback = explainHostKey(db.HostKeyCallback(), files.KnownHostsFile)
	return keys, nil
}

// explainHostKey makes a refusal say which keys are known and which was offered.
func explainHostKey(check ssh.HostKeyCallback, file string) ssh.HostKeyCallback {
	return func(host string, addr net.Addr, key ssh.PublicKey) error {
		err := check(host, addr, key)
		if err == nil {
			return nil
		}
		return &failure{kind: failureHostKey, err: hostKeyError(host, file, key, err)}
	}
}

func hostKeyError(host, file string, offered ssh.PublicKey, err error) error {
	offer := offered.Type() + " " + ssh.FingerprintSHA256(offered)
	var mismatch *knownhosts.KeyError
	if !errors.As(err, &mismatch) {
		return fmt.Errorf("the host key of %s, %s, is not accepted: %w", host, offer, err)
	}
	if len(mismatch.Want) == 0 {
		return fmt.Errorf("%s is not in %s; it offers %s: if that is its key, add it there", host, file, offer)
	}
	var known []string
	for _, k := range mismatch.Want {
		known = append(known, k.Key.Type()+" "+ssh.FingerprintSHA256(k.Key))
	}
	return fmt.Errorf("%s offers %s, but %s expects %s: somebody may be in between", host, offer, file, strings.Join(known, " or "))
}

// deadlineScheme is the scheme of the made-up proxy through which go-git dials.
const deadlineScheme = "ingot-deadline"

// go-git's SSH client knows nothing of contexts, and its timeout ends with the
// TCP handshake, so a server that falls silent would hang it for ever. The one
// place where it lets others in is the dialer of a proxy: ours dials directly and
// ends the connection with the context of the operation.
var (
	dialContexts  sync.Map // number → deadlineDialer
	dialSerial    atomic.Int64
	_             = registerDeadlineDialer()
	errNoDeadline = errors.New("dial without a deadline")
)

func registerDeadlineDialer() struct{} {
	proxy.RegisterDialerType(deadlineScheme, func(u *url.URL, _ proxy.Dialer) (proxy.Dialer, error) {
		d, ok := dialContexts.Load(u.Hostname())
		if !ok {
			return nil, errNoDeadline
		}
		return d.(deadlineDialer), nil
	})
	return struct{}{}
}

// dialWithin makes endpoint's connection end with ctx. The caller calls done once the
// connection is open or failed.
func dialWithin(ctx context.Context, endpoint *transport.Endpoint, received *atomic.Int64) (done func()) {
	id := strconv.FormatInt(dialSerial.Add(1), 10)
	dialContexts.Store(id, deadlineDialer{ctx, received})
	endpoint.Proxy.URL = deadlineScheme + "://" + id
	return func() { dialContexts.Delete(id) }
}

type deadlineDialer struct {
	ctx      context.Context //nolint:containedctx // the dialer lives for one operation, and ctx is that operation's
	received *atomic.Int64
}

// Dial implements proxy.Dialer.
func (d deadlineDialer) Dial(network, addr string) (net.Conn, error) {
	return d.DialContext(d.ctx, network, addr)
}

// DialContext implements proxy.ContextDialer. The context it is given is
// go-git's own, which never ends.
func (d deadlineDialer) DialContext(_ context.Context, network, addr string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(d.ctx, network, addr)
	if err != nil {
		return nil, err
	}
	c := &deadlineConn{Conn: conn, from: timedReader{conn, d.received}}
	c.stop = context.AfterFunc(d.ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	return c, nil
}

// deadlineConn lets go of its context when it is closed.
type deadlineConn struct {
	net.Conn
	from timedReader
	stop func() bool
}

// Read implements net.Conn.
func (c *deadlineConn) Read(p []byte) (int, error) { return c.from.Read(p) }

// Close implements net.Conn.
func (c *deadlineConn) Close() error {
	c.stop()
	return c.Conn.Close()
}
