package bootsvc

import (
	"errors"
	"fmt"
	"strings"

	"ingot/bootsvc/netboot"
	"ingot/model"
)

// consoleArguments are the kernel arguments that every boot ends with.
const consoleArguments = "ignition.platform.id=metal console=ttyS0,115200 console=tty0 console=ttyAMA0 earlyprintk=ttyS0,115200 consoleblank=0"

// chainScript sends iPXE on to the script of its own machine. Firmware that knows
// no UUID shows none, zeros or all bits set; such a machine is known by its MAC
// address.
func chainScript(base string) string {
	return `#!ipxe
set ipxe-svc ` + base + `
set base-url ${ipxe-svc}/ipxe
isset ${uuid} || goto mac
iseq ${uuid} 00000000-0000-0000-0000-000000000000 && goto mac ||
iseq ${uuid} ffffffff-ffff-ffff-ffff-ffffffffffff && goto mac ||
chain --replace --autofree ${base-url}/${uuid}
exit
:mac
chain --replace --autofree ${base-url}/${net0/mac}
`
}

// diskScript lets the firmware go on to its next boot device. id is in canonical
// form.
func diskScript(id string) string {
	return "#!ipxe\necho Ingot: no boot ticket for " + id + ", booting from disk\nexit\n"
}

// loopScript stops a machine that goes round in circles: it says why, and keeps
// the machine from asking again at once. id is in canonical form.
func loopScript(id string) string {
	return "#!ipxe\n" +
		"echo Ingot: " + id + " fetched its boot script several times and never its kernel\n" +
		"echo Ingot: it is not sent round again for now, see ingot explain server\n" +
		"sleep 60\nexit\n"
}

// ticketScript boots what t pins. Everything in it is checked first, so that no
// value can become a line of its own.
func ticketScript(base string, t *model.Ticket, token model.Sensitive) (string, error) {
	if err := checkTicket(t, token); err != nil {
		return "", fmt.Errorf("iPXE script of ticket %s: %w", t.ID, err)
	}
	s := script{base: base, ticket: t, token: token}
	s.b.Grow(2048)
	s.add("#!ipxe\nset ipxe-svc ", base, "\n")
	img := t.Image
	if img.Kernel == nil {
		s.add("set uki-url ", base, netboot.UKIPath(t), "\n")
		s.add("echo Loading kernel...\nkernel ${uki-url}")
		s.arguments()
		s.add("echo Booting...\nboot\n")
		return s.b.String(), nil
	}
	s.setLayer("kernel-url", img.Kernel)
	s.setLayer("initrd-url", img.Initrd)
	if img.Squashfs != nil {
		s.setLayer("squashfs-url", img.Squashfs)
	}
	s.add("echo Loading kernel...\nkernel ${kernel-url} initrd=initrd")
	if img.Squashfs != nil {
		s.add(" gl.ovl=/:tmpfs gl.url=${squashfs-url} gl.live=1")
	}
	s.arguments()
	// on UEFI the kernel asks for the file that its argument initrd= names, and an
	// image is named after its URL's path unless it is told another name
	s.add("echo Loading initrd...\ninitrd --name initrd ${initrd-url}\n")
	s.add("echo Booting...\nboot\n")
	return s.b.String(), nil
}

// script is the script of a ticket in the making.
type script struct {
	b      strings.Builder
	base   string
	ticket *model.Ticket
	token  model.Sensitive
}

func (s *script) add(texts ...string) {
	for _, text := range texts {
		s.b.WriteString(text)
	}
}

// arguments ends the kernel's line.
func (s *script) arguments() {
	s.add(" ip=any ignition.firstboot=1 ignition.config.url=", s.base, "/ignition/", s.ticket.UUID, "/", s.token.Reveal(), " ", consoleArguments, "\n")
}

// setLayer sets a variable to where a layer is. The URL says which server asks,
// for many servers boot the same image. Its keys are in order and escaped, as
// metal-operator's are.
func (s *script) setLayer(variable string, l *model.Layer) {
	s.add("set ", variable, " ", s.base, "/image?imageName=")
	s.escape(s.ticket.Image.Repository)
	s.add("&layerDigest=")
	s.escape(l.Digest)
	s.add("&uuid=", s.ticket.UUID, "&version=")
	s.escape(s.ticket.Image.Digest)
	s.add("\n")
}

// escape adds a name or a digest, which checkTicket has seen, as a value of a
// query.
func (s *script) escape(value string) {
	for value != "" {
		i := strings.IndexAny(value, ":/[]")
		if i < 0 {
			s.add(value)
			return
		}
		s.add(value[:i], percentEscape(value[i:i+1]))
		value = value[i+1:]
	}
}

// checkTicket refuses a ticket that holds anything but names and digests of the
// expected form.
func checkTicket(t *model.Ticket, token model.Sensitive) error {
	img := &t.Image
	switch {
	case !validUUID(t.UUID):
		return errors.New("its UUID is not canonical")
	case !validToken(token.Reveal()):
		return errors.New("its token is not made of lower-case letters and digits")
	case !validName(img.Repository) || !validDigest(img.Digest):
		return errors.New("its image is not pinned by repository and digest")
	case (img.Kernel == nil || img.Initrd == nil) && img.UKI == nil:
		return errors.New("its image has neither kernel and initramfs nor UKI")
	}
	for _, l := range layersOf(img) {
		if l != nil && (!validDigest(l.Digest) || l.Size <= 0) {
			return errors.New("its image has a layer without digest or size")
		}
	}
	return nil
}

// layersOf returns an image's layers in the order in which they are booted; those
// that it lacks are nil.
func layersOf(img *model.PinnedImage) [4]*model.Layer {
	return [4]*model.Layer{img.Kernel, img.Initrd, img.Squashfs, img.UKI}
}

// validToken reports whether s is made as boot tickets' tokens are.
func validToken(s string) bool {
	if len(s) < 16 || len(s) > 64 {
		return false
	}
	for _, c := range []byte(s) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			return false
		}
	}
	return true
}

// validName reports whether s can be registry/repository: nothing in it means
// anything to iPXE or a URL.
func validName(s string) bool {
	for _, c := range []byte(s) {
		switch {
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9':
		case c == '.', c == '-', c == '_', c == '/', c == ':', c == '[', c == ']':
		default:
			return false
		}
	}
	return len(s) > 2 && len(s) <= maxReference && strings.Contains(s, "/") && !strings.Contains(s, "..") && !strings.Contains(s, "//")
}

// machineID returns the canonical form of the last element of an iPXE path: a
// UUID of any case, or a MAC address.
func machineID(s string) (string, bool) {
	id := strings.ToLower(s)
	if validUUID(id) {
		return id, true
	}
	if len(id) != 17 {
		return "", false
	}
	id = strings.ReplaceAll(id, "-", ":")
	for i := range 6 {
		if !isHex(id[3*i:3*i+2]) || i < 5 && id[3*i+2] != ':' {
			return "", false
		}
	}
	return id, true
}
