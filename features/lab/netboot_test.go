package lab

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ingot/bmc/sim"
	"ingot/bootsvc/oci/ociserver"
	"ingot/features/internal/rig"
	"ingot/model/must"
)

func pretendedProbe(t *testing.T, on *rig.Namespace) (reference string) {
	t.Helper()
	reference, _, err := rig.NewImages(t, on).Push("probe", "1", ociserver.Image{
		Kernel: []byte("probe kernel"), Initrd: []byte("probe initrd"), Squashfs: []byte("probe root"), UKI: []byte("probe uki"),
	})
	if err != nil {
		t.Fatal(err)
	}
	return reference
}

// bootClient is firmware, as its DHCP packets show it.
type bootClient struct {
	rule    string
	kind    clientKind
	options func(uuid string) []string
	// want is the boot file: the name of a TFTP file, or the beginning of a URL.
	want, vendor string
	fetch        func(t *testing.T, on *rig.Namespace, got lease)
}

// optionUUID is option 97 (RFC 4578 §2.3) with a UUID as it is written.
func optionUUID(uuid string) string { return "0x61:00" + strings.ReplaceAll(uuid, "-", "") }

func colons(hexadecimal string) string {
	var parts []string
	for i := 0; i+1 < len(hexadecimal); i += 2 {
		parts = append(parts, hexadecimal[i:i+2])
	}
	return strings.Join(parts, ":")
}

// sendVendorClass6 is option 16 (RFC 8415 §21.16) as EDK II fills it in.
func sendVendorClass6(class string) string {
	const enterprise = "00000157"
	return "send dhcp6.vendor " + colons(enterprise+fmt.Sprintf("%04x", len(class))+hex.EncodeToString([]byte(class))) + ";"
}

func pxe(vendorClass, arch string, more ...string) func(string) []string {
	return func(uuid string) []string {
		return append([]string{"-V", vendorClass, "-x", "0x5d:" + arch, "-x", optionUUID(uuid)}, more...)
	}
}

// bootClients are the kinds of firmware. Each asks for a server whose ticket is
// open, and then as one that has none.
var bootClients = []bootClient{
	{
		rule: "a BIOS is told iPXE by TFTP", kind: udhcpc,
		options: pxe("PXEClient:Arch:00000:UNDI:002001", "0000"), want: "undionly.kpxe", fetch: fetchTFTP,
	},
	{
		rule: "UEFI is told iPXE by TFTP", kind: udhcpc,
		options: pxe("PXEClient:Arch:00007:UNDI:003016", "0007"), want: "ipxe.efi", fetch: fetchTFTP,
	},
	{
		rule: "iPXE is told its script", kind: udhcpc,
		options: pxe("PXEClient:Arch:00000:UNDI:002001", "0000", "-x", "0x4d:69505845"), want: rig.BootURL + "/ipxe", fetch: fetchScript,
	},
	{
		rule: "UEFI HTTP boot is told a program by HTTP", kind: udhcpc,
		options: pxe("HTTPClient:Arch:00016:UNDI:003001", "0010"), want: rig.BootURL + "/", vendor: "HTTPClient", fetch: fetchEFI,
	},
	{
		rule: "UEFI is told iPXE when dhclient asks for it", kind: dhclient4,
		options: func(uuid string) []string {
			return []string{
				`send vendor-class-identifier "PXEClient:Arch:00007:UNDI:003016";`, "send arch 7;",
				"send machine 00:" + colons(strings.ReplaceAll(uuid, "-", "")) + ";",
			}
		}, want: "ipxe.efi", fetch: fetchTFTP,
	},
	{
		rule: "UEFI over IPv6 is told iPXE by TFTP", kind: dhclient6,
		options: func(string) []string {
			return []string{
				"send dhcp6.client-arch-type 7;",
				sendVendorClass6("PXEClient:Arch:00007:UNDI:003016"),
			}
		}, want: "tftp://[" + rig.ServerAddress6 + "]/ipxe.efi", fetch: fetchTFTP,
	},
	{
		rule: "iPXE over IPv6 is told its script", kind: dhclient6,
		options: func(string) []string {
			return []string{"send dhcp6.client-arch-type 7;", "send dhcp6.user " + colons("0004"+hex.EncodeToString([]byte("iPXE"))) + ";"}
		}, want: rig.BootURL6 + "/ipxe", fetch: fetchScript,
	},
	{
		rule: "UEFI HTTP boot over IPv6 is told a program by HTTP", kind: dhclient6,
		options: func(string) []string {
			return []string{
				"send dhcp6.client-arch-type 16;",
				sendVendorClass6("HTTPClient:Arch:00016:UNDI:003001"),
			}
		}, want: rig.BootURL6 + "/", fetch: fetchEFI,
	},
}

