package config

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ingot/bootsvc/dhcp"
	"ingot/bootsvc/oci"
	"ingot/model"
)

func TestAWrongConfigurationHasOneClearMessage(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"no repository": {
			text: "guard: {window: 5m}\n",
			want: "ingot.yaml: git.url: is required: the address of the repository that holds your manifests, such as " +
				"https://git.example.com/infra/metal.git; set it in the file that --config names, or as INGOT_GIT_URL",
		},
		"a key with a slip": {
			text: repository + "bmc:\n  powerOfGrace: 60s\n",
			want: `ingot.yaml:3:3: bmc.powerOfGrace: unknown field, did you mean "powerOffGrace"?`,
		},
		"a key that does not exist": {
			text: repository + "logging: {level: debug}\n",
			want: "ingot.yaml:2:1: logging: unknown field, known here: admin, bmc, boot, cleanup, dhcp, discovery, git, " +
				"guard, metadata, power, redis, registry, secretFiles, state, status, tftp, webhook",
		},
		"a key of a network that was removed": {
			text: repository + "dhcp:\n- {name: a, role: host, interface: eth0, subnets: [{cidr: \"fd00::/64\"}]}\n" +
				"- {name: b, role: host, interface: eth1, subnets: [{cidr: \"fd01::/64\"}], routerAdvertisements: {managed: true}}\n",
			want: "ingot.yaml:4:74: dhcp[1].routerAdvertisements: was removed: run radvd or corerad on the link, see docs/networks.md, " +
				`"Router advertisements"`,
		},
		"the same key twice": {
			text: repository + "secretFiles: /a\nsecretFiles: /b\n",
			want: "ingot.yaml:3:1: secretFiles: is given twice, first in line 2",
		},
		"a duration without a unit": {
			text: repository + "guard: {window: 60}\n",
			want: "ingot.yaml:2:17: guard.window: found the number 60, want a duration with a unit, such as 60s, 5m or 1h30m",
		},
		"a duration that goes backwards": {
			text: "git:\n  url: https://git.example.com/metal.git\n  interval: -5s\n",
			want: "ingot.yaml:3:13: git.interval: -5s is not allowed: must be 100ms or more, such as 60s",
		},
		"a unit too small": {
			text: repository + "guard: {window: 5ms}\n",
			want: "ingot.yaml:2:17: guard.window: 5ms is not allowed: must be 1s or more, such as 60s",
		},
		"a cleanup that we do not know": {
			text: repository + "cleanup: {mode: thorough}\n",
			want: `ingot.yaml:2:17: cleanup.mode: "thorough" is not allowed: must be one of none, quick, secure`,
		},
		"a guard below nothing": {
			text: repository + "guard: {maxDisruptions: -1}\n",
			want: "ingot.yaml:2:25: guard.maxDisruptions: -1 is not allowed: must be 0 or more",
		},
		"a listener without a port": {
			text: repository + "admin: {listen: localhost}\n",
			want: `ingot.yaml:2:17: admin.listen: "localhost" is not allowed: must be host:port or :port, such as ` +
				`127.0.0.1:8080; leave it empty to turn the listener off`,
		},
		"an admin listener for every machine, and for whoever comes": {
			text: repository + "admin: {listen: \":8080\"}\n",
			want: "ingot.yaml:2:17: admin.listen: " + Unguarded(":8080"),
		},
		"the same by an address": {
			text: repository + "admin: {listen: \"[::]:8080\", openMetrics: true}\n",
			want: "ingot.yaml:2:17: admin.listen: " + Unguarded("[::]:8080"),
		},
		"a certificate without its key": {
			text: repository + "admin: {tls: {certFile: /dev/zero}}\n",
			want: "ingot.yaml: admin.tls.keyFile: is empty though admin.tls.certFile is set; name the file with the certificate's key",
		},
		"users that are not there": {
			text: repository + "admin: {users: /nowhere/users}\n",
			want: `ingot.yaml:2:16: admin.users: "/nowhere/users" cannot be read: no such file or directory; create it, or remove the key`,
		},
		"a header that anybody may set": {
			text: repository + "admin: {trustedHeader: {name: X-Forwarded-User}}\n",
			want: "ingot.yaml: admin.trustedHeader.from: is empty though admin.trustedHeader.name is set: anybody could name himself; " +
				"name the addresses of the proxy, such as 10.0.0.5",
		},
		"a header that everybody sends": {
			text: repository + "admin: {trustedHeader: {name: x-forwarded-for, from: [10.0.0.5]}}\n",
			want: `ingot.yaml:2:31: admin.trustedHeader.name: "x-forwarded-for" is not allowed: must be a header that the proxy alone sets, such as X-Forwarded-User`,
		},
		"a proxy that is anywhere": {
			text: repository + "admin: {trustedHeader: {name: X-Forwarded-User, from: [\"::/0\"]}}\n",
			want: "ingot.yaml:2:56: admin.trustedHeader.from[0]: ::/0 is everybody, who could name himself; name the addresses of the proxy, such as 10.0.0.5",
		},
		"two listeners on one port": {
			text: repository + "boot: {listen: \":8082\"}\nregistry: {listen: \":8082\"}\n",
			want: `ingot.yaml:3:20: registry.listen: ":8082" is taken by boot.listen; give one of them another port`,
		},
		"a size in words": {
			text: repository + "boot: {cacheSize: plenty}\n",
			want: `ingot.yaml:2:19: boot.cacheSize: "plenty" is no size; write a whole number and a unit (MiB, GiB, TiB), such as 20GiB`,
		},
		"a URL that is none": {
			text: repository + "boot: {url: 10.0.0.1:8082}\n",
			want: `ingot.yaml:2:13: boot.url: "10.0.0.1:8082" is not allowed: must be http:// or https:// with a host, such as ` +
				`http://10.0.0.1:8082; leave it empty to derive it from the listener`,
		},
		"the status on the watched branch": {
			text: repository + "status: {branch: main}\n",
			want: `ingot.yaml:2:18: status.branch: "main" is git.branch too, and Ingot would overwrite it; name a branch that is ` +
				`Ingot's alone, such as status`,
		},
		"a folder outside of the repository": {
			text: "git: {url: /srv/metal.git, path: ../other}\n",
			want: `ingot.yaml:1:34: git.path: "../other" is not allowed: must be a folder inside the repository, such as ` +
				`fleet/berlin; "." for all of it`,
		},
		"an SSH key without known hosts": {
			text: "git: {url: git@git.example.com:metal.git, auth: {sshKeyFile: /dev/zero}}\n",
			want: "ingot.yaml: git.auth.knownHostsFile: is empty though git.auth.sshKeyFile is set: the server's key must be " +
				"known; write it with ssh-keyscan, compare it, and name the file",
		},
		"a user without a password": {
			text: "git: {url: https://git.example.com/metal.git, auth: {usernameFile: /dev/zero}}\n",
			want: "ingot.yaml: git.auth.passwordFile: is empty though git.auth.usernameFile is set; name the file that holds the " +
				"password or token",
		},
		"a file that is not there": {
			text: repository + "bmc: {caFile: /nowhere/ca.pem}\n",
			want: `ingot.yaml:2:15: bmc.caFile: "/nowhere/ca.pem" cannot be read: no such file or directory; create it, or remove ` +
				`the key`,
		},
		"a scheme that is not Git's": {
			text: "git: {url: ftp://git.example.com/metal.git}\n",
			want: `ingot.yaml:1:12: git.url: "ftp://git.example.com/metal.git" has scheme ftp, allowed are https, http, ssh and ` +
				`file; write it as https://host/repository.git`,
		},
		"a store that is no Redis": {
			text: repository + "redis: {url: postgres://db/ingot}\n",
			want: "ingot.yaml:2:14: redis.url: is no Redis address; write it as redis://host:6379/0, rediss://host:6379/0 or " +
				"unix:///path/to/socket, or leave it empty for the embedded store",
		},
		"a password in the address of Redis": {
			text: repository + "redis: {url: \"rediss://u:secret@db\"}\n",
			want: "ingot.yaml:2:14: redis.url: holds a password; take it out, write it into a file and name that in redis.passwordFile",
		},
		"a password of no Redis": {
			text: repository + "redis: {passwordFile: /dev/zero}\n",
			want: "ingot.yaml:2:23: redis.passwordFile: is set though redis.url is empty, so there is no Redis: set redis.url, or take this out",
		},
		"certificates for a Redis without TLS": {
			text: repository + "redis: {url: \"redis://localhost\", caFile: /dev/zero}\n",
			want: "ingot.yaml:2:43: redis.caFile: is set though redis.url is not one with TLS: write it as rediss://host:6379/0, or take this out",
		},
		"a removed list of registries": {
			text: repository + "boot: {insecureRegistries: [\"r:5000\"]}\n",
			want: "ingot.yaml:2:8: boot.insecureRegistries: was removed: list the registries in boot.registries with plain: true",
		},
		"a rescue script with a condition": {
			text: repository + "boot: {rescue: {script: a.ipxe, for: unknown}}\n",
			want: "ingot.yaml:2:16: boot.rescue: found a mapping, want a string",
		},
		"a DHCP option whose value has another form": {
			text: repository + "dhcp:\n- name: n\n  role: bmc\n  interface: eth0\n  options:\n    wpad: http://w/p\n    mtu: 67\n" +
				"  subnets: [{cidr: 10.0.0.0/24}]\n",
			want: `ingot.yaml:8:10: dhcp[0].options.mtu: found "67", want a number from 68 to 65535, as 9000: ` +
				"it is not a whole number in these bounds",
		},
		"a DHCP option by its number, of a subnet": {
			text: repository + "dhcp:\n- name: n\n  role: bmc\n  interface: eth0\n  subnets:\n  - cidr: 10.0.0.0/24\n    options:\n      \"121\": 10.0.0.0/8\n",
			want: `ingot.yaml:9:14: dhcp[0].subnets[0].options.121: found "10.0.0.0/8", want 1 to 16 routes with commas between, as ` +
				`10.0.0.0/8 via 192.0.2.1, 0.0.0.0/0 via 192.0.2.2: "10.0.0.0/8" is no route`,
		},
		"a DHCP option by its name and its number": {
			text: repository + "dhcp:\n- name: n\n  role: bmc\n  interface: eth0\n  options:\n    mtu: 9000\n    \"26\": 1500\n" +
				"  subnets: [{cidr: 10.0.0.0/24}]\n",
			want: `ingot.yaml:8:11: dhcp[0].options.26: option 26 is set by mtu, too: keep one of them`,
		},
		"a DHCP option by a number with a leading zero": {
			text: repository + "dhcp:\n- name: n\n  role: bmc\n  interface: eth0\n  options: {\"012\": a}\n  subnets: [{cidr: 10.0.0.0/24}]\n",
			want: `ingot.yaml:6:20: dhcp[0].options.012: "012" has leading zeros: write 12`,
		},
		"a network without a name": {
			text: repository + "dhcp:\n  - {role: bmc, interface: eth0, subnets: [{cidr: 10.0.0.0/24}]}\n",
			want: "ingot.yaml:3:5: dhcp[0].name: \"\" must be 1 to 40 letters, digits and dashes, with no dash at an end",
		},
		"a range outside its subnet": {
			text: repository + "dhcp:\n- name: oob\n  role: bmc\n  interface: eth0\n  subnets:\n  - cidr: 10.0.0.0/24\n    " +
				"ranges: [10.0.1.5-10.0.1.9]\n",
			want: "ingot.yaml:8:14: dhcp[0].subnets[0].ranges[0]: 10.0.1.5-10.0.1.9 must lie within 10.0.0.0/24, which goes from " +
				"10.0.0.0 to 10.0.0.255",
		},
		"a misspelt key of a network": {
			text: repository + "dhcp:\n- {name: oob, role: bmc, interfaces: eth0}\n",
			want: "ingot.yaml:3:26: dhcp[0].interfaces: unknown field, did you mean \"interface\"?",
		},
		"verified commits without keys": {
			text: "git: {url: /srv/metal.git, verify: {mode: head, keys: \"\"}}\n",
			want: "ingot.yaml:1:55: git.verify.keys: verify mode head needs a folder of keys that may sign",
		},
		"verified tags of a branch": {
			text: "git: {url: /srv/metal.git, verify: {mode: both, keys: /etc/ingot/keys}}\n",
			want: "ingot.yaml:1:43: git.verify.mode: verify mode both asks for signed tags, but main is followed",
		},
		"a branch and a tag": {
			text: "git: {url: /srv/metal.git, branch: main, tag: v1}\n",
			want: "ingot.yaml:1:47: git.tag: exactly one of branch, tag and semver can be followed: leave the others out",
		},
		"a webhook without a secret": {
			text: repository + "webhook: {listen: \":8083\", secretFile: \"\"}\n",
			want: "ingot.yaml:2:40: webhook.secretFile: is empty though webhook.listen is set: anybody could have the repository " +
				"fetched; name a file with a secret, and give the same to the Git host",
		},
		"a webhook that nobody reaches": {
			text: repository + "webhook: {secretFile: /proc/version}\n",
			want: "ingot.yaml: webhook.listen: is empty though webhook.secretFile is set; set it, such as :8083, or take " +
				"webhook.secretFile out",
		},
		"a webhook on a port that is taken": {
			text: repository + "webhook: {listen: \":8082\", secretFile: /proc/version}\n",
			want: `ingot.yaml:2:19: webhook.listen: ":8082" is taken by boot.listen; give one of them another port`,
		},
		"pages at an address that does not tell whose they are": {
			text: "git: {url: /srv/metal.git, webURL: \"https://git.example.com/infra/metal\"}\n",
			want: "ingot.yaml: git.commitStatus.provider: is empty, and git.webURL is not at a host of a known forge: set it to one of forgejo, gitea, " +
				"github, gitlab",
		},
		"pages at what is no address": {
			text: "git: {url: /srv/metal.git, webURL: \"javascript:alert(1)\"}\n",
			want: `ingot.yaml:1:36: git.webURL: "javascript:alert(1)" is no address of a repository's page: write https://host/owner/name`,
		},
		"commit statuses at a host that is not known": {
			text: "git: {url: git@bitbucket.org:infra/metal.git, auth: {sshKeyFile: /proc/version, knownHostsFile: /proc/version}, " +
				"commitStatus: {provider: bitbucket, tokenFile: /proc/version}}\n",
			want: `ingot.yaml:1:138: git.commitStatus.provider: "bitbucket" is not allowed: must be one of forgejo, gitea, github, ` +
				`gitlab, or empty`,
		},
		"commit statuses without a provider": {
			text: "git: {url: https://git.example.com/infra/metal.git, commitStatus: {tokenFile: /proc/version}}\n",
			want: "ingot.yaml: git.commitStatus.provider: is empty though other keys of git.commitStatus are set; set it to one of " +
				"forgejo, gitea, github, gitlab, or take those out",
		},
		"commit statuses without a token": {
			text: "git: {url: https://git.example.com/infra/metal.git, commitStatus: {provider: gitea, url: \"https://git.example.com\"}}\n",
			want: "ingot.yaml: git.commitStatus.tokenFile: is empty though git.commitStatus.url is set; name the file with a " +
				"token that may write commit statuses",
		},
		"commit statuses of a repository that no Git host has": {
			text: "git: {url: /srv/metal.git, commitStatus: {provider: gitea, tokenFile: /proc/version}}\n",
			want: `ingot.yaml:1:12: git.url: "/srv/metal.git" is not an address at a Git host; set git.webURL to the repository's page`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if _, got := load(t, tc.text); got != tc.want {
				t.Errorf("\ngot  %s\nwant %s", got, tc.want)
			}
		})
	}
}

