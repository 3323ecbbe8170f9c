package store

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// redisForms is what redis.url may look like, for errors. The URL itself is never
// in an error, for it may hold a password.
const redisForms = "redis://[user@]host:port[/db], rediss://…, unix:///path, " +
	"redis+sentinel://host1,host2/master[/db] or redis-cluster://host1,host2 (rediss+sentinel, rediss-cluster for TLS)"

// readTimeout bounds reading or writing everything.
const readTimeout = 30 * time.Second

type redisScheme struct{ tls, unix, sentinel, cluster bool }

var redisSchemes = map[string]redisScheme{
	"redis":           {},
	"rediss":          {tls: true},
	"unix":            {unix: true},
	"redis+sentinel":  {sentinel: true},
	"redis-sentinel":  {sentinel: true},
	"rediss+sentinel": {sentinel: true, tls: true},
	"rediss-sentinel": {sentinel: true, tls: true},
	"redis+cluster":   {cluster: true},
	"redis-cluster":   {cluster: true},
	"rediss+cluster":  {cluster: true, tls: true},
	"rediss-cluster":  {cluster: true, tls: true},
}

// parseRedisURL turns redis.url into options, without connecting. go-redis' own parsers
// are not used: their errors show the password, they let anybody turn off that
// certificates are verified (skip_verify), and they verify every server of a Sentinel's
// against the name of the first host.
func parseRedisURL(raw string) (*redis.UniversalOptions, error) {
	name, rest, found := strings.Cut(raw, "://")
	scheme, known := redisSchemes[name]
	if !found || !known {
		return nil, errors.New("redis.url: the scheme is not known; allowed are " + redisForms)
	}
	rest, query, _ := strings.Cut(rest, "?")
	o := redisDefaults()
	if at := strings.LastIndex(rest, "@"); at >= 0 {
		if err := setUser(o, rest[:at]); err != nil {
			return nil, err
		}
		rest = rest[at+1:]
	}
	if err := setQuery(o, query); err != nil {
		return nil, err
	}
	if scheme.unix {
		o.Addrs = []string{rest}
		return o, nil
	}
	return o, setHosts(o, scheme, rest)
}

// redisDefaults are the settings that do not come from the URL.
func redisDefaults() *redis.UniversalOptions {
	return &redis.UniversalOptions{
		Protocol:              3,
		ContextTimeoutEnabled: true, // off by default: a context's deadline would not count
		PipelinePoolSize:      -1,   // no second pool of connections
		DialTimeout:           2 * time.Second,
		ReadTimeout:           readTimeout, // contexts set shorter ones
		DialerRetries:         1,
		// Otherwise a command that only Redis Enterprise knows is sent to each server.
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
}

func setUser(o *redis.UniversalOptions, userinfo string) (err error) {
	user, password, _ := strings.Cut(userinfo, ":")
	if password != "" {
		return errors.New("redis.url: holds a password: put it into a file and name that as redis.passwordFile")
	}
	if o.Username, err = url.PathUnescape(user); err != nil {
		return errors.New("redis.url: the user has a % that is not followed by two hexadecimal digits: write it %25")
	}
	o.SentinelUsername = o.Username
	return nil
}

func setQuery(o *redis.UniversalOptions, query string) error {
	values, err := url.ParseQuery(query)
	if err != nil {
		return errors.New("redis.url: what follows the ? cannot be read")
	}
	for name := range values {
		switch name {
		case "db":
			err = setDB(o, values.Get(name))
		case "sentinelAuth": // "no": user and password are for Redis only
			o.SentinelUsername = ""
		default:
			err = fmt.Errorf("redis.url: option %q is not known; db=N and sentinelAuth=no are", name)
		}
	}
	return err
}

// setHosts reads "host1:port,host2/path".
func setHosts(o *redis.UniversalOptions, scheme redisScheme, rest string) error {
	hosts, path, _ := strings.Cut(rest, "/")
	port := "6379"
	if scheme.sentinel {
		port = "26379"
		o.MasterName, path, _ = strings.Cut(path, "/")
		if o.MasterName == "" {
			return errors.New("redis.url: the name of the Sentinel master is missing: redis+sentinel://host1,host2/master")
		}
	}
	for host := range strings.SplitSeq(hosts, ",") {
		o.Addrs = append(o.Addrs, withPort(host, port))
	}
	single := !scheme.sentinel && !scheme.cluster
	if single && len(o.Addrs) > 1 {
		return errors.New("redis.url: several hosts; allowed with redis+sentinel:// and redis-cluster://")
	}
	o.IsClusterMode = scheme.cluster
	if scheme.tls {
		o.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12}
		if single {
			o.TLSConfig.ServerName, _, _ = net.SplitHostPort(o.Addrs[0])
		}
	}
	if path == "" {
		return nil
	}
	if scheme.cluster {
		return errors.New("redis.url: a cluster has no databases; leave the path out")
	}
	return setDB(o, path)
}

func setDB(o *redis.UniversalOptions, db string) (err error) {
	if o.DB, err = strconv.Atoi(db); err != nil || o.DB < 0 {
		return errors.New("redis.url: the database must be a number")
	}
	return nil
}

// withPort fills in what is missing of an address.
func withPort(host, port string) string {
	if _, _, err := net.SplitHostPort(host); err == nil {
		return host
	}
	host = strings.Trim(host, "[]")
	if host == "" {
		host = "localhost"
	}
	return net.JoinHostPort(host, port)
}

// checkExposure refuses connections over a network that others could read, or
// to a Redis that others could write to.
func checkExposure(o *redis.UniversalOptions) error {
	for _, addr := range o.Addrs {
		if isLocal(addr) || (o.TLSConfig != nil && o.Password != "") {
			continue
		}
		return fmt.Errorf("redis.url: %s is on the network, so a password and TLS are needed: rediss://user@host, and redis.passwordFile", addr)
	}
	return nil
}

func isLocal(addr string) bool {
	if strings.HasPrefix(addr, "/") {
		return true
	}
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	return host == "localhost" || net.ParseIP(host).IsLoopback()
}
