package wipe

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Sections are those of the NVM Express Base Specification, revision 2.0.

// Admin commands (§5).
const (
	nvmeGetLogPage = 0x02 // §5.16
	nvmeIdentify   = 0x06 // §5.17
	nvmeFormatNVM  = 0x80 // §5.14
	nvmeSanitize   = 0x84 // §5.24
)

// What Identify returns, by CNS (§5.17.1).
const (
	identifyNamespace  = 0x00
	identifyController = 0x01
	activeNamespaces   = 0x02
	allocNamespaces    = 0x10
	attachedTo         = 0x12
)

const identifySize = 4096

// nvmeCommand is an admin command with its data.
type nvmeCommand struct {
	opcode    byte
	namespace uint32
	dword10   uint32
	data      []byte // filled with the answer; nil for none
	timeout   time.Duration
}

// nvmePassthrough is struct nvme_passthru_cmd of linux/nvme_ioctl.h.
type nvmePassthrough struct {
	Opcode, Flags              uint8
	_                          uint16
	Namespace                  uint32
	_                          [2]uint32
	_                          uint64
	Address                    uint64
	_                          uint32
	Length                     uint32
	Dword10, Dword11           uint32
	_                          [4]uint32
	TimeoutMilliseconds, Value uint32
}

func (c nvmeCommand) passthrough(address uint64) nvmePassthrough {
	return nvmePassthrough{
		Opcode: c.opcode, Namespace: c.namespace, Address: address, Length: uint32(len(c.data)),
		Dword10: c.dword10, TimeoutMilliseconds: uint32(c.timeout.Milliseconds()),
	}
}

// Requests of linux/nvme_ioctl.h.
const (
	nvmeIoctlID    = 0x4e40
	nvmeIoctlAdmin = 0xc0484e41
)

// nvmeStatus is a command's status field without its phase tag (§3.3.3.2.1): why the
// controller refuses the command.
type nvmeStatus uint16

// Error implements error.
func (s nvmeStatus) Error() string {
	what := map[nvmeStatus]string{
		0x01: "it does not support the command", 0x02: "a field of the command is not valid",
		0x1c: "its last sanitize has failed", 0x1d: "a sanitize is under way", 0x84: "a format is under way",
	}[s&0x7ff]
	if what == "" {
		what = "see the NVM Express specification"
	}
	return fmt.Sprintf("the disk refuses with status %#x: %s", uint16(s), what)
}

// sendNVMe sends an admin command to the controller of a namespace's block device.
func sendNVMe(disk *os.File) func(nvmeCommand) error {
	return func(c nvmeCommand) error {
		var pinned runtime.Pinner
		defer pinned.Unpin()
		var address uint64
		if len(c.data) > 0 {
			pinned.Pin(&c.data[0])
			address = uint64(uintptr(unsafe.Pointer(&c.data[0])))
		}
		p := c.passthrough(address)
		status, _, errno := unix.Syscall(unix.SYS_IOCTL, disk.Fd(), nvmeIoctlAdmin, uintptr(unsafe.Pointer(&p)))
		runtime.KeepAlive(disk)
		if errno != 0 {
			return errno
		}
		if status != 0 {
			return nvmeStatus(status)
		}
		return nil
	}
}

// nvmeNamespaceOf returns the identifier of a block device's namespace.
func nvmeNamespaceOf(disk *os.File) (uint32, error) {
	id, _, errno := unix.Syscall(unix.SYS_IOCTL, disk.Fd(), nvmeIoctlID, 0)
	runtime.KeepAlive(disk)
	if errno != 0 {
		return 0, fmt.Errorf("ask for the namespace: %w", errno)
	}
	return uint32(id), nil
}

