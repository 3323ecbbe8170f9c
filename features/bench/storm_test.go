package bench

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"ingot/features/internal/rig"
	"ingot/model"
	"ingot/model/must"
)

const (
	stormMachines = 1000
	stormKernel   = 10 << 20 // bytes
	stormInitrd   = 1 << 10
	// goalStormCPU is the CPU time of a machine's boot, compared with Kea, tftpd and nginx, which serve the same files.
	goalStormCPU = 1.2
)

// The machines are behind a router and relay, as those of other racks are.
const (
	stormRelay4 = "10.8.0.1"
	stormNet    = "10.8.0.0/16"
	stormPool   = "10.8.1.0-10.8.255.250"
	stormFiles  = "/usr/lib/ipxe" // boot loaders, from Debian's package ipxe
	stormFile   = "ipxe.efi"
	stormHTTP   = serverAddress + ":8082"
)

// BenchmarkBootStorm boots machines that were all switched on within seconds, once, and prints a table: each takes its
// address and boot file from DHCP, its boot loader from TFTP, then its script, kernel and Ignition.
func BenchmarkBootStorm(b *testing.B) {
	need(b, rig.ToolKea4, rig.ToolNginx, rig.ToolTftpd)
	if _, err := os.Stat(filepath.Join(stormFiles, stormFile)); err != nil {
		b.Skip("NOT MEASURED: programs are missing: apt-get install --no-install-recommends ipxe")
	}
	program := build(b)
	l := newStormLink(b)
	ours := l.account()
	image := layout(b, filepath.Join(l.dir, "images", "linux"))
	fleet := seedBoot(b, l.state(), stormMachines, image)
	ingot, _ := l.ingot(b, program, fmt.Sprintf("imageDirs: [%q]", filepath.Join(l.dir, "images")),
		fmt.Sprintf("{cidr: %s, ranges: [%s]}", stormNet, stormPool))
	ours.add(ingot)
	peers := newStormLink(b)
	theirs := peers.account()
	theirs.add(peers.stormPeers(fleet, image)...)

	boots, cpu := ours.storm(fleet)
	peerBoots, peerCPU := theirs.storm(fleet)
	t := &table{TB: b, title: fmt.Sprintf("%d machines boot at the same time", stormMachines)}
	t.number("machines that were not served", float64(stormMachines-boots.Booted), 0, float64(stormMachines-peerBoots.Booted))
	t.duration("CPU of a machine's boot, beside Kea, tftpd and nginx", cpu/stormMachines, none, peerCPU/stormMachines)
	t.number("  its ratio", float64(cpu)/float64(peerCPU), goalStormCPU, none)
	t.duration("time until the last has booted", boots.Took, none, peerBoots.Took)
	t.print(os.Stderr)
	b.ReportMetric(0, "ns/op")
}

// newStormLink is a link whose clients' end is a router: each address behind it is the machine's that leased it.
func newStormLink(b *testing.B) *link {
	b.Helper()
	l := newLink(b)
	l.must("ip", "-n", l.server, "route", "add", stormNet, "via", clientAddress)
	l.must("ip", "-n", l.client, "route", "add", "local", stormNet, "dev", "lo")
	// An address that is not leased yet must not answer a ping: it is probed before it is offered.
	l.must("ip", "netns", "exec", l.client, "sh", "-c", "echo 1 > /proc/sys/net/ipv4/icmp_echo_ignore_all")
	return l
}

// layout writes an OCI image layout with a kernel and an initramfs.
func layout(b *testing.B, dir string) model.PinnedImage {
	b.Helper()
	blobs := filepath.Join(dir, "blobs", "sha256")
	must.Do(b, os.MkdirAll(blobs, 0o755))
	write := func(path string, content []byte) {
		must.Do(b, os.WriteFile(path, content, 0o644)) //nolint:gosec // nginx reads it, too
	}
	blob := func(content []byte) *model.Layer {
		sum := digest.FromBytes(content)
		write(filepath.Join(blobs, sum.Encoded()), content)
		return &model.Layer{Digest: sum.String(), Size: int64(len(content))}
	}
	kernel := make([]byte, stormKernel)
	_, _ = rand.NewChaCha8([32]byte{}).Read(kernel) // never fails
	image := model.PinnedImage{
		Ref: "oci:" + dir + ":1", Repository: "oci:" + dir, Architecture: "amd64",
		Kernel: blob(kernel), Initrd: blob(make([]byte, stormInitrd)),
	}
	manifest := must.Get(json.Marshal(ocispec.Manifest{MediaType: ocispec.MediaTypeImageManifest}))(b)
	image.Digest = blob(manifest).Digest
	write(filepath.Join(dir, ocispec.ImageLayoutFile), []byte(`{"imageLayoutVersion":"`+ocispec.ImageLayoutVersion+`"}`))
	write(filepath.Join(dir, ocispec.ImageIndexFile), must.Get(json.Marshal(ocispec.Index{}))(b))
	return image
}

