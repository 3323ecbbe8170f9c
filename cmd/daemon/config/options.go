package config

import (
	"slices"
	"time"

	"ingot/bootsvc/dhcp"
	"ingot/bootsvc/netboot"
	"ingot/bootsvc/oci"
	"ingot/gitsource"
	"ingot/model"
)

// Options are all settings of the daemon, as they stand in its configuration file.
type Options struct {
	Git       Git       `json:"git"`
	Status    Status    `json:"status"`
	Redis     Redis     `json:"redis"`
	State     State     `json:"state"`
	BMC       BMC       `json:"bmc"`
	Discovery Discovery `json:"discovery"`
	Cleanup   Cleanup   `json:"cleanup"`
	Guard     Guard     `json:"guard"`
	Power     Power     `json:"power"`
	Boot      Boot      `json:"boot"`
	Registry  Registry  `json:"registry"`
	Metadata  Metadata  `json:"metadata"`
	Webhook   Webhook   `json:"webhook"`
	// SecretFiles is a folder with Secrets and BMCSecrets that do not stand in Git.
	SecretFiles string `json:"secretFiles"`
	Admin       Admin  `json:"admin"`
	// DHCP are the networks to serve leases and boot files on.
	DHCP []dhcp.Network `json:"dhcp"`
	TFTP TFTP           `json:"tftp"`

	// TakeOver is the ID of the process that may be taken over from, though it may be alive. It is
	// set on the command line, for one start.
	TakeOver string `json:"-"`
	// Tuning is set by the demo, benchmarks and tests, never by a file.
	Tuning Tuning `json:"-"`
}

// Git says where the desired state is.
type Git struct {
	URL                   string        `json:"url"`    // https, http, ssh, user@host:path or a local path
	Branch                string        `json:"branch"` // or one of the next two
	Tag                   string        `json:"tag"`
	Semver                string        `json:"semver"` // a range of versions, of which the newest tag counts
	Path                  string        `json:"path"`   // folder inside the repository
	Interval              time.Duration `json:"interval"`
	Auth                  GitAuth       `json:"auth"`
	Verify                GitVerify     `json:"verify"`
	AllowPlaintextSecrets bool          `json:"allowPlaintextSecrets"`
	AgeKeyFile            string        `json:"ageKeyFile"` // age identities for files encrypted with SOPS
	CommitStatus          CommitStatus  `json:"commitStatus"`
	// WebURL is the address of the repository's page at its forge; derived from url when empty.
	WebURL string `json:"webURL"`
	// Tenants say what the files below a folder may define. Without any, every file may
	// define anything.
	Tenants model.Tenants `json:"tenants"`
}

// GitAuth names the files that hold the credentials for the repository.
type GitAuth struct {
	UsernameFile   string `json:"usernameFile"`
	PasswordFile   string `json:"passwordFile"` // a password or a token
	SSHKeyFile     string `json:"sshKeyFile"`
	KnownHostsFile string `json:"knownHostsFile"`
	CAFile         string `json:"caFile"`
	// GitHubApp logs in as an installation of a GitHub App, in place of a password.
	GitHubApp GitHubApp `json:"githubApp"`
}

// GitHubApp is an installation of a GitHub App; without an appID there is none.
type GitHubApp struct {
	AppID          int    `json:"appID"`
	InstallationID int    `json:"installationID"`
	PrivateKeyFile string `json:"privateKeyFile"`
}

// CommitStatus configures the status that is posted for each commit. Without a token none is.
type CommitStatus struct {
	Provider  string `json:"provider"` // github, gitlab, gitea or forgejo; also for links to its pages
	URL       string `json:"url"`      // of the API; derived when empty
	TokenFile string `json:"tokenFile"`
}

// GitVerify says which signatures a revision must carry.
type GitVerify struct {
	Mode string `json:"mode"` // none, head, tag or both
	Keys string `json:"keys"` // folder of the public keys that may sign
}