// nvmeController is the part of the Identify Controller data that matters (§5.17.2.1).
type nvmeController struct {
	shared        bool // CMIC: other controllers reach the same disk
	format        bool // OACS: Format NVM
	management    bool // OACS: Namespace Management
	formatsAll    bool // FNA: a format, or its erase, affects all namespaces
	cryptoErase   bool // FNA: a format can erase the key
	sanitizeBlock bool // SANICAP
	sanitizeKey   bool
	sanitizeWrite bool
}

func parseController(b []byte) nvmeController {
	if len(b) < identifySize {
		return nvmeController{}
	}
	oacs, fna, sanicap := binary.LittleEndian.Uint16(b[256:]), b[524], binary.LittleEndian.Uint32(b[328:])
	return nvmeController{
		shared: b[76]&0b10 != 0, format: oacs&0b10 != 0, management: oacs&0b1000 != 0,
		formatsAll: fna&0b11 != 0, cryptoErase: fna&0b100 != 0,
		sanitizeKey: sanicap&0b1 != 0, sanitizeBlock: sanicap&0b10 != 0, sanitizeWrite: sanicap&0b100 != 0,
	}
}

// nvmeLayout is how a namespace is formatted (NVM Command Set Specification 1.0
// §4.1.5.1), so that it is formatted in the same manner again.
type nvmeLayout struct{ flbas, dps byte }

func parseLayout(b []byte) nvmeLayout {
	if len(b) < identifySize {
		return nvmeLayout{}
	}
	return nvmeLayout{flbas: b[26], dps: b[29]}
}

// Secure Erase Settings of Format NVM.
const (
	eraseUserData = 1
	eraseKey      = 2
)

// format is the command that formats a namespace, with the layout that it has (§5.14).
func (l nvmeLayout) format(namespace uint32, erase uint32) nvmeCommand {
	lower, upper := uint32(l.flbas&0xf), uint32(l.flbas>>5&0b11)
	extended, protection, first := uint32(l.flbas>>4&1), uint32(l.dps&0b111), uint32(l.dps>>3&1)
	return nvmeCommand{
		opcode: nvmeFormatNVM, namespace: namespace,
		dword10: lower | extended<<4 | protection<<5 | first<<8 | erase<<9 | upper<<12,
	}
}

// Sanitize Actions (§5.24).
const (
	exitFailureMode   = 1
	sanitizeByBlock   = 2
	sanitizeOverwrite = 3
	sanitizeByKey     = 4
)

// sanitize is the command that starts a sanitize. Its exit is unrestricted, so that the
// next methods can use a disk whose sanitize fails.
func sanitize(action uint32) nvmeCommand {
	const unrestrictedExit, onePass = 1 << 3, 1 << 4
	c := nvmeCommand{opcode: nvmeSanitize, dword10: action, timeout: askLimit}
	if action != exitFailureMode {
		c.dword10 |= unrestrictedExit
	}
	if action == sanitizeOverwrite {
		c.dword10 |= onePass
	}
	return c
}

// sanitizeLog asks for the Sanitize Status log page, 81h (§5.16.1.25).
func sanitizeLog() nvmeCommand {
	const page, size = 0x81, 512
	return nvmeCommand{
		opcode: nvmeGetLogPage, namespace: 0xffffffff, dword10: page | (size/4-1)<<16,
		data: make([]byte, size), timeout: askLimit,
	}
}

// nvmeSanitizing is the content of the Sanitize Status log page.
type nvmeSanitizing struct {
	sanitizing
	completed, failed       bool
	action                  uint32 // of the last sanitize
	overwrite, block, byKey time.Duration
}

func parseSanitizeLog(b []byte) nvmeSanitizing {
	const completed, running, failed, deallocated = 1, 2, 3, 4
	if len(b) < 20 {
		return nvmeSanitizing{}
	}
	estimate := func(at int) time.Duration {
		seconds := binary.LittleEndian.Uint32(b[at:])
		if seconds == 0xffffffff { // no time is reported
			return 0
		}
		return time.Duration(seconds) * time.Second
	}
	state := binary.LittleEndian.Uint16(b[2:]) & 0b111
	return nvmeSanitizing{
		sanitizing: sanitizing{running: state == running, percent: percentOf(binary.LittleEndian.Uint16(b))},
		completed:  state == completed || state == deallocated,
		failed:     state == failed, action: binary.LittleEndian.Uint32(b[4:]) & 0b111,
		overwrite: estimate(8), block: estimate(12), byKey: estimate(16),
	}
}

