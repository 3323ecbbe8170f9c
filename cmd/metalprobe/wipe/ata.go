package wipe

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"time"

	"ingot/cmd/metalprobe/sg"
)

// ATA commands (ACS-4, by their names; INCITS 529).
const (
	ataIdentify        = 0xec // IDENTIFY DEVICE, PIO data-in
	ataSanitize        = 0xb4 // SANITIZE DEVICE, non-data; the feature says which
	ataSetPassword     = 0xf1 // SECURITY SET PASSWORD, PIO data-out, as the next but one
	ataUnlock          = 0xf2 // SECURITY UNLOCK
	ataErasePrepare    = 0xf3 // SECURITY ERASE PREPARE, non-data
	ataEraseUnit       = 0xf4 // SECURITY ERASE UNIT, PIO data-out
	ataDisablePassword = 0xf6 // SECURITY DISABLE PASSWORD, PIO data-out
)

// Features of SANITIZE DEVICE, and the keys that have to go with them.
const (
	sanitizeStatusExt = 0x0000
	cryptoScrambleExt = 0x0011
	blockEraseExt     = 0x0012
	overwriteExt      = 0x0014

	cryptoScrambleKey = 0x43727970   // "Cryp"
	blockEraseKey     = 0x426b4572   // "BkEr"
	overwriteKey      = 0x4f57 << 32 // "OW", then the pattern
)

// Counts of SANITIZE DEVICE.
const (
	clearFailed   = 1 << 0 // of SANITIZE STATUS EXT: the failed state ends
	failureMode   = 1 << 4 // of the others: it may be ended so
	overwriteOnce = 1      // OVERWRITE EXT: one pass
)

// ataSector is the size of what commands send and return, in bytes.
const ataSector = 512

// wipePassword is set for the time of a security erase. It is always the same, so that
// the next wipe can unlock a disk whose erase was interrupted. It protects nothing:
// everything on such a disk is being erased.
const wipePassword = "ingot wipes this disk"

// Protocols of ATA PASS-THROUGH (SAT-4 §12.2.2.2).
const (
	nonData    = 3
	pioDataIn  = 4
	pioDataOut = 5
)

type ataCommand struct {
	command  byte
	protocol byte
	extended bool // 48 bits of address, and the answer is wanted
	feature  uint16
	count    uint16
	address  uint64
	data     []byte
	timeout  time.Duration
}

// cdb wraps the command for SCSI, as ATA PASS-THROUGH (16) (SAT-4 §12.2.3).
func (c ataCommand) cdb() []byte {
	const passThrough16, wantAnswer, lengthInCount, inBlocks, fromDisk = 0x85, 1 << 5, 2, 1 << 2, 1 << 3
	b := make([]byte, 16)
	b[0], b[1], b[14] = passThrough16, c.protocol<<1, c.command
	count := c.count
	if len(c.data) > 0 {
		b[2] = lengthInCount | inBlocks
		count = uint16(len(c.data) / ataSector)
	}
	if c.protocol == pioDataIn {
		b[2] |= fromDisk
	}
	if c.extended {
		b[1] |= 1
		b[2] |= wantAnswer
		b[13] = 1 << 6 // LBA: the address is that of a block
	}
	b[3], b[4] = byte(c.feature>>8), byte(c.feature)
	b[5], b[6] = byte(count>>8), byte(count)
	b[7], b[9], b[11] = byte(c.address>>24), byte(c.address>>32), byte(c.address>>40)
	b[8], b[10], b[12] = byte(c.address), byte(c.address>>8), byte(c.address>>16)
	return b
}

// ataAnswer is what a disk's registers hold after a command.
type ataAnswer struct {
	status, failure byte
	count           uint16
	address         uint64
}

// parseATAAnswer finds the registers in the ATA Status Return descriptor of sense data
// (SAT-4 §12.2.7). Fixed sense data has too few of them to be useful.
func parseATAAnswer(sense []byte) (ataAnswer, bool) {
	const descriptors, statusReturn = 8, 0x09
	if len(sense) < descriptors || sense[0]&0x7e != 0x72 {
		return ataAnswer{}, false
	}
	for rest := sense[descriptors:]; len(rest) >= 2; {
		length := 2 + int(rest[1])
		if d := rest; d[0] == statusReturn && length == 14 && len(d) >= length {
			return ataAnswer{
				failure: d[3], status: d[13], count: binary.BigEndian.Uint16(d[4:]),
				address: uint64(d[7]) | uint64(d[9])<<8 | uint64(d[11])<<16 | uint64(d[6])<<24 | uint64(d[8])<<32 | uint64(d[10])<<40,
			}, true
		}
		rest = rest[min(length, len(rest)):]
	}
	return ataAnswer{}, false
}