// Power says how power is restored.
type Power struct {
	// RestoreWithoutBranch switches bound servers of the store on from their disks while the
	// status branch cannot be read at a start: the Git host may run on one of them.
	RestoreWithoutBranch bool `json:"restoreWithoutBranch"`
}

// Status says how the status branch is written.
type Status struct {
	Branch         string `json:"branch"`
	Keep           Age    `json:"keep"`   // how much of the branch's history is kept, 0 = all of it
	Author         string `json:"author"` // NAME <EMAIL>
	SigningKeyFile string `json:"signingKeyFile"`
}

// Redis says where observations and records are kept: without a URL, in a file in
// state.dir.
type Redis struct {
	URL string `json:"url"`
	// PasswordFile holds the password of the user in URL, or of the default user. It is read
	// again for each connection, as is CAFile.
	PasswordFile string `json:"passwordFile"`
	// CAFile holds certificates that Redis is trusted by beside the system's.
	CAFile      string `json:"caFile"`
	SealKeyFile string `json:"sealKeyFile"`
}

// State says where the daemon keeps what it needs between two runs.
type State struct {
	Dir string `json:"dir"`
}

// BMC says how BMCs are reached and how much is asked of them.
type BMC struct {
	CAFile string `json:"caFile"`
	// Networks are where BMCs are. Without any, a BMC may have any address other than
	// loopback, link-local and metadata addresses, and is reached by https alone.
	Networks          model.BMCNetworks `json:"networks"`
	RequestsPerSecond float64           `json:"requestsPerSecond"` // of one BMC
	PowerOffGrace     time.Duration     `json:"powerOffGrace"`
}

// Discovery says how an unknown server is inspected.
type Discovery struct {
	Image                string        `json:"image"` // OCI reference of the probe image
	IgnitionTemplateFile string        `json:"ignitionTemplateFile"`
	Timeout              time.Duration `json:"timeout"`
	MACPrefixesFile      string        `json:"macPrefixesFile"`
}

// Cleanup says how a released server is wiped.
type Cleanup struct {
	Mode string `json:"mode"` // none, quick or secure
}

// Guard bounds what commits may do to the fleet within a time.
type Guard struct {
	MaxDisruptions int `json:"maxDisruptions"`
	// MaxPowerDisruptions is how many bound servers may be powered off or restarted.
	MaxPowerDisruptions int `json:"maxPowerDisruptions"`
	// Window is the time within which both are counted.
	Window                    time.Duration `json:"window"`
	MaxConcurrentReprovisions int           `json:"maxConcurrentReprovisions"`
	MaxConcurrentPowerOns     int           `json:"maxConcurrentPowerOns"`
}

// Boot has the settings of the boot service.
type Boot struct {
	Listen string `json:"listen"`
	URL    string `json:"url"` // as servers reach it; derived when empty
	// Registries are the registries, and hosts of URLs, that images may come from; empty = any.
	Registries []oci.Registry `json:"registries"`
	// ImageDirs are the folders that images in OCI image layouts (oci:/folder) may lie in.
	ImageDirs []string `json:"imageDirs"`
	// CAFile holds certificates that registries are trusted by beside the system's.
	CAFile string `json:"caFile"`
	// CredentialsFile is a docker config.json with the credentials for registries.
	CredentialsFile string `json:"credentialsFile"`
	// CacheDir is where image layers and disk images are kept, state.dir/images when empty.
	CacheDir  string   `json:"cacheDir"`
	CacheSize ByteSize `json:"cacheSize"`
	// BindTickets says which client may use a server's boot ticket: machine, first-client
	// or nothing.
	BindTickets string `json:"bindTickets"`
	// LoaderDirs are the folders with iPXE's binaries; the first that has one wins.
	LoaderDirs []string `json:"loaderDirs"`
	// Loaders say which kind of boot loader machines are told, by platform: bios, amd64,
	// arm64 …
	Loaders map[string]string `json:"loaders"`
	// Files is a folder that is served to everybody by TFTP, and by HTTP below /files/.
	Files string `json:"files"`
	// SSHKeys are public keys that may log in to every server that is installed from now on, in addition to those of
	// its claim (ingot/ssh-authorized-keys); for emergencies.
	SSHKeys []string `json:"sshKeys"`
	// Rescue is the file of an iPXE script for machines without a boot ticket; empty = none.
	Rescue string `json:"rescue"`
}

