package inventory

import (
	"fmt"
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// sgIO is SG_IO of scsi/sg.h, and sgRequest its struct sg_io_hdr.
const sgIO = 0x2285

type sgRequest struct {
	interfaceID    int32 // 'S'
	direction      int32 // -3: from the device
	commandLength  uint8
	maxSense       uint8
	_              uint16
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

// inquireSerial asks a SCSI or SATA disk for its Unit Serial Number VPD page, by
// an INQUIRY (SPC-4 §6.6). SATA disks answer through the kernel's translation.
func inquireSerial(path string) (string, error) {
	disk, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return "", err
	}
	defer disk.Close()

	page, sense := make([]byte, 255), make([]byte, 32)
	command := []byte{0x12, 0x01, 0x80, 0, byte(len(page)), 0}
	request := sgRequest{
		interfaceID: 'S', direction: -3, timeout: 5000,
		commandLength: uint8(len(command)), command: unsafe.Pointer(&command[0]),
		length: uint32(len(page)), data: unsafe.Pointer(&page[0]),
		maxSense: uint8(len(sense)), sense: unsafe.Pointer(&sense[0]),
	}
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, disk.Fd(), sgIO, uintptr(unsafe.Pointer(&request)))
	runtime.KeepAlive(command)
	runtime.KeepAlive(sense)
	if errno != 0 {
		return "", fmt.Errorf("inquire %s: %w", path, errno)
	}
	if request.status != 0 || request.hostStatus != 0 || request.driverStatus != 0 {
		return "", fmt.Errorf("inquire %s: status %#x, host %#x, driver %#x",
			path, request.status, request.hostStatus, request.driverStatus)
	}
	return unitSerial(page), nil
}
