package check

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"ingot/cmd/daemon/config"
	"ingot/gitsource"
)

// gitAccess checks whether the branch can be read, and the status branch written.
func gitAccess(ctx context.Context, o *config.Options) []Result {
	read, write := gitsource.CheckAccess(ctx, o.Git.URL, o.Git.Ref(), o.Git.Credentials(), wait)
	results := []Result{
		judged("git.url", read, "the repository can be read", "see git.url, git.branch and git.auth; the repository needs a first commit, which `ingot init` makes"),
		judged("status.branch", write, "the credentials may push", "Ingot writes the status branch "+o.Status.Branch+": give the credentials of git.auth permission to push"),
	}
	if path := o.Git.Path; read == nil && path != "" && path != "." {
		missing := gitsource.CheckPath(ctx, o.Git.URL, o.Git.Ref(), o.Git.Credentials(), path, wait)
		results = append(results, judged("git.path", missing, "the folder is there", "correct git.path, or create the folder with a first manifest"))
	}
	return results
}

// judged is ok without an error, and else wrong.
func judged(check string, err error, fine, fix string) Result {
	if err != nil {
		return wrong(check, err.Error(), fix)
	}
	return ok(check, fine)
}

// maxSkew is how far the clock may be from others' for certificates, tokens and signatures
// to be judged alike.
const maxSkew = 30 * time.Second

// clock compares the clock with that of the Git host, or of a registry.
func clock(ctx context.Context, o *config.Options) []Result {
	address := o.Git.URL
	if u, err := url.Parse(address); err != nil || u.Scheme != "http" && u.Scheme != "https" {
		return []Result{skipped("clock", "the Git host does not report the time: it is not reached by https")}
	}
	transport, err := o.Git.Credentials().Transport()
	if err != nil {
		return []Result{skipped("clock", err.Error())}
	}
	defer transport.CloseIdleConnections()
	before := time.Now()
	date, err := askDate(ctx, transport, address)
	if err != nil {
		return []Result{skipped("clock", "the Git host does not report the time: "+err.Error())}
	}
	return []Result{clockResult(before, time.Now(), date)}
}

// askDate returns the time that an HTTP server has (RFC 9110 §6.6.1).
func askDate(ctx context.Context, transport http.RoundTripper, address string) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	u, err := url.Parse(address)
	if err != nil {
		return time.Time{}, err
	}
	u.User, u.Path, u.RawQuery = nil, "/", ""
	req, err := http.NewRequestWithContext(ctx, http.MethodHead, u.String(), nil)
	if err != nil {
		return time.Time{}, err
	}
	resp, err := transport.RoundTrip(req) // a redirect has the time as well
	if err != nil {
		return time.Time{}, err
	}
	defer resp.Body.Close()
	return http.ParseTime(resp.Header.Get("Date"))
}

// clockResult judges the clock by the date that came between two readings of it. A date has
// whole seconds.
func clockResult(before, after, date time.Time) Result {
	skew := time.Duration(0)
	switch {
	case date.Before(before):
		skew = date.Sub(before) + time.Second
	case date.After(after):
		skew = date.Sub(after)
	}
	skew = skew.Round(time.Second)
	if skew.Abs() <= maxSkew {
		return ok("clock", "agrees with the Git host's")
	}
	direction := "behind"
	if skew < 0 {
		direction = "ahead of"
	}
	return wrong("clock", fmt.Sprintf("is %s %s the Git host's", strings.TrimPrefix(skew.String(), "-"), direction),
		"set the clock, and keep it right by NTP: systemctl enable --now systemd-timesyncd")
}
