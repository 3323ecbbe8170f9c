package daemon

import (
	"encoding"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"ingot/bootsvc/dhcp"
	"ingot/bootsvc/netboot"
	"ingot/model"
)

// Options are all settings of the daemon, as they stand in its configuration
// file. Every key can be set in the environment as well, see LoadOptions.
// Secrets are never settings: settings name the files that hold them.
type Options struct {
	Git       GitOptions       `json:"git"`
	Status    StatusOptions    `json:"status"`
	Redis     RedisOptions     `json:"redis"`
	State     StateOptions     `json:"state"`
	BMC       BMCOptions       `json:"bmc"`
	Discovery DiscoveryOptions `json:"discovery"`
	Cleanup   CleanupOptions   `json:"cleanup"`
	Guard     GuardOptions     `json:"guard"`
	Boot      BootOptions      `json:"boot"`
	Registry  RegistryOptions  `json:"registry"`
	Metadata  MetadataOptions  `json:"metadata"`
	Events    EventsOptions    `json:"events"`
	Webhook   WebhookOptions   `json:"webhook"`
	Admin     ListenOptions    `json:"admin"`
	// DHCP are the networks to serve leases and boot files on.
	DHCP []dhcp.Network `json:"dhcp"`
	TFTP ListenOptions  `json:"tftp"`
	// Resync is how often at least everything is looked at anew.
	Resync time.Duration `json:"resync"`

	// TakeOver takes over from another Ingot without asking it whether it lives. It is
	// set on the command line, for one start.
	TakeOver bool `json:"-"`
	// Tuning is set by the demo and by tests, never by a file.
	Tuning Tuning `json:"-"`
}

// GitOptions say where the desired state is.
type GitOptions struct {
	URL                   string        `json:"url"` // https, http, ssh, user@host:path or a local path
	Branch                string        `json:"branch"`
	Path                  string        `json:"path"` // folder inside the repository
	Interval              time.Duration `json:"interval"`
	Auth                  GitAuth       `json:"auth"`
	Verify                GitVerify     `json:"verify"`
	Strict                bool          `json:"strict"` // one bad file rejects the whole revision
	AllowPlaintextSecrets bool          `json:"allowPlaintextSecrets"`
	AgeKeyFile            string        `json:"ageKeyFile"`
	// Tenants say what the files below a folder may define; none = anything, anywhere.
	Tenants model.Tenants `json:"tenants"`
}

// GitAuth names the files that hold what the repository asks for.
type GitAuth struct {
	UsernameFile   string `json:"usernameFile"`
	PasswordFile   string `json:"passwordFile"` // a password or a token
	SSHKeyFile     string `json:"sshKeyFile"`
	KnownHostsFile string `json:"knownHostsFile"`
	CAFile         string `json:"caFile"`
}

// GitVerify says which signatures commits must carry.
type GitVerify struct {
	Mode string `json:"mode"`
	Keys string `json:"keys"` // folder of public keys
}

// StatusOptions say how the status branch is written.
type StatusOptions struct {
	Branch   string        `json:"branch"`
	Interval time.Duration `json:"interval"` // at most one commit per interval, but for what waits for it
	// MirrorFirst makes what touches a bound server wait until the branch shows it.
	MirrorFirst bool `json:"mirrorFirst"`
	// TakeOverAfter is how long this Ingot must have been silent before another one may
	// take over from it unasked; 0 = never.
	TakeOverAfter  time.Duration `json:"takeOverAfter"`
	AuthorName     string        `json:"authorName"`
	AuthorEmail    string        `json:"authorEmail"`
	SigningKeyFile string        `json:"signingKeyFile"`
}

// RedisOptions say where observations and records are kept. Without URL they
// are in a file in state.dir.
type RedisOptions struct {
	URL         string `json:"url"`
	SealKeyFile string `json:"sealKeyFile"`
}

