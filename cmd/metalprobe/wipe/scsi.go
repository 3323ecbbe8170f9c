package wipe

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"

	"ingot/cmd/metalprobe/sg"
)

const (
	scsiRequestSense = 0x03 // SPC-5 §6.39
	scsiSanitize     = 0x48 // SBC-4, SANITIZE
	scsiMaintenance  = 0xa3 // MAINTENANCE IN
	reportCommands   = 0x0c // of it: REPORT SUPPORTED OPERATION CODES (SPC-5 §6.35)
)

// Service actions of SANITIZE.
const (
	scsiOverwrite   = 0x01
	scsiBlockErase  = 0x02
	scsiCryptoErase = 0x03
	scsiExitFailure = 0x1f
)

var scsiActions = map[Method]byte{
	SCSISanitizeBlock: scsiBlockErase, SCSISanitizeCrypto: scsiCryptoErase, SCSISanitizeOverwrite: scsiOverwrite,
}

type scsiCommand struct {
	cdb  []byte
	data []byte
	send bool
}

// sanitizeSCSI is the command that starts a sanitize and does not wait for its end.
func sanitizeSCSI(action byte) scsiCommand {
	const immediate, unrestrictedExit = 1 << 7, 1 << 5
	c := scsiCommand{cdb: []byte{scsiSanitize, immediate | unrestrictedExit | action, 0, 0, 0, 0, 0, 0, 0, 0}}
	if action == scsiExitFailure {
		c.cdb[1] = action
	}
	if action == scsiOverwrite {
		// One pass of a pattern of four bytes, which are zero.
		c.data, c.send = []byte{1, 0, 0, 4, 0, 0, 0, 0}, true
		c.cdb[8] = byte(len(c.data))
	}
	return c
}

// supports asks whether the disk supports a service action of SANITIZE.
func supports(action byte) scsiCommand {
	const oneServiceAction = 2
	c := scsiCommand{data: make([]byte, 64)}
	c.cdb = []byte{scsiMaintenance, reportCommands, oneServiceAction, scsiSanitize, 0, action, 0, 0, 0, byte(len(c.data)), 0, 0}
	return c
}

// parseSupport reads the answer: whether the command is supported as of the standard.
func parseSupport(b []byte) bool {
	const standard = 3
	return len(b) >= 2 && b[1]&0b111 == standard
}

// requestSense asks for the disk's condition.
func requestSense() scsiCommand {
	c := scsiCommand{data: make([]byte, 64)}
	c.cdb = []byte{scsiRequestSense, 0, 0, 0, byte(len(c.data)), 0}
	return c
}

// parseSense reads what fixed sense data (SPC-5 §4.4.3) says about a sanitize.
func parseSense(b []byte) (sanitizing, error) {
	const notReady, mediumError, unitAttention = 2, 3, 6
	if len(b) < 18 || b[0]&0x7e != 0x70 {
		return sanitizing{}, errors.New("the disk does not report its condition")
	}
	key, code := b[2]&0xf, binary.BigEndian.Uint16(b[12:])
	switch {
	case code == 0x041b: // LOGICAL UNIT NOT READY, SANITIZE IN PROGRESS
		s := sanitizing{running: true, percent: -1}
		if b[15]>>7 == 1 {
			s.percent = percentOf(binary.BigEndian.Uint16(b[16:]))
		}
		return s, nil
	case code == 0x3103, key == mediumError: // SANITIZE COMMAND FAILED
		return sanitizing{}, fmt.Errorf("%w (sense %#x/%#04x)", errSanitize, key, code)
	case key == notReady, key == unitAttention: // which are reported before anything else
		return sanitizing{}, fmt.Errorf("the disk is not ready to report its condition (sense %#x/%#04x)", key, code)
	}
	return sanitizing{}, nil
}

// sendSCSI sends commands to a disk by its block device.
func sendSCSI(disk *os.File) func(scsiCommand) error {
	return func(c scsiCommand) error {
		answer, err := sg.Do(disk, sg.Command{CDB: c.cdb, Data: c.data, Send: c.send, Timeout: askLimit})
		if err == nil && answer.Status != sg.Good {
			err = fmt.Errorf("%w (SCSI status %#x)", errAborted, answer.Status)
		}
		return err
	}
}

// scsi is the firmware of a SAS disk.
type scsi struct{ send func(scsiCommand) error }

// Ready implements Firmware.
func (d *scsi) Ready(ctx context.Context, progress OnProgress) (Abilities, error) {
	var a Abilities
	for _, m := range preference {
		action, known := scsiActions[m]
		if !known {
			continue
		}
		if c := supports(action); d.send(c) == nil && parseSupport(c.data) {
			a.offer(m, 0)
		}
	}
	if len(a.Offers) == 0 {
		return a, nil
	}
	err := d.follow(ctx, SCSISanitizeBlock, progress)
	if errors.Is(err, errSanitize) {
		_ = d.send(sanitizeSCSI(scsiExitFailure)) // another sanitize helps as well
		err = nil
	}
	if err != nil {
		return a, fmt.Errorf("wait for a sanitize that was under way: %w", err)
	}
	return a, nil
}

func (d *scsi) sanitizing() (sanitizing, error) {
	c := requestSense()
	if err := d.send(c); err != nil {
		return sanitizing{}, err
	}
	return parseSense(c.data)
}

func (d *scsi) follow(ctx context.Context, m Method, progress OnProgress) error {
	return await(ctx, m, unknownErasure, progress, d.sanitizing)
}

// Clear implements Firmware.
func (d *scsi) Clear(ctx context.Context, m Method, progress OnProgress) error {
	if err := d.send(sanitizeSCSI(scsiActions[m])); err != nil {
		return err
	}
	err := d.follow(ctx, m, progress)
	if errors.Is(err, errSanitize) {
		_ = d.send(sanitizeSCSI(scsiExitFailure)) // for the methods that come next
	}
	return err
}

// drive is a disk at a SCSI bus, which may be a SATA disk behind a translation.
type drive struct {
	ata, scsi Firmware
	found     Firmware // the one that answered
}

// newDrive returns the firmware of a disk with a name as sda.
func newDrive(disk *os.File) *drive {
	return &drive{ata: &ata{send: sendATA(disk)}, scsi: &scsi{send: sendSCSI(disk)}}
}

// Ready implements Firmware.
func (d *drive) Ready(ctx context.Context, progress OnProgress) (Abilities, error) {
	d.found = d.ata
	a, err := d.ata.Ready(ctx, progress)
	if errors.Is(err, errNoATA) {
		d.found = d.scsi
		return d.scsi.Ready(ctx, progress)
	}
	return a, err
}

// Clear implements Firmware.
func (d *drive) Clear(ctx context.Context, m Method, progress OnProgress) error {
	return d.found.Clear(ctx, m, progress)
}