func TestWhatFirmwareIsTold(t *testing.T) {
	rig.Need(t, rig.ToolDhclient, rig.ToolDhcrelay)
	rig.NeedFile(t, filepath.Join(rig.LoaderFolder, "undionly.kpxe"), "ipxe")
	t.Parallel()
	r := newRack(t)
	r.addRelay(t)
	// the machines find no boot service, so their tickets stay open
	facts := r.server.StartRack(t, rig.RackOrder{BMCs: 2 * len(bootClients), BootURL: "http://127.0.0.1:1", Delays: sim.FastDelays()})
	settings := fmt.Sprintf("tftp: {listen: \":69\"}\ndiscovery: {image: %q}\n", pretendedProbe(t, r.server))
	i := rig.NewIngot(t, r.server, rackNetwork+settings)
	i.CommitRack(t, facts)
	i.Start(t)
	for _, s := range facts.Servers {
		i.StatusHas(t, rig.Patience, "servers/"+s.Name+".yaml", "Discovery")
	}
	for n, c := range bootClients {
		for _, relayed := range []bool{false, true} {
			where, index := "", 2*n
			if relayed {
				where, index = ", through a relay", 2*n+1
			}
			t.Run(c.rule+where, func(t *testing.T) {
				t.Parallel()
				server := facts.Servers[index]
				on := r.host(t, relayed, server.MAC)
				got := c.ask(t, on, server.UUID)
				if !strings.HasPrefix(got.BootFile, c.want) {
					t.Fatalf("is told %q, want %q", got.BootFile, c.want)
				}
				if c.vendor != "" && got.VendorClass != c.vendor {
					t.Errorf("is told by %q, want %q, or firmware looks away", got.VendorClass, c.vendor)
				}
				if relayed && c.kind.family == 6 { // dhcrelay does not say what it saw (RFC 6939)
					script := rig.BootURL6 + "/ipxe/" + server.UUID
					wantCode(t, on, script, http.StatusForbidden)
					i.Commit(t, "hosts/"+server.Name+".yaml", rig.Endpoint(server.Name, server.MAC, got.Address.String()))
					rig.Eventually(t, rig.Patience, func() error {
						_, err := on.Get(script)
						return err
					})
				}
				c.fetch(t, on, got)
				i.StatusHas(t, rig.Patience, "servers/"+server.Name+".yaml", "DHCP")
			})
		}
		t.Run("without a ticket nothing is told: "+c.rule, func(t *testing.T) {
			t.Parallel()
			if got := c.ask(t, r.nextHost(t, false), "00000000-0000-4000-8000-000000000001"); got.BootFile != "" || got.TFTPServer != "" {
				t.Errorf("is told %q on %q", got.BootFile, got.TFTPServer)
			}
		})
	}
}

func (b bootClient) ask(t *testing.T, on *rig.Namespace, uuid string) lease {
	t.Helper()
	c := newClient(t, b.kind, on, b.options(uuid)...)
	c.start(t)
	return c.mustAwait(t)
}

func fetchTFTP(t *testing.T, on *rig.Namespace, got lease) {
	t.Helper()
	to, from, name := filepath.Join(t.TempDir(), "loader"), got.TFTPServer, got.BootFile
	if u, err := url.Parse(name); err == nil && u.Scheme == "tftp" {
		from, name = u.Hostname(), strings.TrimPrefix(u.Path, "/")
	}
	if out, err := on.Run(t, rig.Patience, "busybox", "tftp", "-g", "-b", "1468", "-r", name, "-l", to, from); err != nil {
		t.Fatalf("fetch %s from %s: %v: %s", name, from, err, out)
	}
	fetched := must.Get(os.ReadFile(to))(t)
	want := must.Get(os.ReadFile(filepath.Join(rig.LoaderFolder, name)))(t)
	if !bytes.Equal(fetched, want) {
		t.Errorf("%s is %d bytes, and %d bytes on disk that differ", name, len(fetched), len(want))
	}
}

func fetchScript(t *testing.T, on *rig.Namespace, got lease) {
	t.Helper()
	script := must.Get(on.Get(got.BootFile))(t)
	if !containsAll(script, "#!ipxe", "kernel", "initrd") {
		t.Errorf("the script boots nothing:\n%s", script)
	}
}

func fetchEFI(t *testing.T, on *rig.Namespace, got lease) {
	t.Helper()
	resp := must.Get(on.Web().Head(got.BootFile))(t)
	resp.Body.Close()
	body := must.Get(on.Get(got.BootFile))(t)
	if resp.StatusCode != http.StatusOK || resp.ContentLength != int64(len(body)) || resp.Header.Get("Content-Type") != "application/efi" {
		t.Errorf("HEAD %s: %s, %d bytes of %q; the program has %d",
			got.BootFile, resp.Status, resp.ContentLength, resp.Header.Get("Content-Type"), len(body))
	}
}