// errAborted means that the disk does not support a command, or not at present.
var errAborted = errors.New("the disk aborts the command")

// ataResult returns the registers after a command, and its error.
func ataResult(answer sg.Answer) (ataAnswer, error) {
	const failed = 0x01 | 0x20 // ERR and DEVICE FAULT of the status field
	registers, returned := parseATAAnswer(answer.Sense)
	switch {
	case returned && registers.status&failed != 0:
		return registers, fmt.Errorf("%w (status %#x, error %#x)", errAborted, registers.status, registers.failure)
	case returned, answer.Status == sg.Good:
		return registers, nil
	}
	return registers, fmt.Errorf("%w (SCSI status %#x)", errAborted, answer.Status)
}

// sendATA sends commands to a SATA disk by its block device.
func sendATA(disk *os.File) func(ataCommand) (ataAnswer, error) {
	return func(c ataCommand) (ataAnswer, error) {
		answer, err := sg.Do(disk, sg.Command{CDB: c.cdb(), Data: c.data, Send: c.protocol == pioDataOut, Timeout: c.timeout})
		if err != nil {
			return ataAnswer{}, err
		}
		return ataResult(answer)
	}
}

// ataIdentity is the part of the IDENTIFY DEVICE data that matters (ACS-4, IDENTIFY
// DEVICE).
type ataIdentity struct {
	// Word 128.
	security, enabled, locked, frozen, expired, enhanced bool
	// Word 59.
	sanitizeKey, sanitizeWrite, sanitizeBlock bool
	// Words 89 and 90.
	erase, enhancedErase time.Duration
}

// parseIdentify reads IDENTIFY DEVICE data. It is not ok if the device is no ATA disk.
func parseIdentify(b []byte) (id ataIdentity, ok bool) {
	const noATA = 1 << 15
	if len(b) < ataSector {
		return id, false
	}
	word := func(n int) uint16 { return binary.LittleEndian.Uint16(b[2*n:]) }
	if word(0)&noATA != 0 || isUniform(b) {
		return id, false
	}
	security, features := word(128), word(59)
	bit := func(w uint16, n int) bool { return w>>n&1 == 1 }
	id = ataIdentity{
		security: bit(security, 0), enabled: bit(security, 1), locked: bit(security, 2), frozen: bit(security, 3),
		expired: bit(security, 4), enhanced: bit(security, 5),
		erase: eraseTime(word(89)), enhancedErase: eraseTime(word(90)),
	}
	if bit(features, 12) { // SANITIZE feature set
		id.sanitizeKey, id.sanitizeWrite, id.sanitizeBlock = bit(features, 13), bit(features, 14), bit(features, 15)
	}
	return id, true
}

// eraseTime reads word 89 or 90: units of two minutes, in one of two formats.
func eraseTime(w uint16) time.Duration {
	const extended = 1 << 15
	units := w & 0xff
	if w&extended != 0 {
		units = w &^ extended
	}
	return time.Duration(units) * 2 * time.Minute
}

// securityData is what security commands send: a control word and the password (ACS-4,
// SECURITY SET PASSWORD, SECURITY ERASE UNIT). It is the user password, at security level
// high, so that a person with the master password can unlock the disk as well.
func securityData(enhanced bool) []byte {
	const enhancedErase = 1 << 1
	b := make([]byte, ataSector)
	if enhanced {
		b[0] |= enhancedErase
	}
	copy(b[2:34], wipePassword)
	return b
}

func sanitizeATA(m Method) ataCommand {
	c := ataCommand{command: ataSanitize, protocol: nonData, extended: true, count: failureMode, timeout: askLimit}
	switch m {
	case ATASanitizeCrypto:
		c.feature, c.address = cryptoScrambleExt, cryptoScrambleKey
	case ATASanitizeOverwrite:
		c.feature, c.address = overwriteExt, overwriteKey
		c.count |= overwriteOnce
	default:
		c.feature, c.address = blockEraseExt, blockEraseKey
	}
	return c
}

