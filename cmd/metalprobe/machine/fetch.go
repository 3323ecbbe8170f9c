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

// Bounds on the search for an Ignition.
const (
	fetchLimit       = 20 * time.Second // for one attempt
	maxIgnition      = 4 << 20          // bytes
	longestFetchWait = 30 * time.Second
	preferredFirst   = 5 * time.Second // that the card which booted is ahead of others
)

// acceptIgnition is the Accept header of Ignition itself; everything is taken.
const acceptIgnition = "application/vnd.coreos.ignition+json;version=3.4.0, */*;q=0.1"

// seeker looks for this machine's Ignition.
type seeker struct {
	url  string // of the kernel's command line, "" when each way has its own
	ways *ways
	get  func(ctx context.Context, w way, address string) ([]byte, error)
	log  *slog.Logger
}

// found is an Ignition and the way that it came by.
type found struct {
	way     way
	content []byte
}

// seek tries all ways at once, until one leads to an Ignition or ctx ends.
func (s *seeker) seek(ctx context.Context) (found, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	results := make(chan found)
	tried := make(map[way]context.CancelFunc)
	for {
		list, changed := s.ways.list()
		present := make(map[way]bool)
		for _, w := range list {
			present[w] = true
			if tried[w] == nil {
				follow, stop := context.WithCancel(ctx)
				tried[w] = stop
				go s.follow(follow, w, results) // ends with ctx
			}
		}
		for w, stop := range tried {
			if !present[w] { // another address, or another boot file
				stop()
				delete(tried, w)
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

// follow fetches by one way until it works.
func (s *seeker) follow(ctx context.Context, w way, results chan<- found) {
	address := s.url
	if address == "" {
		address = w.url
	}
	log := s.log.With("interface", w.nic, "address", w.address.Addr())
	switch {
	case address == "":
		log.Warn("the network tells no Ignition: is this server known to Ingot, does it wait for discovery, and is its DHCP Ingot's?")
		return
	case !isURL(address):
		log.Warn("ignition.config.url on the kernel's command line is no http or https address")
		return
	case !w.reaches(address):
		return
	case !w.preferred && !pause(ctx, preferredFirst):
		return
	}
	for wait := time.Second; ; wait = min(2*wait, longestFetchWait) {
		content, err := s.get(ctx, w, address)
		if err == nil {
			select {
			case results <- found{w, content}:
			case <-ctx.Done():
			}
			return
		}
		if ctx.Err() != nil {
			return
		}
		log.Warn("Ignition is not fetched yet", "host", hostOf(address), "again", wait, "err", err)
		if !pause(ctx, wait) {
			return
		}
	}
}

// reaches reports whether an address can be of the way's family; a name can be of
// both.
func (w way) reaches(address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	a, err := netip.ParseAddr(u.Hostname())
	return err != nil || a.Unmap().Is4() == (w.family == 4)
}

// isURL reports whether text is an address that can be fetched.
func isURL(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
}

// hostOf is what of an address may be shown: its path may hold a token.
func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Host
}

// get fetches an address by a way, and by no other card.
func get(ctx context.Context, w way, address string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchLimit)
	defer cancel()
	client := http.Client{
		Transport: &http.Transport{DialContext: w.dial, DisableKeepAlives: true},
		// An Ignition comes from whom the machine was sent to, or not at all.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, errors.New("its address cannot be used") // err shows it
	}
	request.Header.Set("Accept", acceptIgnition)
	request.Header.Set("User-Agent", "metalprobe")
	response, err := client.Do(request)
	if err != nil {
		if u, ok := errors.AsType[*url.Error](err); ok {
			err = u.Err // the rest shows the address
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

// dial connects from the way's card and in its family.
func (w way) dial(ctx context.Context, _, address string) (net.Conn, error) {
	dialer := net.Dialer{Control: func(_, _ string, c syscall.RawConn) error {
		var err error
		return errors.Join(c.Control(func(fd uintptr) { err = unix.BindToDevice(int(fd), w.nic) }), err)
	}}
	return dialer.DialContext(ctx, map[int]string{4: "tcp4", 6: "tcp6"}[w.family], address)
}

// hint says what to look at when there is no answer.
func hint(err error) string {
	var dns *net.DNSError
	switch {
	case errors.As(err, &dns):
		return "does DHCP tell a DNS server that knows the name?"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "does Ingot's boot service listen there?"
	case errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.EHOSTUNREACH):
		return "does DHCP tell the right router?"
	case strings.Contains(err.Error(), "certificate"):
		return "was the authority given to probeimage with --ca, and is this machine's clock right?"
	}
	return "is there a firewall between this machine and Ingot?"
}

// statusHint says what to look at when the answer is a refusal.
func statusHint(code int) string {
	switch {
	case code == http.StatusNotFound:
		return "Ingot has no boot ticket for this server: was it armed, and has it not run out?"
	case code == http.StatusUnauthorized, code == http.StatusForbidden:
		return "the boot ticket is not for this address: see ingot explain server"
	case code >= 300 && code < 400:
		return "redirects are not followed: give Ingot's own address"
	case code >= 500:
		return "see Ingot's log"
	}
	return "is that Ingot's boot service?"
}
