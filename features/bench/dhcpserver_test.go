package bench

import (
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"testing"
	"time"

	"ingot/gitsource/gitserver"
)

// dhcpServer is a DHCP server on a link of its own.
type dhcpServer struct {
	name    string
	link    *link
	process int
	helpers []int // processes that work for it, such as Redis
}

func (s *dhcpServer) cpu() time.Duration {
	s.link.Helper()
	used := processCPU(s.link, s.process)
	for _, pid := range s.helpers {
		used += processCPU(s.link, pid)
	}
	return used
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
	return &dhcpServer{name: "Ingot", link: l, process: l.ingot(b, program)}
}

func ingotRedisDHCP(b *testing.B, program string) *dhcpServer {
	b.Helper()
	l := newLink(b)
	redis := l.serve("Ready to accept connections", nil, "redis-server", "--bind", "127.0.0.1", "--port", "6379", "--dir", l.dir,
		"--appendonly", "yes", "--save", "", "--maxmemory-policy", "noeviction")
	ingot := l.ingot(b, program, "INGOT_REDIS_URL=redis://127.0.0.1:6379/0")
	return &dhcpServer{name: "Ingot, Redis", link: l, process: ingot, helpers: []int{redis.Process.Pid}}
}

func (l *link) ingot(b *testing.B, program string, settings ...string) (pid int) {
	l.Helper()
	repository, err := gitserver.New(b.TempDir(), "fleet")
	if err == nil {
		_, err = repository.Commit(map[string]string{"README.md": "a fleet\n"}, "begin")
	}
	if err != nil {
		l.Fatal(err)
	}
	config := l.file("ingot.yaml", fmt.Appendf(nil, `git: {url: %q}
state: {dir: %q}
boot: {listen: ":8082", loaderDirs: [%q]}
registry: {listen: "127.0.0.1:10000", url: "http://%[4]s:10000"}
admin: {listen: "127.0.0.1:8080"}
dhcp:
- name: bench
  interface: %[5]s
  role: host
  probe: false
  subnets:
  - {cidr: 10.9.0.0/16, ranges: [%[6]s-%[7]s], gateway: %[4]s, dns: [%[4]s], leaseTime: %[10]ds}
  - {cidr: "fd09::/64", ranges: ["%[8]s-%[9]s"], dns: ["%[11]s"], leaseTime: %[10]ds}
`, repository.URL(), filepath.Join(l.dir, "state"), l.dir, serverAddress, serverDevice,
		dhcpFirst, dhcpLast, dhcpFirst6, dhcpLast6, dhcpValidity, serverAddress6))
	return l.serve(`msg="DHCP answers"`, settings, program, "run", "--config", config).Process.Pid
}

const keaSynced = "Kea on PostgreSQL"

// keaDHCP serves one family with Kea as its makers measure it: leases in a file
// that is appended to and left to the system to write, a thread for each core, and
// no line in the log for each lease.
func keaDHCP(b *testing.B, family string) *dhcpServer {
	b.Helper()
	l := newLink(b)
	return &dhcpServer{name: "Kea", link: l, process: l.kea(family, fmt.Sprintf(`{"type": "memfile", "name": %q}`, filepath.Join(l.dir, "leases")))}
}

// keaSyncedDHCP serves IPv4 with Kea whose leases are in PostgreSQL, and so on disk when it
// answers, as Ingot's are; nil where there is no PostgreSQL. Its CPU time is that of Kea
// alone.
func keaSyncedDHCP(b *testing.B) *dhcpServer {
	b.Helper()
	l := newLink(b)
	socket, why := l.postgres("/usr/share/kea/scripts/pgsql/dhcpdb_create.pgsql")
	if why != "" {
		b.Logf("WITHOUT Kea on PostgreSQL: %s", why)
		return nil
	}
	pid := l.kea("4", fmt.Sprintf(`{"type": "postgresql", "name": "postgres", "host": %q, "user": "postgres"}`, socket))
	return &dhcpServer{name: keaSynced, link: l, process: pid}
}

