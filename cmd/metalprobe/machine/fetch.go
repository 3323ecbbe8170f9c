package machine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Limits on the search for an Ignition.
const (
	fetchLimit     = 20 * time.Second // for one attempt
	maxIgnition    = 4 << 20          // bytes
	maxFetchWait   = 30 * time.Second // between two attempts
	preferredFirst = 5 * time.Second  // head start of the card that the firmware booted from
)

// acceptIgnition is the Accept header that Ignition itself sends; any type is accepted.
const acceptIgnition = "application/vnd.coreos.ignition+json;version=3.4.0, */*;q=0.1"

// seeker looks for this machine's Ignition.
type seeker struct {
	url     string // from the kernel's command line; "" when each uplink has its own
	uplinks *uplinks
	get     func(ctx context.Context, u uplink, address string) ([]byte, error)
	log     *slog.Logger
}

// found is an Ignition and the uplink that it was fetched through.
type found struct {
	uplink  uplink
	content []byte
}

// seek tries all uplinks at once, until an Ignition was fetched through one of them or
// ctx ends.
func (s *seeker) seek(ctx context.Context) (found, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	results := make(chan found)
	tried := make(map[uplink]context.CancelFunc)
	for {
		list, changed := s.uplinks.list()
		present := make(map[uplink]bool)
		for _, u := range list {
			present[u] = true
			if tried[u] == nil {
				follow, stop := context.WithCancel(ctx)
				tried[u] = stop
				go s.follow(follow, u, results) // ends with ctx
			}
		}
		for u, stop := range tried {
			if !present[u] { // its address or boot file has changed
				stop()
				delete(tried, u)
			}
		}
		select {
		case <-ctx.Done():
			return found{}, ctx.Err()
		case f := <-results:
			return f, nil
		case <-changed:
		}
	}
}

// follow fetches through one uplink until that succeeds.
func (s *seeker) follow(ctx context.Context, u uplink, results chan<- found) {
	address := s.url
	if address == "" {
		address = u.url
	}
	log := s.log.With("interface", u.nic, "address", u.address.Addr())
	switch {
	case address == "":
		log.Warn("DHCP names no Ignition: is this server known to Ingot, does it wait for discovery, and is its DHCP server Ingot's?")
		return
	case !isURL(address):
		log.Warn("ignition.config.url on the kernel's command line is no http or https address")
		return
	case !u.reaches(address):
		return
	case !u.preferred && !pause(ctx, preferredFirst):
		return
	}
	for wait := time.Second; ; wait = min(2*wait, maxFetchWait) {
		content, err := s.get(ctx, u, address)
		if err == nil {
			select {
			case results <- found{u, content}:
			case <-ctx.Done():
			}
			return
		}
		if ctx.Err() != nil {
			return
		}
		log.Warn("Ignition is not fetched yet", "host", hostOf(address), "retryIn", wait, "err", err)
		if !pause(ctx, wait) {
			return
		}
	}
}

// reaches reports whether an address may belong to the uplink's family; a host name
// may belong to both.
func (u uplink) reaches(address string) bool {
	target, err := url.Parse(address)
	if err != nil {
		return false
	}
	a, err := netip.ParseAddr(target.Hostname())
	return err != nil || a.Unmap().Is4() == (u.family == 4)
}

// isURL reports whether text is a URL that can be fetched.
func isURL(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
}

// hostOf returns the only part of a URL that may be shown: its path may hold a token.
func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Host
}

// get fetches a URL through an uplink, and through no other card.
func get(ctx context.Context, u uplink, address string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchLimit)
	defer cancel()
	client := http.Client{
		Transport: &http.Transport{DialContext: u.dial, DisableKeepAlives: true},
		// An Ignition comes from the server that the machine was sent to, or not at all.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, errors.New("its URL cannot be used") // err would show it
	}
	request.Header.Set("Accept", acceptIgnition)
	request.Header.Set("User-Agent", "metalprobe")
	response, err := client.Do(request)
	if err != nil {
		if u, ok := errors.AsType[*url.Error](err); ok {
			err = u.Err // the rest would show the URL
		}
		return nil, fmt.Errorf("%w: %s", err, hint(err))
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("answered %s: %s", response.Status, statusHint(response.StatusCode))
	}
	content, err := io.ReadAll(io.LimitReader(response.Body, maxIgnition+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read: %w", err)
	case len(content) > maxIgnition:
		return nil, fmt.Errorf("it has more than %d bytes", maxIgnition)
	}
	return content, nil
}

// dial connects from the uplink's card, with its address family.
func (u uplink) dial(ctx context.Context, _, address string) (net.Conn, error) {
	dialer := net.Dialer{Control: func(_, _ string, c syscall.RawConn) error {
		var err error
		return errors.Join(c.Control(func(fd uintptr) { err = unix.BindToDevice(int(fd), u.nic) }), err)
	}}
	return dialer.DialContext(ctx, map[int]string{4: "tcp4", 6: "tcp6"}[u.family], address)
}

func hint(err error) string {
	var dns *net.DNSError
	switch {
	case errors.As(err, &dns):
		return "does DHCP name a DNS server that knows the host?"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "does Ingot's boot service listen there?"
	case errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.EHOSTUNREACH):
		return "does DHCP name the right router?"
	case strings.Contains(err.Error(), "certificate"):
		return "was the authority given to probeimage with --ca, and is this machine's clock right?"
	}
	return "is there a firewall between this machine and Ingot?"
}

// statusHint says what to check when the answer is a refusal.
func statusHint(code int) string {
	switch {
	case code == http.StatusNotFound:
		return "Ingot has no boot ticket for this server: was it armed, and has it expired?"
	case code == http.StatusUnauthorized, code == http.StatusForbidden:
		return "the boot ticket is not for this address: see ingot explain server"
	case code >= 300 && code < 400:
		return "redirects are not followed: give Ingot's own URL"
	case code >= 500:
		return "see Ingot's log"
	}
	return "is that Ingot's boot service?"
}