// stormPeers serves with Kea, tftpd and nginx what Ingot serves at the same addresses, and returns their processes.
func (l *link) stormPeers(fleet *bootFleet, image model.PinnedImage) (pids []int) {
	l.Helper()
	first, last, _ := strings.Cut(stormPool, "-")
	pids = append(pids, l.kea("4", fmt.Sprintf(`"next-server": %q, "boot-file-name": %q,
		"subnet4": [{"id": 1, "subnet": %q, "pools": [{"pool": "%s - %s"}], "relay": {"ip-addresses": [%q]}}],`,
		serverAddress, stormFile, stormNet, first, last, stormRelay4)))

	root := filepath.Join(l.dir, "www")
	for _, m := range fleet.servers {
		script := fmt.Sprintf("#!ipxe\nset ipxe-svc http://%[1]s\n"+
			"set kernel-url http://%[1]s/image?imageName=linux&layerDigest=%[2]s&uuid=%[3]s&version=1\n"+
			"set initrd-url http://%[1]s/image?imageName=linux&layerDigest=%[4]s&uuid=%[3]s&version=1\n"+
			"echo Loading kernel...\n"+
			"kernel ${kernel-url} initrd=initrd ip=any ignition.firstboot=1 ignition.config.url=http://%[1]s%[5]s ignition.platform.id=metal\n"+
			"echo Loading initrd...\ninitrd --name initrd ${initrd-url}\necho Booting...\nboot\n",
			stormHTTP, image.Kernel.Digest, m.UUID, image.Initrd.Digest, m.path(bootIgnition))
		config := strings.ReplaceAll(fleet.ignition, fleet.servers[0].Token, m.Token)
		for what, content := range map[string]string{bootScript: script, bootIgnition: config} {
			path := filepath.Join(root, m.path(what))
			must.Do(l, os.MkdirAll(filepath.Dir(path), 0o755))
			must.Do(l, os.WriteFile(path, []byte(content), 0o644)) //nolint:gosec // nginx reads it
		}
	}
	kernel := filepath.Join(strings.TrimPrefix(image.Repository, "oci:"), "blobs", "sha256", digest.Digest(image.Kernel.Digest).Encoded())
	must.Do(l, os.Symlink(kernel, filepath.Join(root, "image")))
	config := l.file("nginx.conf", fmt.Appendf(nil, `user root; daemon off; master_process off; pid %[1]s/nginx.pid; error_log stderr notice;
events { worker_connections 4096; }
http { access_log %[1]s/access.log; sendfile on; tcp_nopush on; server { listen %[2]s; root %[1]s/www; } }
`, l.dir, stormHTTP))
	pids = append(pids, l.serve("using the", nil, "nginx", "-c", config).Process.Pid)

	// tftpd keeps to one folder, and the loader may be a link out of it
	must.Do(l, os.Chmod(l.dir, 0o755)) // tftpd is not root when it reads
	must.Do(l, os.Mkdir(filepath.Join(l.dir, "tftp"), 0o755))
	l.file(filepath.Join("tftp", stormFile), must.Get(os.ReadFile(filepath.Join(stormFiles, stormFile)))(l))
	tftpd := l.serve("", nil, "in.tftpd", "-L", "-a", serverAddress+":69", "-s", filepath.Join(l.dir, "tftp")) // it says nothing
	return append(pids, tftpd.Process.Pid)
}

// storm boots all machines at the end of the link that is theirs, and returns what CPU time the servers used.
func (a *account) storm(fleet *bootFleet) (stormResult, time.Duration) {
	a.Helper()
	order := stormOrder{Loader: must.Get(os.Stat(filepath.Join(stormFiles, stormFile)))(a).Size()}
	for n, m := range fleet.servers {
		order.Machines = append(order.Machines, stormMachine{m.UUID, must.Get(net.ParseMAC(bootMAC(n)))(a)})
	}
	cmd := command(a.client, os.Args[0])
	cmd.Env = append(os.Environ(), stormVariable+"=1")
	cmd.Stdin, cmd.Stderr = bytes.NewReader(must.Get(json.Marshal(order))(a)), os.Stderr
	before := a.used()
	out := must.Get(cmd.Output())(a)
	cpu := a.used() - before
	var result stormResult
	must.Do(a, json.Unmarshal(out, &result))
	for _, problem := range result.Problems {
		a.Log(problem)
	}
	return result, cpu
}

// account counts the CPU time of processes and of all that they start: tftpd has a process for each transfer and does
// not wait for it. It is a control group, of either version.
type account struct {
	*link
	dir, file, before string
	unit              time.Duration
}

// account makes one that ends after all that serves on the link.
func (l *link) account() *account {
	l.Helper()
	for root, a := range map[string]*account{
		"/sys/fs/cgroup":         {l, "", "cpu.stat", "usage_usec ", time.Microsecond},
		"/sys/fs/cgroup/cpuacct": {l, "", "cpuacct.usage", "", time.Nanosecond},
	} {
		if _, err := os.Stat(filepath.Join(root, a.file)); err != nil {
			continue
		}
		var err error
		if a.dir, err = os.MkdirTemp(root, "ingot-bench"); err == nil {
			l.Cleanup(func() { must.Do(l, os.Remove(a.dir)) })
			return a
		}
	}
	l.Skip("NOT MEASURED: no control group can be made here that counts CPU time")
	return nil
}

func (a *account) add(pids ...int) {
	a.Helper()
	for _, pid := range pids {
		must.Do(a, os.WriteFile(filepath.Join(a.dir, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0o644)) //nolint:gosec // it exists
	}
}

func (a *account) used() time.Duration {
	a.Helper()
	stat := must.Get(os.ReadFile(filepath.Join(a.dir, a.file)))(a)
	return time.Duration(number(wordAfter(string(stat), a.before))) * a.unit
}