// StateOptions say where the daemon keeps what it needs between two runs.
type StateOptions struct {
	Dir string `json:"dir"`
}

// BMCOptions say how BMCs are spoken to.
type BMCOptions struct {
	CAFile string `json:"caFile"`
	// Networks are where BMCs are; none = at any address but loopback, link-local and
	// metadata addresses, and by https alone.
	Networks          model.BMCNetworks `json:"networks"`
	RequestsPerSecond float64           `json:"requestsPerSecond"` // of one BMC
	MaxInFlight       int               `json:"maxInFlight"`       // of one BMC
	PowerOffGrace     time.Duration     `json:"powerOffGrace"`
	PollInterval      time.Duration     `json:"pollInterval"`
}

// DiscoveryOptions say how an unknown server is looked into.
type DiscoveryOptions struct {
	Image                string        `json:"image"` // OCI reference of the probe image
	IgnitionTemplateFile string        `json:"ignitionTemplateFile"`
	Timeout              time.Duration `json:"timeout"`
	Attempts             int           `json:"attempts"`
	MACPrefixesFile      string        `json:"macPrefixesFile"`
}

// CleanupOptions say how a released server is wiped.
type CleanupOptions struct {
	Mode  string `json:"mode"`  // none, quick or secure
	Image string `json:"image"` // OCI reference; discovery.image when empty
}

// GuardOptions bound what commits may do to the fleet within a time.
type GuardOptions struct {
	MaxDisruptions int `json:"maxDisruptions"`
	// MaxPowerDisruptions is how many bound servers may be powered off or restarted.
	MaxPowerDisruptions int `json:"maxPowerDisruptions"`
	// Window is the time within which both are counted.
	Window                    time.Duration `json:"window"`
	MaxConcurrentReprovisions int           `json:"maxConcurrentReprovisions"`
	MaxConcurrentPowerOns     int           `json:"maxConcurrentPowerOns"`
}

// BootOptions are those of the service that machines meet when they boot.
type BootOptions struct {
	Listen            string   `json:"listen"`
	URL               string   `json:"url"` // as servers reach it; derived when empty
	Architectures     []string `json:"architectures"`
	AllowedRegistries []string `json:"allowedRegistries"` // host or host:port; empty = any
	// InsecureRegistries, host or host:port, are spoken to without TLS. Those on this
	// machine always are.
	InsecureRegistries []string `json:"insecureRegistries"`
	// CredentialsFile is a docker config.json with what registries ask for.
	CredentialsFile string   `json:"credentialsFile"`
	CacheDir        string   `json:"cacheDir"` // state.dir/images when empty
	CacheSize       ByteSize `json:"cacheSize"`
	// MaxConcurrentDownloads bounds the layers that are fetched from registries at the
	// same time.
	MaxConcurrentDownloads int `json:"maxConcurrentDownloads"`
	// BindTickets says who may use a server's boot ticket: machine, first-client or
	// nothing.
	BindTickets string `json:"bindTickets"`
	// LoaderDirs are where iPXE's binaries are, the first folder that has one wins.
	LoaderDirs []string `json:"loaderDirs"`
}

// RegistryOptions are those of the endpoint that probes report to.
type RegistryOptions struct {
	Listen       string `json:"listen"`
	URL          string `json:"url"` // as servers reach it; derived when empty
	RequireToken bool   `json:"requireToken"`
}

// MetadataOptions are those of the metadata service.
type MetadataOptions struct {
	Listen string `json:"listen"`
	// Static is told to every server, under what its labels and annotations say.
	Static map[string]string `json:"static"`
}

// ListenOptions are those of a part that has nothing to set but its listener:
// host:port, or empty for off.
type ListenOptions struct {
	Listen string `json:"listen"`
}

// EventsOptions are those of the listener for Redfish events.
type EventsOptions struct {
	Listen string `json:"listen"`
	URL    string `json:"url"`
}