func TestEveryProblemIsToldAtOnce(t *testing.T) {
	_, got := load(t, "git: {url: https://git.example.com/metal.git, interval: 0s}\nbmc: {powerOffGrace: -1m}\nguard: {maxConcurrentPowerOns: 0}\n")
	want := strings.Join([]string{
		"ingot.yaml:1:57: git.interval: 0s is not allowed: must be 100ms or more, such as 60s",
		"ingot.yaml:2:22: bmc.powerOffGrace: -1m0s is not allowed: must be 1s or more, such as 60s",
		"ingot.yaml:3:32: guard.maxConcurrentPowerOns: 0 is not allowed: must be 1 or more",
	}, "\n")
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// Every key that is a number, a duration or one of a few words is guarded: none
// takes a value that makes no sense.
func TestValidateNamesTheKeyAndTheValue(t *testing.T) {
	o := Default()
	o.Git.URL = "/srv/metal.git"
	if problems := o.Validate(); len(problems) > 0 {
		t.Fatalf("the defaults are wrong: %v", problems)
	}
	for path, change := range map[string]func(*Options){
		"git.branch":     func(o *Options) { o.Git.Branch = "a b" },
		"status.branch":  func(o *Options) { o.Status.Branch = "" },
		"status.keep":    func(o *Options) { o.Status.Keep = Age(time.Hour) },
		"status.keep ":   func(o *Options) { o.Status.Keep = -Age(day) },
		"status.author":  func(o *Options) { o.Status.Author = "Ingot" },
		"status.author ": func(o *Options) { o.Status.Author = "a\nb <a@b>" },
		"admin.url":      func(o *Options) { o.Admin.URL = "https://ingot.example.com, ingot" },
		"git.auth.githubApp.appID": func(o *Options) {
			o.Git.Auth.GitHubApp = GitHubApp{InstallationID: 1, PrivateKeyFile: "k"}
		},
		"git.auth.githubApp.appID ": func(o *Options) {
			o.Git.URL, o.Git.Auth.PasswordFile = "https://github.com/x/y", "p"
			o.Git.Auth.GitHubApp = GitHubApp{AppID: 1, InstallationID: 1, PrivateKeyFile: "k"}
		},
		" git.auth.githubApp.appID": func(o *Options) {
			o.Git.Auth.GitHubApp = GitHubApp{AppID: 1, InstallationID: 1, PrivateKeyFile: "k"}
		},
		"git.auth.githubApp.privateKeyFile": func(o *Options) { o.Git.Auth.GitHubApp = GitHubApp{AppID: 1, InstallationID: 1} },
		"git.tag":                           func(o *Options) { o.Git.Branch, o.Git.Tag = "", "a..b" },
		"git.semver":                        func(o *Options) { o.Git.Branch, o.Git.Semver = "", "newest" },
		"git.verify.mode":                   func(o *Options) { o.Git.Verify = GitVerify{Mode: "all", Keys: "/keys"} },
		"git.verify.keys":                   func(o *Options) { o.Git.Verify.Mode = "head" },
		"state.dir":                         func(o *Options) { o.State.Dir = "" },
		"bmc.requestsPerSecond":             func(o *Options) { o.BMC.RequestsPerSecond = 0 },
		"bmc.powerOffGrace":                 func(o *Options) { o.BMC.PowerOffGrace = 0 },
		"discovery.timeout":                 func(o *Options) { o.Discovery.Timeout = 0 },
		"git.tenants[0].path":               withTenants(func(o *Options) { o.Git.Tenants[0].Path = "/ops" }),
		"git.tenants[1].path":               withTenants(func(o *Options) { o.Git.Tenants[1].Path = "ops" }),
		"git.tenants[0].kinds":              withTenants(func(o *Options) { o.Git.Tenants[0].Kinds = []model.Kind{"BMC", "Pod"} }),
		"git.tenants[0].namespaces":         withTenants(func(o *Options) { o.Git.Tenants[0].Namespaces = []string{"a/b"} }),
		"git.tenants[1].namespaces":         withTenants(func(o *Options) { o.Git.Tenants[1].Path = "tenants/Alpha" }),
		"git.tenants[0].bmcNetworks[0]": withTenants(func(o *Options) {
			o.Git.Tenants[0].BMCNetworks = []netip.Prefix{netip.MustParsePrefix("10.0.0.1/8")}
		}),
		"git.tenants[1].servers": withTenants(func(o *Options) {
			o.Git.Tenants[1].Servers = &metav1.LabelSelector{MatchLabels: map[string]string{"a b": ""}}
		}),
		"git.tenants":                     withTenants(func(o *Options) { o.Git.Tenants = o.Git.Tenants[1:] }),
		"boot.registries":                 withTenants(func(o *Options) { o.Boot.Registries = nil }),
		"bmc.networks[0].prefix":          func(o *Options) { o.BMC.Networks = model.BMCNetworks{{Plain: true}} },
		"guard.maxConcurrentReprovisions": func(o *Options) { o.Guard.MaxConcurrentReprovisions = -1 },
		"boot.registries ": func(o *Options) {
			o.Boot.Registries = []oci.Registry{{Host: "ghcr.io"}, {Host: "localhost:5000", Plain: true}, {Host: "ghcr.io/example"}}
		},
		" boot.registries": func(o *Options) { o.Boot.Registries = []oci.Registry{{Host: "http://registry"}} },
		"boot.bindTickets": func(o *Options) { o.Boot.BindTickets = "address" },
		"boot.files":       func(o *Options) { o.Boot.Files = "/var/lib" }, // state.dir is within
		"boot.files ":      func(o *Options) { o.Boot.Files, o.SecretFiles = "/srv/files/", "/srv/files/../files/secrets" },
		" boot.files":      func(o *Options) { o.Boot.Files, o.Redis.SealKeyFile = "/srv", "/srv/seal.key" },
		" boot.files ":     func(o *Options) { o.Boot.Files = "/" },
		"boot.loaders":     func(o *Options) { o.Boot.Loaders = map[string]string{"sparc": "ipxe"} },
		"boot.loaders ":    func(o *Options) { o.Boot.Loaders = map[string]string{"amd64": "grub"} },
		"boot.sshKeys":     func(o *Options) { o.Boot.SSHKeys = make([]string, model.MaxSSHKeys+1) },
		"boot.sshKeys[1]": func(o *Options) {
			o.Boot.SSHKeys = []string{"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIF1juKY626E4fQzuHKLR/K2kbdeSBuEmw9YynTh72RL8 a", "~/.ssh/id.pub"}
		},
		"boot.cacheSize":  func(o *Options) { o.Boot.CacheSize = 0 },
		"registry.url":    func(o *Options) { o.Registry.URL = "ftp://host" },
		"registry.listen": func(o *Options) { o.Registry.Listen = ":70000" },
		"metadata.listen": func(o *Options) { o.Metadata.Listen = "1" },
		"tftp.listen":     func(o *Options) { o.TFTP.Listen = "69" },
		"boot.loaderDirs": func(o *Options) { o.Boot.LoaderDirs = []string{"ipxe"} },
		"boot.imageDirs":  func(o *Options) { o.Boot.ImageDirs = []string{"/srv/images/../etc"} },
		"discovery.image": func(o *Options) { o.Discovery.Image = "oci:/etc/probe" },
		"dhcp[0].role": func(o *Options) {
			o.DHCP = []dhcp.Network{{Name: "oob", Interface: "eth0", Mode: dhcp.ModeOff, Role: "oob"}}
		},
	} {
		t.Run(path, func(t *testing.T) {
			wrong := o
			change(&wrong)
			got := wrong.Validate()
			if len(got) != 1 || got[0].Field != strings.TrimSpace(path) || got[0].Severity != model.SeverityError {
				t.Errorf("got %s", fmt.Sprint(got))
			}
		})
	}
}

func withTenants(change func(*Options)) func(*Options) {
	return func(o *Options) {
		o.Boot.Registries = []oci.Registry{{Host: "registry.example"}}
		o.Git.Tenants = model.Tenants{{Path: "ops", Kinds: []model.Kind{"*"}, Namespaces: []string{"*"}}, {Path: "tenants/alpha"}}
		change(o)
	}
}

func TestTenantsAreReadFromTheFile(t *testing.T) {
	got, problem := load(t, `git:
  url: https://git.example.com/infra/metal.git
  tenants:
    - {path: ops, kinds: ["*"], namespaces: ["*"], bmcNetworks: [10.0.0.0/16]}
    - {path: tenants/alpha, namespaces: [alpha], servers: {matchLabels: {tenant: alpha}}}
boot: {registries: [{host: registry.example}]}
`)
	want := model.Tenants{
		{
			Path: "ops", Kinds: []model.Kind{"*"}, Namespaces: []string{"*"},
			BMCNetworks: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/16")},
		},
		{
			Path: "tenants/alpha", Namespaces: []string{"alpha"},
			Servers: &metav1.LabelSelector{MatchLabels: map[string]string{"tenant": "alpha"}},
		},
	}
	if diff := cmp.Diff(want, got.Git.Tenants, cmpopts.EquateComparable(netip.Prefix{})); diff != "" || problem != "" {
		t.Errorf("%s\n%s", problem, diff)
	}
	_, problem = load(t, "git: {url: /srv/metal.git, path: fleet, tenants: [{path: ops, kinds: [BMC]}]}\nboot: {registries: [{host: a}]}\n")
	wanted := `ingot.yaml:1:58: git.tenants[0].path: "ops" is not below git.path "fleet", so no file is read ` +
		`there; paths begin at the root of the repository`
	if problem != wanted {
		t.Errorf("got  %s\nwant %s", problem, wanted)
	}
}
