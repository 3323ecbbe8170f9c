package bench

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"ingot/gitsource/gitserver"
	"ingot/model/must"
)

// dhcpServer is a DHCP server on a link of its own.
type dhcpServer struct {
	name    string
	link    *link
	process int
	clients int             // groups of clients that have asked
	fleet   *gitserver.Repo // that Ingot reads
}

func (s *dhcpServer) cpu() time.Duration {
	s.link.Helper()
	return processCPU(s.link, s.process)
}

// nextClients returns the arguments of perfdhcp for clients that have not asked before.
func (s *dhcpServer) nextClients() []string {
	s.clients++
	return []string{"-b", fmt.Sprintf("mac=00:0c:01:%02x:00:00", s.clients), "-b", fmt.Sprintf("duid=00030001000c01%02x0000", s.clients)}
}

// The pools have room for each of dhcpClients; that of DHCPv6 for all of each run, as
// perfdhcp's DUIDs have the time in them.
const (
	dhcpClients  = 60_000
	dhcpFirst    = "10.9.1.0"
	dhcpLast     = "10.9.255.250"
	dhcpFirst6   = "fd09::1:0"
	dhcpLast6    = "fd09::f:ffff"
	dhcpValidity = 3600 // seconds
)

// ingotDHCP serves both families with Ingot, which keeps its leases in a file of
// its own, on disk.
func ingotDHCP(b *testing.B, program string) *dhcpServer {
	b.Helper()
	l := newLink(b)
	process, fleet := l.ingot(b, program, fmt.Sprintf("loaderDirs: [%q]", l.dir), fmt.Sprintf(`{cidr: 10.9.0.0/16, ranges: [%s-%s], gateway: %s, dns: [%[3]s], leaseTime: %ds}
  - {cidr: "fd09::/64", ranges: ["%s-%s"], dns: ["%s"], leaseTime: %[4]ds}`,
		dhcpFirst, dhcpLast, serverAddress, dhcpValidity, dhcpFirst6, dhcpLast6, serverAddress6))
	return &dhcpServer{name: "Ingot", link: l, process: process, fleet: fleet}
}

// saveDocuments commits claims that no server fits, in groups. Ingot saves a document for each. Done reports whether
// all were committed, and then waits until they are on the status branch.
func (s *dhcpServer) saveDocuments() (done func() bool) {
	s.link.Helper()
	var committing sync.WaitGroup
	s.link.Cleanup(committing.Wait)
	var isCommitted atomic.Bool
	committing.Go(func() {
		defer isCommitted.Store(true)
		tick := time.NewTicker(saveEvery)
		defer tick.Stop()
		for from := 0; from < savedDocuments; from += saveGroup {
			files := make(map[string]string, saveGroup)
			for i := from; i < from+saveGroup; i++ {
				files[changeClaimPath(i)] = changeClaim(i, 0)
			}
			_, err := s.fleet.Commit(files, "claim servers")
			if err := errors.Join(err, syscall.Kill(s.process, syscall.SIGHUP)); err != nil {
				s.link.Error(err)
				return
			}
			<-tick.C
		}
	})
	return func() bool {
		s.link.Helper()
		if isCommitted.Load() {
			s.link.await("all documents are published", "", func() bool {
				files, err := s.fleet.ReadBranch("status")
				documents := slices.DeleteFunc(slices.Collect(maps.Keys(files)), func(path string) bool { return !strings.HasPrefix(path, "serverclaims/") })
				return err == nil && len(documents) >= savedDocuments
			})
		}
		return isCommitted.Load()
	}
}

// ingot runs Ingot at the end of the link that serves, with further settings for boots, and with subnets.
func (l *link) ingot(b *testing.B, program, boot, subnets string) (pid int, fleet *gitserver.Repo) {
	l.Helper()
	repository := must.Get(gitserver.New(b.TempDir(), "fleet"))(b)
	must.Get(repository.Commit(map[string]string{"README.md": "a fleet\n"}, "begin"))(b)
	config := l.file("ingot.yaml", fmt.Appendf(nil, `git: {url: %q}
state: {dir: %q}
boot: {listen: ":8082", %s}
registry: {listen: "127.0.0.1:10000", url: "http://%s:10000"}
admin: {listen: "127.0.0.1:8080"}
tftp: {listen: ":69"}
dhcp:
- name: bench
  interface: %s
  role: host
  subnets:
  - %s
`, repository.URL(), l.state(), boot, serverAddress, serverDevice, subnets))
	return l.serve(`msg="DHCP answers"`, nil, program, "run", "--config", config).Process.Pid, repository
}

// state is the folder that Ingot keeps its state in.
func (l *link) state() string { return filepath.Join(l.dir, "state") }

// keaDHCP serves one family with Kea as its makers measure it: leases in a file
// that is appended to and left to the system to write, a thread for each core, and
// no line in the log for each lease.
func keaDHCP(b *testing.B, family string) *dhcpServer {
	b.Helper()
	identity := ""
	subnet := fmt.Sprintf(`{"id": 1, "subnet": "10.9.0.0/16", "pools": [{"pool": "%s - %s"}],
		"option-data": [{"name": "routers", "data": %q}, {"name": "domain-name-servers", "data": %[3]q}]}`,
		dhcpFirst, dhcpLast, serverAddress)
	if family == "6" {
		identity = `"server-id": {"type": "EN", "enterprise-id": 32473, "identifier": "0877e0afec", "persist": false},`
		subnet = fmt.Sprintf(`{"id": 1, "subnet": "fd09::/64", "interface": %q, "pools": [{"pool": "%s - %s"}],
		"option-data": [{"name": "dns-servers", "data": %q}]}`, serverDevice, dhcpFirst6, dhcpLast6, serverAddress6)
	}
	l := newLink(b)
	return &dhcpServer{name: "Kea", link: l, process: l.kea(family, identity+fmt.Sprintf(`"subnet%s": [%s],`, family, subnet))}
}

// kea runs Kea with settings that end in a comma, among them its subnets.
func (l *link) kea(family, settings string) (pid int) {
	l.Helper()
	config := l.file("kea.json", fmt.Appendf(nil, `{"Dhcp%[1]s": { %[5]s
		"interfaces-config": {"interfaces": [%[2]q]},
		"lease-database": {"type": "memfile", "name": %[3]q},
		"multi-threading": {"enable-multi-threading": true, "thread-pool-size": 0, "packet-queue-size": 64},
		"valid-lifetime": %[4]d,
		"loggers": [
			{"name": "kea-dhcp%[1]s", "severity": "INFO", "output_options": [{"output": "stdout"}]},
			{"name": "kea-dhcp%[1]s.leases", "severity": "WARN", "output_options": [{"output": "stdout"}]}
		]}}`, family, serverDevice, filepath.Join(l.dir, "leases"), dhcpValidity, settings))
	environment := []string{"KEA_LOCKFILE_DIR=" + l.dir, "KEA_PIDFILE_DIR=" + l.dir}
	return l.serve("DHCP"+family+"_STARTED", environment, "kea-dhcp"+family, "-c", config).Process.Pid
}