// ataSanitizing is the answer to SANITIZE STATUS EXT.
type ataSanitizing struct {
	sanitizing
	completed bool // the last sanitize ended without error
	frozen    bool
}

func parseATASanitizing(r ataAnswer) ataSanitizing {
	return ataSanitizing{
		sanitizing: sanitizing{running: r.count>>14&1 == 1, percent: percentOf(uint16(r.address))},
		completed:  r.count>>15&1 == 1,
		frozen:     r.count>>13&1 == 1,
	}
}

// ataAbilities returns what a disk can do. If noSanitize says why, sanitize is withheld.
func ataAbilities(id ataIdentity, noSanitize string) Abilities {
	var a Abilities
	if id.sanitizeBlock {
		a.offer(ATASanitizeBlock, 0)
	}
	if id.sanitizeKey {
		a.offer(ATASanitizeCrypto, 0)
	}
	if id.sanitizeWrite {
		a.offer(ATASanitizeOverwrite, 0)
	}
	if id.security && id.enhanced {
		a.offer(ATAEraseEnhanced, id.enhancedErase)
	}
	if id.security {
		a.offer(ATAErase, id.erase)
	}
	if noSanitize != "" {
		a.withhold(noSanitize, ATASanitizeBlock, ATASanitizeCrypto, ATASanitizeOverwrite)
	}
	a.Locked = id.lock()
	switch erases := []Method{ATAErase, ATAEraseEnhanced}; {
	case id.frozen:
		a.withhold("the firmware has frozen the disk's security until it is powered off", erases...)
	case id.enabled:
		a.withhold("a password is set on the disk, and it is not Ingot's", erases...)
	}
	return a
}

// lock says why a disk is locked, "" if it is not.
func (id ataIdentity) lock() string {
	switch {
	case !id.locked:
		return ""
	case id.frozen:
		return "the disk is locked by an ATA password, and the firmware has frozen its security: " +
			"switch off the machine's disk freeze lock, or power the disk off and on, then wipe again"
	case id.expired:
		return "the disk is locked by an ATA password and takes no more attempts: power it off and on, then wipe again"
	}
	return "the disk is locked by an ATA password that is not Ingot's: take it off by the machine that set it, or replace the disk"
}

// ata is the firmware of a SATA disk.
type ata struct {
	send      func(ataCommand) (ataAnswer, error)
	abilities Abilities // once Ready has asked
}

// errNoATA means that the disk is not a SATA disk.
var errNoATA = errors.New("this is not an ATA disk")

// Ready implements Firmware.
func (d *ata) Ready(ctx context.Context, progress OnProgress) (Abilities, error) {
	id, err := d.identify()
	if err != nil {
		return Abilities{}, err
	}
	noSanitize := ""
	if id.sanitizeBlock || id.sanitizeKey || id.sanitizeWrite {
		if noSanitize, err = d.settle(ctx, progress); err != nil {
			return Abilities{}, err
		}
	}
	if id, err = d.liftPassword(id); err != nil {
		return Abilities{}, err
	}
	d.abilities = ataAbilities(id, noSanitize)
	return d.abilities, nil
}

func (d *ata) identify() (ataIdentity, error) {
	data := make([]byte, ataSector)
	if _, err := d.send(ataCommand{command: ataIdentify, protocol: pioDataIn, data: data, timeout: askLimit}); err != nil {
		return ataIdentity{}, fmt.Errorf("%w: %w", errNoATA, err)
	}
	id, ok := parseIdentify(data)
	if !ok {
		return id, errNoATA
	}
	return id, nil
}

// liftPassword removes the password that an interrupted security erase has left, after a
// power failure for example. A password that is not Ingot's stays.
func (d *ata) liftPassword(id ataIdentity) (ataIdentity, error) {
	if !id.enabled || id.frozen || id.expired {
		return id, nil
	}
	if id.locked {
		if err := d.security(ataUnlock, askLimit, false); err != nil {
			return d.identify() // which says whether attempts are left
		}
	}
	_ = d.security(ataDisablePassword, askLimit, false) // if it fails, identify shows the password
	return d.identify()
}

