package inventory

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"ingot/cmd/metalprobe/sg"
)

// inquireSerial asks a SCSI or SATA disk for its Unit Serial Number VPD page, by
// an INQUIRY (SPC-4 §6.6). SATA disks answer through the kernel's translation.
func inquireSerial(path string) (string, error) {
	disk, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return "", err
	}
	defer disk.Close()
	page := make([]byte, 255)
	answer, err := sg.Do(disk, sg.Command{
		CDB: []byte{0x12, 0x01, 0x80, 0, byte(len(page)), 0}, Data: page, Timeout: 5 * time.Second,
	})
	if err != nil {
		return "", fmt.Errorf("inquire %s: %w", path, err)
	}
	if answer.Status != sg.Good {
		return "", fmt.Errorf("inquire %s: status %#x", path, answer.Status)
	}
	return unitSerial(page), nil
}