func (l *link) postgres(script string) (dir, why string) {
	l.Helper()
	owner, err := user.Lookup("postgres")
	if err != nil {
		return "", err.Error()
	}
	for _, program := range []string{"initdb", "postgres", "psql"} {
		if _, err := exec.LookPath(program); err != nil {
			return "", err.Error() + " (package postgresql; its programs have to be in PATH)"
		}
	}
	if dir, err = os.MkdirTemp("", "ingot-bench-postgres"); err != nil { // where its user may look
		l.Fatal(err)
	}
	l.Cleanup(func() { _ = os.RemoveAll(dir) })
	l.must("chown", owner.Uid, dir)
	as := []string{"setpriv", "--reuid", owner.Uid, "--regid", owner.Gid, "--clear-groups"}
	data := filepath.Join(dir, "data")
	l.must(as[0], append(as[1:], "initdb", "-D", data, "-A", "trust", "-U", "postgres")...)
	l.serve("ready to accept connections", nil, append(as, "postgres", "-D", data, "-c", "listen_addresses=", "-c", "unix_socket_directories="+dir)...)
	l.must("psql", "-h", dir, "-U", "postgres", "-q", "-v", "ON_ERROR_STOP=1", "-f", script)
	return dir, ""
}

func (l *link) kea(family, database string) (pid int) {
	l.Helper()
	identity := ""
	subnet := fmt.Sprintf(`{"id": 1, "subnet": "10.9.0.0/16", "pools": [{"pool": "%s - %s"}],
		"option-data": [{"name": "routers", "data": %q}, {"name": "domain-name-servers", "data": %[3]q}]}`,
		dhcpFirst, dhcpLast, serverAddress)
	if family == "6" {
		identity = `"server-id": {"type": "EN", "enterprise-id": 32473, "identifier": "0877e0afec", "persist": false},`
		subnet = fmt.Sprintf(`{"id": 1, "subnet": "fd09::/64", "interface": %q, "pools": [{"pool": "%s - %s"}],
		"option-data": [{"name": "dns-servers", "data": %q}]}`, serverDevice, dhcpFirst6, dhcpLast6, serverAddress6)
	}
	config := l.file("kea.json", fmt.Appendf(nil, `{"Dhcp%[1]s": { %[6]s
		"interfaces-config": {"interfaces": [%[2]q]},
		"lease-database": %[3]s,
		"multi-threading": {"enable-multi-threading": true, "thread-pool-size": 0, "packet-queue-size": 64},
		"valid-lifetime": %[4]d, "subnet%[1]s": [%[5]s],
		"loggers": [
			{"name": "kea-dhcp%[1]s", "severity": "INFO", "output_options": [{"output": "stdout"}]},
			{"name": "kea-dhcp%[1]s.leases", "severity": "WARN", "output_options": [{"output": "stdout"}]}
		]}}`, family, serverDevice, database, dhcpValidity, subnet, identity))
	environment := []string{"KEA_LOCKFILE_DIR=" + l.dir, "KEA_PIDFILE_DIR=" + l.dir}
	return l.serve("DHCP"+family+"_STARTED", environment, "kea-dhcp"+family, "-c", config).Process.Pid
}

// dnsmasqDHCP serves IPv4 with dnsmasq.
func dnsmasqDHCP(b *testing.B) *dhcpServer {
	b.Helper()
	l := newLink(b)
	dnsmasq := l.serve("DHCP, IP range", nil, "dnsmasq", "--keep-in-foreground", "--conf-file=/dev/null", "--pid-file=", "--user=root",
		"--port=0", "--interface="+serverDevice, "--log-facility=-", "--quiet-dhcp", "--dhcp-authoritative", "--no-ping",
		"--dhcp-leasefile="+filepath.Join(l.dir, "leases"), fmt.Sprintf("--dhcp-lease-max=%d", dhcpClients+1000),
		fmt.Sprintf("--dhcp-range=%s,%s,255.255.0.0,%d", dhcpFirst, dhcpLast, dhcpValidity))
	return &dhcpServer{name: "dnsmasq", link: l, process: dnsmasq.Process.Pid}
}