// Registry has the settings of the probe endpoint.
type Registry struct {
	Listen string `json:"listen"`
	URL    string `json:"url"` // as servers reach it; derived when empty
}

// Metadata has the settings of the metadata service.
type Metadata struct {
	Listen string `json:"listen"`
}

// TFTP has the settings of the server for boot loaders.
type TFTP struct {
	Listen string `json:"listen"` // host:port, or empty for off
}

// Admin has the settings of the listener that shows what is so.
type Admin struct {
	Listen string `json:"listen"`
	// URL is where people reach it, perhaps through a proxy; several have commas between. It answers to their names.
	URL string   `json:"url"`
	TLS AdminTLS `json:"tls"`
	// Users is a file with users and their passwords, as htpasswd -B writes it.
	Users         string        `json:"users"`
	TrustedHeader TrustedHeader `json:"trustedHeader"`
	// OpenMetrics shows metrics to everybody.
	OpenMetrics bool `json:"openMetrics"`
	// ServerMetrics adds the metrics of each server with states that it is not in.
	ServerMetrics bool `json:"serverMetrics"`
}

// AdminTLS names the files of a certificate and its key; they are read again when they change.
type AdminTLS struct {
	CertFile string `json:"certFile"`
	KeyFile  string `json:"keyFile"`
}

// TrustedHeader is a header in which a proxy at one of the addresses From names the user.
type TrustedHeader struct {
	Name string   `json:"name"`
	From []string `json:"from"` // networks, or addresses
}

// Webhook has the settings of the listener for pushes.
type Webhook struct {
	Listen     string `json:"listen"`
	SecretFile string `json:"secretFile"` // one secret a line
}

// Tuning has values that the demo, benchmarks and tests change. Zero is the value that users have.
type Tuning struct {
	Fast           bool          `hidden:"" help:"Without the waits that spare real machines; for tests and the demo."`
	StatusInterval time.Duration `hidden:"" help:"Minimum time between two commits on the status branch."`
	PollInterval   time.Duration `hidden:"" help:"How often the power state is read."`
	MaxInstalls    int           `hidden:"" help:"Maximum number of disk images that are written at the same time."`
}

// Default returns the default options. Only git.url has to be set beside them.
func Default() Options {
	return Options{
		Git: Git{
			Branch: "main", Path: ".", Interval: time.Minute,
			Verify: GitVerify{Mode: "none"}, Tenants: model.Tenants{},
		},
		Status:    Status{Branch: "status", Author: gitsource.DefaultAuthorName + " <" + gitsource.DefaultAuthorEmail + ">"},
		State:     State{Dir: "/var/lib/ingot"},
		BMC:       BMC{Networks: model.BMCNetworks{}, RequestsPerSecond: 5, PowerOffGrace: 5 * time.Minute},
		Discovery: Discovery{Timeout: 30 * time.Minute},
		Cleanup:   Cleanup{Mode: "quick"},
		Guard: Guard{
			MaxDisruptions: 3, MaxPowerDisruptions: 10, Window: time.Hour, MaxConcurrentReprovisions: 1, MaxConcurrentPowerOns: 10,
		},
		Boot: Boot{
			Listen: ":8082", Registries: []oci.Registry{}, ImageDirs: []string{"/usr/share/ingot/images"}, CacheSize: 100 << 30, BindTickets: "machine",
			LoaderDirs: slices.Clone(netboot.DefaultLoaderDirs), Loaders: map[string]string{}, SSHKeys: []string{},
		},
		Registry: Registry{Listen: ":10000"},
		Admin:    Admin{Listen: "127.0.0.1:8080", TrustedHeader: TrustedHeader{From: []string{}}},
		DHCP:     []dhcp.Network{},
	}
}
