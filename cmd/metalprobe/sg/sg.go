// Package sg sends SCSI commands to disks by the kernel's SG_IO. SATA disks take
// them as well, translated, and with them commands of their own.
package sg

import (
	"fmt"
	"os"
	"runtime"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ioctl is SG_IO of scsi/sg.h.
const ioctl = 0x2285

// Directions of data, as of scsi/sg.h.
const (
	none       = -1
	toDevice   = -2
	fromDevice = -3
)

// Statuses of a command (SAM-5 §5.3.1).
const (
	Good           = 0x00
	CheckCondition = 0x02
)

// driverSense is set by old kernels when there is sense data; it is no failure.
const driverSense = 0x08

// maxSense is enough for the longest sense data there is (SPC-4 §4.5.1).
const maxSense = 252

// Command is a command and its data.
type Command struct {
	CDB []byte
	// Data is what is sent, or what is filled with the answer; nil for none.
	Data    []byte
	Send    bool // Data goes to the disk
	Timeout time.Duration
}

// Answer is a disk's answer to a command.
type Answer struct {
	Status byte
	Sense  []byte
}

// header is struct sg_io_hdr.
type header struct {
	interfaceID    int32 // 'S'
	direction      int32
	commandLength  uint8
	maxSense       uint8
	_              uint16 // segments
	length         uint32
	data           unsafe.Pointer
	command        unsafe.Pointer
	sense          unsafe.Pointer
	timeout        uint32 // milliseconds
	flags          uint32
	_              int32
	_              unsafe.Pointer
	status         uint8
	maskedStatus   uint8
	messageStatus  uint8
	senseWritten   uint8
	hostStatus     uint16
	driverStatus   uint16
	residual       int32
	duration, info uint32
}

// Do sends a command and waits for its end. An error means that the disk did not receive
// the command, or did not answer in time; its own status is in the answer.
func Do(disk *os.File, c Command) (Answer, error) {
	sense := make([]byte, maxSense)
	h := header{
		interfaceID: 'S', direction: none, timeout: uint32(c.Timeout.Milliseconds()),
		commandLength: uint8(len(c.CDB)), command: unsafe.Pointer(&c.CDB[0]),
		maxSense: uint8(len(sense)), sense: unsafe.Pointer(&sense[0]),
	}
	if len(c.Data) > 0 {
		h.direction, h.length, h.data = fromDevice, uint32(len(c.Data)), unsafe.Pointer(&c.Data[0])
		if c.Send {
			h.direction = toDevice
		}
	}
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, disk.Fd(), ioctl, uintptr(unsafe.Pointer(&h)))
	runtime.KeepAlive(c.CDB)
	runtime.KeepAlive(c.Data)
	runtime.KeepAlive(disk)
	if errno != 0 {
		return Answer{}, errno
	}
	if h.hostStatus != 0 || h.driverStatus&^driverSense != 0 {
		return Answer{}, fmt.Errorf("the disk's controller says: host status %#x, driver status %#x", h.hostStatus, h.driverStatus)
	}
	return Answer{Status: h.status, Sense: sense[:min(int(h.senseWritten), len(sense))]}, nil
}