func (s nvmeSanitizing) method() Method {
	switch s.action {
	case sanitizeByKey:
		return NVMeSanitizeCrypto
	case sanitizeOverwrite:
		return NVMeSanitizeOverwrite
	}
	return NVMeSanitizeBlock
}

// parseNamespaces reads a namespace list (§5.17.2.2).
func parseNamespaces(b []byte) []uint32 {
	var list []uint32
	for len(b) >= 4 && binary.LittleEndian.Uint32(b) != 0 {
		list, b = append(list, binary.LittleEndian.Uint32(b)), b[4:]
	}
	return list
}

// nvmeAbilities returns what a disk can do. Alone means that its namespace is the only
// one: a sanitize clears all namespaces, and the others may be disks of this machine, or
// of another.
func nvmeAbilities(c nvmeController, s nvmeSanitizing, alone bool) Abilities {
	var a Abilities
	if c.sanitizeBlock {
		a.offer(NVMeSanitizeBlock, s.block)
	}
	if c.sanitizeKey {
		a.offer(NVMeSanitizeCrypto, s.byKey)
	}
	if c.sanitizeWrite {
		a.offer(NVMeSanitizeOverwrite, s.overwrite)
	}
	if c.format {
		a.offer(NVMeFormat, 0)
	}
	if c.format && c.cryptoErase {
		a.offer(NVMeFormatCrypto, 0)
	}
	if !alone {
		a.withhold("it would clear other namespaces as well", NVMeSanitizeBlock, NVMeSanitizeCrypto, NVMeSanitizeOverwrite)
	}
	if !alone && c.formatsAll {
		a.withhold("it would clear other namespaces as well", NVMeFormat, NVMeFormatCrypto)
	}
	return a
}

type nvme struct {
	namespace uint32
	send      func(nvmeCommand) error

	layout    nvmeLayout // once Ready has asked
	abilities Abilities
}

// Ready implements Firmware.
func (n *nvme) Ready(ctx context.Context, progress OnProgress) (Abilities, error) {
	data, err := n.identify(identifyController, 0)
	if err != nil {
		return Abilities{}, fmt.Errorf("identify controller: %w", err)
	}
	c := parseController(data)
	data, err = n.identify(identifyNamespace, n.namespace)
	if err != nil {
		return Abilities{}, fmt.Errorf("identify namespace %d: %w", n.namespace, err)
	}
	n.layout = parseLayout(data)
	var s nvmeSanitizing
	if c.sanitizeBlock || c.sanitizeKey || c.sanitizeWrite {
		if s, err = n.settle(ctx, progress); err != nil {
			return Abilities{}, err
		}
	}
	n.abilities = nvmeAbilities(c, s, n.alone(c))
	if id := n.unattached(c); id != 0 {
		n.abilities.Locked = fmt.Sprintf("namespace %d of the disk is attached to no controller, so that its data would stay "+
			"for whoever attaches it: attach or delete it (nvme attach-ns, nvme delete-ns), then wipe again", id)
	}
	return n.abilities, nil
}

func (n *nvme) identify(what, namespace uint32) ([]byte, error) {
	data := make([]byte, identifySize)
	return data, n.send(nvmeCommand{opcode: nvmeIdentify, namespace: namespace, dword10: what, data: data, timeout: askLimit})
}

