package config

import (
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"ingot/bootsvc/netboot"
	"ingot/model"
)

// checks collects what is wrong with settings.
type checks []model.Problem

func (c *checks) wrong(path, format string, args ...any) {
	*c = append(*c, model.Problem{Severity: model.SeverityError, Field: path, Message: fmt.Sprintf(format, args...)})
}

// Validate returns what is wrong with o: the key, its value, what is allowed and
// what to do. It looks at values only, not at the machine.
func (o *Options) Validate() []model.Problem {
	var c checks
	c.git(o)
	c.forge(o)
	c.tenants(o)
	c.numbers(o)
	c.names(o)
	c.listeners(o)
	c.admin(&o.Admin)
	c.networks(o)
	c.boot(o)
	return c
}

func (c *checks) numbers(o *Options) {
	c.lasts("git.interval", o.Git.Interval, 100*time.Millisecond)
	if keep := time.Duration(o.Status.Keep); keep != 0 && keep < day {
		c.wrong("status.keep", "%s is not allowed: must be 1d or more, such as 90d, or 0 to keep all of the history", o.Status.Keep)
	}
	c.lasts("bmc.powerOffGrace", o.BMC.PowerOffGrace, time.Second)
	c.lasts("discovery.timeout", o.Discovery.Timeout, time.Second)
	c.atLeast("guard.maxDisruptions", o.Guard.MaxDisruptions, 0)
	c.atLeast("guard.maxPowerDisruptions", o.Guard.MaxPowerDisruptions, 0)
	c.lasts("guard.window", o.Guard.Window, time.Second)
	c.atLeast("guard.maxConcurrentReprovisions", o.Guard.MaxConcurrentReprovisions, 0)
	c.atLeast("guard.maxConcurrentPowerOns", o.Guard.MaxConcurrentPowerOns, 1)
	// written so that NaN is refused as well
	if rate := o.BMC.RequestsPerSecond; !(rate > 0 && rate <= 1000) {
		c.wrong("bmc.requestsPerSecond", "%v is not allowed: must be more than 0 and at most 1000, such as 5", rate)
	}
	if o.Boot.CacheSize < 1<<20 {
		c.wrong("boot.cacheSize", "%s is not allowed: must be 1MiB or more, such as 20GiB", o.Boot.CacheSize)
	}
}

// lasts refuses what is shorter than least: 5ms in place of 5m asks without a pause, or waits for
// nothing.
func (c *checks) lasts(key string, d, least time.Duration) {
	if d < least {
		c.wrong(key, "%s is not allowed: must be %s or more, such as 60s", d, least)
	}
}

func (c *checks) atLeast(key string, n, least int) {
	if n < least {
		c.wrong(key, "%d is not allowed: must be %d or more", n, least)
	}
}

func (c *checks) names(o *Options) {
	modes := []string{model.CleanupNone, model.CleanupQuick, model.CleanupSecure}
	if !slices.Contains(modes, o.Cleanup.Mode) {
		c.wrong("cleanup.mode", "%q is not allowed: must be one of %s", o.Cleanup.Mode, strings.Join(modes, ", "))
	}
	if o.State.Dir == "" {
		c.wrong("state.dir", "is empty; name a folder that outlives restarts, such as /var/lib/ingot")
	}
	c.images(o)
	for _, r := range o.Boot.Registries {
		if _, err := model.ParseRegistry(r.Host); err != nil {
			c.wrong("boot.registries", "%v; write {host: registry.example.com:5000}", err)
		}
	}
	if _, err := netboot.ParseAddressRule(o.Boot.BindTickets); err != nil {
		c.wrong("boot.bindTickets", "%v", err)
	}
	for i, n := range o.BMC.Networks {
		if _, err := model.ParseNetwork(n.Prefix.String()); err != nil {
			c.wrong(fmt.Sprintf("bmc.networks[%d].prefix", i), "%v", err)
		}
	}
	if !authorForm.MatchString(o.Status.Author) {
		c.wrong("status.author", "%q is not allowed: must be NAME <EMAIL>, the author of the commits on the status branch", o.Status.Author)
	}
	c.redis(o.Redis)
	c.httpURL("boot.url", o.Boot.URL)
	c.httpURL("registry.url", o.Registry.URL)
}

// redis checks how Redis is reached. It repeats no address, which may contain a password.
func (c *checks) redis(r Redis) {
	scheme, rest, ok := strings.Cut(r.URL, "://")
	if r.URL != "" && (!ok || scheme != "unix" && !strings.Contains(scheme, "redis")) {
		c.wrong("redis.url", "is no Redis address; write it as redis://host:6379/0, rediss://host:6379/0 or unix:///path/to/socket, or "+
			"leave it empty for the embedded store")
	}
	if _, password, _ := strings.Cut(rest[:max(0, strings.LastIndexByte(rest, '@'))], ":"); password != "" {
		c.wrong("redis.url", "holds a password; take it out, write it into a file and name that in redis.passwordFile")
	}
	if r.URL == "" && r.PasswordFile != "" {
		c.wrong("redis.passwordFile", "is set though redis.url is empty, so there is no Redis: set redis.url, or take this out")
	}
	if r.CAFile != "" && !strings.HasPrefix(scheme, "rediss") {
		c.wrong("redis.caFile", "is set though redis.url is not one with TLS: write it as rediss://host:6379/0, or take this out")
	}
}

// images checks where images are kept, and those that the configuration itself names.
func (c *checks) images(o *Options) {
	for _, dir := range o.Boot.ImageDirs {
		if !filepath.IsAbs(dir) || filepath.Clean(dir) != dir {
			c.wrong("boot.imageDirs", "%q is not allowed: must be the whole path of a folder, such as /srv/images", dir)
		}
	}
	if image := o.Discovery.Image; image != "" {
		r, err := model.ParseImageReference(image)
		if err == nil && r.Layout != "" && !slices.ContainsFunc(o.Boot.ImageDirs, func(dir string) bool { return within(r.Layout, dir) }) {
			err = errors.New("it is in no folder of boot.imageDirs")
		}
		if err != nil {
			c.wrong("discovery.image", "%q is not allowed: %v; write it as registry.example.com/name:tag, or as oci:/folder:tag in a folder of boot.imageDirs", image, err)
		}
	}
}

// authorForm matches an author that Git accepts.
var authorForm = regexp.MustCompile(`^([^<>\s\x00][^<>\n\x00]*) <([^<>\s\x00]+)>$`)

// AuthorName returns the name and the address of status.author. Validate has refused any other form.
func (s Status) AuthorName() (name, email string) {
	if m := authorForm.FindStringSubmatch(s.Author); m != nil {
		return m[1], m[2]
	}
	return "", ""
}

// isHTTPURL reports whether address is a URL that paths can be added to.
func isHTTPURL(address string) bool {
	u, err := url.Parse(address)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && u.RawQuery == "" && u.Fragment == "" && u.User == nil
}

func (c *checks) httpURL(key, address string) {
	if address != "" && !isHTTPURL(address) {
		c.wrong(key, "%q is not allowed: must be http:// or https:// with a host, such as http://10.0.0.1:8082; leave it empty to derive "+
			"it from the listener", address)
	}
}
