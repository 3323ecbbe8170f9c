package netboot

import (
	"net/netip"
	"net/url"
	"path"
	"strings"

	"ingot/model"
)

// The longest names that a packet has room for: option 67 holds one byte of
// length, the header's field file 128 bytes with a zero at their end (RFC 2132
// §9.5, RFC 2131 §2).
const (
	maxURL      = 255
	maxTFTPName = 127
)

// BootFile names the boot file that c is told, given the ticket o of its server;
// it is the only place that names one. It is false when c is to be told none, and
// Answer.Reason then says why.
//
// A server with a ticket that lets it boot is led in as few steps as its firmware
// allows: UEFI that speaks HTTP to the UKI, if the image has one; all other
// firmware to a boot loader; the boot loader to its script. iPXE is never told a
// loader, or it would load itself for ever.
func (s Site) BootFile(c Client, o model.TicketHolder, l *Loaders) (Answer, bool) {
	if reason := refusal(c, o); reason != "" {
		return Answer{Reason: reason}, false
	}
	a := s.file(c, o, l)
	a.Ticket = o.Ticket
	return s.fitting(c, a)
}

// fitting returns an answer that fits into the packet it is told by, or why there is none.
func (s Site) fitting(c Client, a Answer) (Answer, bool) {
	switch {
	case a.Reason != "":
	case a.HTTP && len(a.File) > maxURL, !a.HTTP && len(a.File) > maxTFTPName, c.V6 && len(a.URL(s)) > maxURL:
		a.Reason = ReasonTooLong
	}
	if a.Reason != "" {
		return Answer{Ticket: a.Ticket, Reason: a.Reason}, false
	}
	return a, true
}

// refusal returns why c boots nothing, whatever there is to boot. metalprobe runs
// on a machine that has booted, so it is told where its Ignition is for as long as
// that is served (see WithoutToken): a machine that lost it half way asks again.
func refusal(c Client, o model.TicketHolder) Reason {
	switch {
	case c.Kind == KindNone:
		return ReasonNotAsked
	case c.Kind == KindProbe && !WithoutToken(o.Ticket), c.Kind != KindProbe && !o.Ticket.MayBoot(o.Progress):
		return ReasonNoTicket
	}
	return ""
}

// WithoutToken reports whether t's Ignition is given to the machine that holds its
// server's lease, without a token, which a UKI has nowhere to keep. A tenant's is
// given away so only where it must be: who forges a MAC address on its own
// segment may take over a lease.
func WithoutToken(t *model.Ticket) bool {
	return InUse(t) && (t.Purpose != model.PurposeClaim || t.Image.UKI != nil)
}

// InUse reports whether t's Ignition and layers may be fetched: while it is open, once
// the system that ran before it is off, and, for a ticket that boots always, after it
// served its purpose.
func InUse(t *model.Ticket) bool {
	return t.Open() && !t.AwaitingOff || t != nil && t.Always && t.Ended == model.TicketBooted
}

func (s Site) file(c Client, o model.TicketHolder, l *Loaders) Answer {
	t := o.Ticket
	switch c.Kind {
	case KindProbe:
		return Answer{File: s.HTTP + "/ignition/" + t.UUID, HTTP: true}
	case KindIPXE:
		// iPXE heeds the offer of a proxy only if it is a PXE server's
		return Answer{File: s.HTTP + "/ipxe/" + t.UUID, HTTP: true, VendorClass: v4Only(c, pxeClient)}
	case KindHTTP:
		if ukiFits(c.Arch, &t.Image) {
			return Answer{File: s.HTTP + UKIPath(t), HTTP: true, VendorClass: httpClient}
		}
		return s.loader(c, o.Server, l)
	case KindPXE:
		return s.loader(c, o.Server, l)
	case KindNone:
	}
	return Answer{Reason: ReasonNotAsked}
}

func (s Site) loader(c Client, server model.ServerName, l *Loaders) Answer {
	name, reason := l.choose(c, server)
	if c.Kind == KindHTTP {
		return Answer{File: s.HTTP + LoaderPath(name), HTTP: true, Loader: true, VendorClass: httpClient, Reason: reason}
	}
	if reason == "" && !s.TFTP.IsValid() {
		reason = ReasonNoTFTP
	}
	return Answer{File: name, Loader: true, VendorClass: v4Only(c, pxeClient), Reason: reason}
}

// v4Only returns the vendor class of a PXE server. UEFI takes a DHCPv6 answer that
// shows it for one that leads on to a boot server on port 4011, so there it is
// left out.
func v4Only(c Client, class string) string {
	if c.V6 {
		return ""
	}
	return class
}

// ukiFits reports whether img has a UKI that firmware of architecture a can start.
func ukiFits(a Arch, img *model.PinnedImage) bool {
	p := archs[a].platform
	return img.UKI != nil && p != nil && p.image != "" && (img.Architecture == "" || p.image == img.Architecture)
}

// Text says what a client is told to boot, or why it is told nothing; "" of one that does not ask.
// It says the kind of what has a URL.
func (a Answer) Text() string {
	switch {
	case a.Kind == KindNone:
		return ""
	case a.Reason != "":
		return "no boot file: " + string(a.Reason)
	case a.Loader:
		return "boots " + path.Base(a.File)
	case a.Kind == KindIPXE:
		return "boots its script"
	case a.Kind == KindProbe:
		return "fetches Ignition"
	}
	return "boots a UKI"
}

// URL returns the boot file as a URL, which is what DHCPv6 wants of every file (RFC
// 5970 §3.1).
func (a Answer) URL(s Site) string {
	if a.HTTP {
		return a.File
	}
	return "tftp://" + hostOf(s.TFTP) + "/" + url.PathEscape(a.File)
}

// hostOf writes an address as the host of a URL (RFC 3986 §3.2.2).
func hostOf(a netip.Addr) string {
	a = a.Unmap().WithZone("")
	if a.Is4() {
		return a.String()
	}
	return "[" + a.String() + "]"
}

// UKIPath is where t's UKI is, under a name that ends in .efi, for UEFI firmware
// looks at that. t's image must have one.
func UKIPath(t *model.Ticket) string {
	return "/httpboot/" + t.Image.Repository + "/" + strings.Replace(t.Image.UKI.Digest, ":", "-", 1) + ".efi?uuid=" + t.UUID
}

// LoaderPath is where a boot loader is.
func LoaderPath(name string) string { return "/loader/" + name }

// HTTPClient is the UEFI firmware of a machine of an architecture (amd64, arm64 …)
// that boots by HTTP.
func HTTPClient(architecture string) Client {
	of := map[string]Arch{
		"386": ArchIA32HTTP, "amd64": ArchX64HTTP, "arm": ArchARM32HTTP, "arm64": ArchARM64HTTP,
		"riscv": ArchRISCV32HTTP, "riscv64": ArchRISCV64HTTP, "loong64": ArchLoong64HTTP,
	}
	c := Client{Kind: KindHTTP, Arch: ArchUnknown}
	if a, ok := of[architecture]; ok {
		c.Arch = a
	}
	return c
}