func (d *ata) security(command byte, timeout time.Duration, enhanced bool) error {
	_, err := d.send(ataCommand{command: command, protocol: pioDataOut, data: securityData(enhanced), timeout: timeout})
	return err
}

// settle waits for a sanitize that was begun earlier, resets a disk whose sanitize has
// failed, and says why the disk can do no other, if so.
func (d *ata) settle(ctx context.Context, progress OnProgress) (noSanitize string, err error) {
	s, err := d.sanitizing(0)
	if err != nil {
		s, err = d.sanitizing(clearFailed)
	}
	if err != nil {
		return "the disk does not say how far a sanitize is", nil
	}
	if s.running {
		err = d.follow(ctx, ATASanitizeBlock, progress)
		if err != nil && !errors.Is(err, errSanitize) {
			return "", fmt.Errorf("wait for a sanitize that was under way: %w", err)
		}
	}
	if s.frozen {
		return "the firmware has frozen the disk's sanitize commands until it is powered off", nil
	}
	return "", nil
}

// sanitizing asks how far a sanitize is. A disk whose sanitize has failed aborts the
// command. A status of zero, which no disk has, means that the controller does not return
// the registers, and not that no sanitize is under way.
func (d *ata) sanitizing(count uint16) (ataSanitizing, error) {
	r, err := d.send(ataCommand{
		command: ataSanitize, protocol: nonData, extended: true, feature: sanitizeStatusExt, count: count, timeout: askLimit,
	})
	if err == nil && r.status == 0 {
		err = errors.New("the disk's controller does not pass on the disk's answer")
	}
	return parseATASanitizing(r), err
}

func (d *ata) follow(ctx context.Context, m Method, progress OnProgress) error {
	err := await(ctx, m, unknownErasure, progress, func() (sanitizing, error) {
		s, err := d.sanitizing(0)
		switch {
		case errors.Is(err, errAborted):
			err = fmt.Errorf("%w: %w", errSanitize, err)
		case err == nil && !s.running && !s.completed:
			err = fmt.Errorf("%w: it has ended, and was not completed", errSanitize)
		}
		return s.sanitizing, err
	})
	if errors.Is(err, errSanitize) {
		_, _ = d.sanitizing(clearFailed) // for the methods that come next
	}
	return err
}

// Clear implements Firmware.
func (d *ata) Clear(ctx context.Context, m Method, progress OnProgress) error {
	if m == ATAErase || m == ATAEraseEnhanced {
		return d.erase(ctx, m)
	}
	if _, err := d.send(sanitizeATA(m)); err != nil {
		return err
	}
	return d.follow(ctx, m, progress)
}

// errPassword means that the disk may have kept Ingot's password, so that nobody can use
// it, whatever it holds.
var errPassword = errors.New("the disk keeps the password that Ingot set: the next wipe tries to remove it")

// erase sets a password, which an erase requires, and erases the disk and with it the
// password.
func (d *ata) erase(ctx context.Context, m Method) error {
	err := d.security(ataSetPassword, askLimit, false)
	if err != nil {
		err = fmt.Errorf("set a password: %w", err)
	} else {
		err = d.eraseUnit(ctx, m)
	}
	return errors.Join(err, d.withoutPassword())
}

// withoutPassword ensures that the password is removed. The disk may have set it even if
// it did not answer in time.
func (d *ata) withoutPassword() error {
	id, err := d.identify()
	if err == nil && id.enabled {
		id, err = d.liftPassword(id)
	}
	switch {
	case err != nil:
		return fmt.Errorf("%w (it cannot be asked: %w)", errPassword, err)
	case id.enabled:
		return errPassword
	}
	return nil
}

func (d *ata) eraseUnit(ctx context.Context, m Method) error {
	if _, err := d.send(ataCommand{command: ataErasePrepare, protocol: nonData, timeout: askLimit}); err != nil {
		return fmt.Errorf("prepare: %w", err)
	}
	limit := within(ctx, eraseTimeout(d.abilities.Estimate[m]))
	return d.security(ataEraseUnit, limit, m == ATAEraseEnhanced)
}