// alone reports whether the namespace is certainly the disk's only one.
func (n *nvme) alone(c nvmeController) bool {
	lists := []uint32{activeNamespaces}
	switch {
	case c.management:
		lists = append(lists, allocNamespaces)
	case c.shared:
		return false // another controller's namespaces are not visible
	}
	for _, list := range lists {
		data, err := n.identify(list, 0)
		if err != nil || len(parseNamespaces(data)) != 1 {
			return false
		}
	}
	return true
}

// unattached returns a namespace of the disk that is attached to no controller, so that
// no machine sees it; 0 for none. A namespace that is attached to another controller
// alone is another machine's.
func (n *nvme) unattached(c nvmeController) uint32 {
	if !c.management {
		return 0
	}
	active, err := n.identify(activeNamespaces, 0)
	if err != nil {
		return 0
	}
	allocated, err := n.identify(allocNamespaces, 0)
	if err != nil {
		return 0
	}
	seen := parseNamespaces(active)
	for _, id := range parseNamespaces(allocated) {
		if slices.Contains(seen, id) {
			continue
		}
		// A list of controllers begins with their number (§5.17.2.9).
		if list, err := n.identify(attachedTo, id); err != nil || binary.LittleEndian.Uint16(list) == 0 {
			return id
		}
	}
	return 0
}

// settle waits for a sanitize that was begun earlier, and resets a disk whose sanitize
// has failed.
func (n *nvme) settle(ctx context.Context, progress OnProgress) (nvmeSanitizing, error) {
	s, err := n.sanitizing()
	if err != nil {
		return s, fmt.Errorf("ask for the sanitize status: %w", err)
	}
	if s.running {
		if err := n.follow(ctx, s.method(), s.estimate(s.method()), progress); err != nil && !errors.Is(err, errSanitize) {
			return s, fmt.Errorf("wait for a sanitize that was under way: %w", err)
		}
		if s, err = n.sanitizing(); err != nil {
			return s, fmt.Errorf("ask for the sanitize status: %w", err)
		}
	}
	if s.failed {
		_ = n.send(sanitize(exitFailureMode)) // another sanitize helps as well
	}
	return s, nil
}

func (s nvmeSanitizing) estimate(m Method) time.Duration {
	switch m {
	case NVMeSanitizeCrypto:
		return s.byKey
	case NVMeSanitizeOverwrite:
		return s.overwrite
	default:
		return s.block
	}
}

func (n *nvme) sanitizing() (nvmeSanitizing, error) {
	c := sanitizeLog()
	if err := n.send(c); err != nil {
		return nvmeSanitizing{}, err
	}
	return parseSanitizeLog(c.data), nil
}

func (n *nvme) follow(ctx context.Context, m Method, estimate time.Duration, progress OnProgress) error {
	return await(ctx, m, eraseTimeout(estimate), progress, func() (sanitizing, error) {
		s, err := n.sanitizing()
		if err == nil && !s.running && !s.completed {
			err = errSanitize
		}
		return s.sanitizing, err
	})
}

// Clear implements Firmware.
func (n *nvme) Clear(ctx context.Context, m Method, progress OnProgress) error {
	actions := map[Method]uint32{
		NVMeSanitizeBlock: sanitizeByBlock, NVMeSanitizeCrypto: sanitizeByKey, NVMeSanitizeOverwrite: sanitizeOverwrite,
	}
	if action, ok := actions[m]; ok {
		return n.sanitize(ctx, m, action, progress)
	}
	erase := uint32(eraseUserData)
	if m == NVMeFormatCrypto {
		erase = eraseKey
	}
	c := n.layout.format(n.namespace, erase)
	c.timeout = within(ctx, unknownErasure)
	return n.send(c)
}

func (n *nvme) sanitize(ctx context.Context, m Method, action uint32, progress OnProgress) error {
	if err := n.send(sanitize(action)); err != nil {
		return err
	}
	err := n.follow(ctx, m, n.abilities.Estimate[m], progress)
	if errors.Is(err, errSanitize) {
		_ = n.send(sanitize(exitFailureMode)) // for the methods that come next
	}
	return err
}
