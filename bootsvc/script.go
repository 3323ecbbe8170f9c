package bootsvc

import (
	"errors"
	"fmt"
	"strings"

	"ingot/bootsvc/ignition"
	"ingot/bootsvc/internal/syntax"
	"ingot/bootsvc/netboot"
	"ingot/bootsvc/oci"
	"ingot/model"
)

// consoleArguments are the kernel arguments that every boot has.
const consoleArguments = "console=ttyS0,115200 console=tty0 console=ttyAMA0 earlyprintk=ttyS0,115200 consoleblank=0"

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

// DiskBoot is a way to have a machine boot from its disk (annotation
// ingot/boot-from-disk of a Server): some firmware goes back to its menu when iPXE
// ends.
type DiskBoot string

// The ways to boot from disk.
const (
	DiskExit     DiskBoot = "exit"     // end iPXE, firmware goes on to its next device
	DiskSANBoot  DiskBoot = "sanboot"  // have iPXE boot the first disk
	DiskNotFound DiskBoot = "http-404" // serve no script at all
)

// diskScript has a machine boot from its disk; whatever is not known ends iPXE. id
// is in canonical form.
func diskScript(id string, method DiskBoot) string {
	head := "#!ipxe\necho Ingot: no boot ticket for " + id + ", booting from disk\n"
	if method == DiskSANBoot {
		return head + "sanboot --no-describe --drive 0x80 ||\nexit\n"
	}
	return head + "exit\n"
}

// loopScript stops a machine that goes round in circles: it says why, and keeps
// the machine from asking again at once. id is in canonical form.
func loopScript(id string) string {
	return "#!ipxe\n" +
		"echo Ingot: " + id + " fetched its boot script several times and never its kernel\n" +
		"echo Ingot: it is not sent round again for now, see ingot explain server\n" +
		"sleep 60\nexit\n"
}

// ticketScript boots what a ticket pins, as its payload says. Everything in it
// is checked first, so that no value can become a line of its own.
func ticketScript(base string, b *boot, o scriptOptions) (string, error) {
	err := b.err
	if err == nil {
		o.arguments, err = ignition.KernelArguments(o.arguments)
	}
	if err != nil {
		return "", fmt.Errorf("iPXE script of ticket %s: %w", b.ticket.ID, err)
	}
	s := script{base: base, ticket: b.ticket, token: b.token, options: o}
	s.text.Grow(2048)
	s.add("#!ipxe\nset ipxe-svc ", base, "\n")
	img := &b.ticket.Image
	if img.Kernel == nil {
		s.add("set uki-url ", base, netboot.UKIPath(b.ticket), "\n")
		s.add("echo Loading kernel...\nkernel ${uki-url}")
		s.arguments()
		s.add("echo Booting...\nboot\n")
		return s.text.String(), nil
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
	return s.text.String(), nil
}

type script struct {
	text    strings.Builder
	base    string
	ticket  *model.Ticket
	token   model.Sensitive
	options scriptOptions
}

func (s *script) add(texts ...string) {
	for _, text := range texts {
		s.text.WriteString(text)
	}
}

// arguments ends the kernel's line. A semicolon within a word, as cloud-init wants
// it, is no end of a command to iPXE.
func (s *script) arguments() {
	uuid, token := s.ticket.UUID, s.token.Reveal()
	if s.options.noCloud {
		s.add(" ip=any ds=nocloud;s=", s.base, "/nocloud/", uuid, "/", token, "/ ", consoleArguments)
	} else {
		s.add(" ip=any ignition.firstboot=1 ignition.config.url=", s.base, "/ignition/", uuid, "/", token, " ignition.platform.id=metal ", consoleArguments)
	}
	if s.options.arguments != "" {
		s.add(" ", s.options.arguments)
	}
	s.add("\n")
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
	from := 0
	for i := range len(value) {
		if escaped := queryEscapes[value[i]]; escaped != "" {
			s.add(value[from:i], escaped)
			from = i + 1
		}
	}
	s.add(value[from:])
}

// queryEscapes are the bytes of names and digests that do not stand for themselves in a
// query.
var queryEscapes = [256]string{':': "%3A", '/': "%2F", '[': "%5B", ']': "%5D"}

// checkTicket refuses a ticket that holds anything but names and digests of the
// expected form.
func checkTicket(t *model.Ticket, token model.Sensitive) error {
	img := &t.Image
	switch {
	case !syntax.UUID(t.UUID):
		return errors.New("its UUID is not canonical")
	case !syntax.Token(token.Reveal()):
		return errors.New("its token is not made of lower-case letters and digits")
	case !model.IsImageName(img.Repository) || !model.IsImageDigest(img.Digest):
		return errors.New("its image is not pinned by repository and digest")
	case (img.Kernel == nil || img.Initrd == nil) && img.UKI == nil:
		return errors.New("its image has neither kernel and initramfs nor UKI")
	}
	for _, l := range oci.Layers(img) {
		if l != nil && (!model.IsImageDigest(l.Digest) || l.Size <= 0) {
			return errors.New("its image has a layer without digest or size")
		}
	}
	return nil
}

// blankUUID reports whether id, in lower case, is what firmware shows that has no UUID.
func blankUUID(id string) bool {
	return id == "00000000-0000-0000-0000-000000000000" || id == "ffffffff-ffff-ffff-ffff-ffffffffffff"
}
