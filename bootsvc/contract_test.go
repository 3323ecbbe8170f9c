package bootsvc

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"ingot/bootsvc/netboot"
	"ingot/bootsvc/oci/ociserver"
	"ingot/bootsvc/tftp"
	"ingot/model"
	"ingot/model/must"
)

// TestEveryBootFileCanBeFetched joins who names boot files with who serves them:
// for each architecture and kind of client, over either version of IP, with an
// image that has a UKI and one that has none, what BootFile names is fetched from
// real servers.
func TestEveryBootFileCanBeFetched(t *testing.T) {
	t.Cleanup(http.DefaultTransport.(*http.Transport).CloseIdleConnections)
	files := loaders(
		t, "undionly.kpxe", "ipxe-ia32.efi", "ipxe.efi", "snp-arm32.efi", "snp-arm64.efi", "snp-riscv32.efi", "snp-riscv64.efi",
		"snp-loong64.efi",
	)
	r := newRack(t, nil, func(o *Options) {
		o.Loaders = files
		leaseTable{"127.0.0.1": mac1, "::1": mac1}.bind(o)
	})
	ref, _, err := r.registry.Push(
		"os/both", "1", ociserver.Image{Kernel: []byte("kernel"), Initrd: []byte("initrd"), UKI: []byte("this is a UKI")},
	)
	if err != nil {
		t.Fatal(err)
	}
	r.ticket.Purpose = model.PurposeDiscovery
	withUKI := *r.ticket
	withUKI.Image = must.Get(r.service.images.Resolve(t.Context(), ref, "amd64"))(t)
	port := serveTFTP(t, files)

	served := make(map[string]int)
	for _, ticket := range []*model.Ticket{r.ticket, &withUKI} {
		r.desk.arm(ticket, "{}")
		for _, kind := range []netboot.Kind{netboot.KindPXE, netboot.KindHTTP, netboot.KindIPXE, netboot.KindProbe} {
			for code := range 64 {
				for _, host := range []string{"127.0.0.1", "::1"} {
					r.desk.arm(ticket, `{"ignition":{}}`) // nothing was fetched yet
					r.desk.holders[mac1] = r.desk.holders[uuid1]
					r.service.scripts = netboot.NewScriptLimiter()
					site := netboot.Site{HTTP: r.URL, TFTP: netip.MustParseAddr(host)}
					c := netboot.Client{Kind: kind, Arch: netboot.Arch(code), V6: host == "::1"}
					answer, ok := site.BootFile(c, *r.desk.holders[uuid1], files)
					if !ok {
						if c.Arch.Known() || kind == netboot.KindIPXE || kind == netboot.KindProbe {
							t.Errorf("%s %s is told nothing: %s", kind, c.Arch, answer.Reason)
						}
						continue
					}
					got := fetchBootFile(t, answer, site, port)
					what := contentsOf(got)
					if want := expected(kind, c.Arch, ticket); what != want {
						t.Errorf("%s %s is told %s, which is %s, want %s", kind, c.Arch, answer.URL(site), what, want)
					}
					served[what]++
				}
			}
		}
	}
	if len(served) != 8+3 {
		t.Errorf("these were served: %v", served)
	}
}

func contentsOf(body string) string {
	switch {
	case strings.HasPrefix(body, "#!ipxe") && strings.Contains(body, "\nkernel "):
		return "script"
	case strings.HasPrefix(body, `{"ignition":`):
		return "Ignition"
	}
	return strings.TrimPrefix(body, "this is ")
}

// expected is what a client must get, apart from what names it.
func expected(kind netboot.Kind, a netboot.Arch, t *model.Ticket) string {
	x64 := a == 7 || a == 9 || a == 16 || a == 17
	switch {
	case kind == netboot.KindIPXE:
		return "script"
	case kind == netboot.KindProbe:
		return "Ignition"
	case kind == netboot.KindHTTP && t.Image.UKI != nil && x64:
		return "a UKI"
	case x64:
		return "ipxe.efi"
	}
	return map[netboot.Arch]string{
		0: "undionly.kpxe", 20: "undionly.kpxe", 6: "ipxe-ia32.efi", 15: "ipxe-ia32.efi",
		10: "snp-arm32.efi", 18: "snp-arm32.efi", 11: "snp-arm64.efi", 19: "snp-arm64.efi", 41: "snp-arm64.efi",
		25: "snp-riscv32.efi", 26: "snp-riscv32.efi", 27: "snp-riscv64.efi", 28: "snp-riscv64.efi",
		39: "snp-loong64.efi", 40: "snp-loong64.efi",
	}[a]
}

// fetchBootFile fetches a boot file as its client does: HEAD before GET, no redirects.
func fetchBootFile(t *testing.T, a netboot.Answer, site netboot.Site, port int) string {
	t.Helper()
	if !a.HTTP {
		return fetchTFTP(t, netip.AddrPortFrom(site.TFTP, uint16(port)), a.File)
	}
	head := must.Get(http.NewRequestWithContext(t.Context(), http.MethodHead, a.File, nil))(t)
	first := must.Get(http.DefaultTransport.RoundTrip(head))(t)
	_ = first.Body.Close()
	resp, body, err := get(t, a.File)
	if err != nil || resp.StatusCode != http.StatusOK || first.StatusCode != http.StatusOK {
		t.Errorf("%s: HEAD %s, GET %s %s, %v", a.File, first.Status, resp.Status, body, err)
	}
	if first.ContentLength != int64(len(body)) || resp.ContentLength != int64(len(body)) || len(resp.TransferEncoding) > 0 {
		t.Errorf(
			"T08: %s has %d bytes, and HEAD says %d, GET %d %v", a.File, len(body), first.ContentLength, resp.ContentLength,
			resp.TransferEncoding,
		)
	}
	if path, _, _ := strings.Cut(a.File, "?"); strings.HasSuffix(path, ".efi") && resp.Header.Get("Content-Type") != "application/efi" {
		t.Errorf("T08: %s is %s", a.File, resp.Header.Get("Content-Type"))
	}
	return string(body)
}

// fetchTFTP fetches a file by TFTP as the oldest of clients does, without options
// (RFC 1350 §2).
func fetchTFTP(t *testing.T, at netip.AddrPort, name string) string {
	t.Helper()
	conn, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(at))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	packet := make([]byte, 4+512)
	_, err = conn.Write([]byte("\x00\x01" + name + "\x00octet\x00"))
	for body := ""; ; {
		if err == nil {
			err = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
		}
		n := 0
		if err == nil {
			n, err = conn.Read(packet)
		}
		if err != nil || n < 4 || packet[1] != 3 {
			t.Errorf("tftp://%s/%s: %v, %q", at, name, err, packet[:n])
			return body
		}
		body += string(packet[4:n])
		if _, err = conn.Write([]byte{0, 4, packet[2], packet[3]}); n < len(packet) {
			return body
		}
	}
}

func serveTFTP(t *testing.T, files *netboot.Loaders) int {
	t.Helper()
	s := must.Get(tftp.New(tftp.Options{Loaders: files}))(t)
	must.Do(t, s.Listen(t.Context(), ":0"))
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := s.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		cancel()
		wg.Wait()
	})
	at := must.Get(netip.ParseAddrPort(s.Addr().String()))(t)
	return int(at.Port())
}