// WebhookOptions are those of the listener for pushes.
type WebhookOptions struct {
	Listen     string `json:"listen"`
	SecretFile string `json:"secretFile"`
}

// Tuning is what the demo and tests change and nobody else should.
type Tuning struct {
	// Fast shortens every wait that is there out of care for real machines.
	Fast bool
}

// DefaultOptions returns the defaults. Only git.url is left to be set.
func DefaultOptions() Options {
	return Options{
		Git:       GitOptions{Branch: "main", Path: ".", Interval: time.Minute, Verify: GitVerify{Mode: "none"}, Tenants: model.Tenants{}},
		Status:    StatusOptions{Branch: "status", Interval: 30 * time.Second, MirrorFirst: true, AuthorName: "Ingot", AuthorEmail: "ingot@localhost"},
		State:     StateOptions{Dir: "/var/lib/ingot"},
		BMC:       BMCOptions{Networks: model.BMCNetworks{}, RequestsPerSecond: 5, MaxInFlight: 2, PowerOffGrace: 5 * time.Minute, PollInterval: time.Minute},
		Discovery: DiscoveryOptions{Timeout: 30 * time.Minute, Attempts: 3},
		Cleanup:   CleanupOptions{Mode: "quick"},
		Guard:     GuardOptions{MaxDisruptions: 3, MaxPowerDisruptions: 10, Window: time.Hour, MaxConcurrentReprovisions: 1, MaxConcurrentPowerOns: 10},
		Boot: BootOptions{
			Listen: ":8082", Architectures: []string{"amd64", "arm64"}, AllowedRegistries: []string{}, InsecureRegistries: []string{},
			CacheSize: 20 << 30, MaxConcurrentDownloads: 16, BindTickets: "machine",
			LoaderDirs: slices.Clone(netboot.DefaultLoaderDirs),
		},
		Registry: RegistryOptions{Listen: ":10000", RequireToken: true},
		Metadata: MetadataOptions{Static: map[string]string{}},
		Admin:    ListenOptions{Listen: "127.0.0.1:8080"},
		DHCP:     []dhcp.Network{},
		Resync:   2 * time.Minute,
	}
}

// ByteSize is an amount of storage in bytes, written as "20GiB".
type ByteSize int64

var (
	_ encoding.TextUnmarshaler = (*ByteSize)(nil)
	_ encoding.TextMarshaler   = ByteSize(0)
)

// byteUnits are the units of a ByteSize, the longest suffix first.
var byteUnits = []struct {
	suffix string
	bytes  int64
}{
	{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40},
	{"kB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12},
	{"B", 1}, {"", 1},
}

// UnmarshalText implements encoding.TextUnmarshaler: a whole number and a unit
// of kB, MB, GB, TB or KiB, MiB, GiB, TiB; bytes without one.
func (b *ByteSize) UnmarshalText(text []byte) error {
	s := strings.TrimSpace(string(text))
	for _, unit := range byteUnits {
		digits, ok := strings.CutSuffix(s, unit.suffix)
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(strings.TrimSpace(digits), 10, 64)
		if err != nil || n < 0 || n > int64(1<<62)/unit.bytes {
			break
		}
		*b = ByteSize(n * unit.bytes)
		return nil
	}
	return fmt.Errorf("%q is no size; write a whole number and a unit (MiB, GiB, TiB), such as 20GiB", s)
}

// MarshalText implements encoding.TextMarshaler.
func (b ByteSize) MarshalText() ([]byte, error) { return []byte(b.String()), nil }

// String returns the size with the largest binary unit that divides it.
func (b ByteSize) String() string {
	for i := 3; i >= 0; i-- {
		if unit := byteUnits[i]; b != 0 && int64(b)%unit.bytes == 0 {
			return strconv.FormatInt(int64(b)/unit.bytes, 10) + unit.suffix
		}
	}
	return strconv.FormatInt(int64(b), 10) + "B"
}
