package efi

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Folder is where Linux shows the firmware's variables.
const Folder = "/sys/firmware/efi/efivars"

// ErrNone means that the machine was not started by a UEFI firmware.
var ErrNone = errors.New("the machine was not started by UEFI")

// global is the vendor of the variables that UEFI defines (UEFI specification §3.3).
const global = "-8be4df61-93ca-11d2-aa0d-00e098032b8c"

// attributes are those of all variables here: kept without power, for the firmware and the
// running system.
const attributes = 7

// Bounds on what a firmware may have.
const (
	maxVariable = 64 << 10
	maxOptions  = 1024
)

// Variables are the firmware's, in a folder.
type Variables struct{ Folder string }

// Open returns the variables of this machine's firmware. The error is ErrNone on a machine with
// a BIOS.
func Open() (Variables, error) {
	if _, err := os.Stat(filepath.Dir(Folder)); err != nil {
		return Variables{}, ErrNone
	}
	v := Variables{Folder}
	if entries, err := os.ReadDir(Folder); err == nil && len(entries) > 0 {
		return v, nil
	}
	const options = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC
	if err := unix.Mount("efivarfs", Folder, "efivarfs", options, ""); err != nil && !errors.Is(err, unix.EBUSY) {
		return v, fmt.Errorf("mount the firmware's variables: %w", err)
	}
	return v, nil
}

// State reads what the firmware would start. What cannot be read of it is left out.
func (v Variables) State() (State, error) {
	s := State{Options: make(map[uint16]Option)}
	entries, err := os.ReadDir(v.Folder)
	if err != nil {
		return s, err
	}
	for _, e := range entries {
		digits, ok := strings.CutPrefix(strings.TrimSuffix(e.Name(), global), "Boot")
		if !ok || !strings.HasSuffix(e.Name(), global) || len(digits) != 4 || len(s.Options) >= maxOptions {
			continue
		}
		number, err := strconv.ParseUint(digits, 16, 16)
		if err != nil {
			continue
		}
		b, err := v.read("Boot" + digits)
		o, invalid := ParseOption(b)
		if err != nil || invalid != nil {
			o = Option{Path: []byte{}} // its number is taken all the same
		}
		s.Options[uint16(number)] = o
	}
	if s.Order, err = v.numbers("BootOrder"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return s, err
	}
	s.Current, s.Next = v.number("BootCurrent"), v.number("BootNext")
	return s, nil
}

// Apply makes a change, and reads back what it wrote.
func (v Variables) Apply(c Change) error {
	if c.Option != nil {
		if err := v.write(bootName(c.Number), c.Option.Encode()); err != nil {
			return err
		}
	}
	if known, err := v.numbers("BootOrder"); len(c.Order) > 0 && (err != nil || !slices.Equal(known, c.Order)) {
		if err := v.write("BootOrder", encode(c.Order...)); err != nil {
			return err
		}
	}
	if c.Next != nil {
		if err := v.write("BootNext", encode(*c.Next)); err != nil {
			return err
		}
	}
	var errs []error
	if len(c.Order) == 0 { // a firmware without an order makes one
		errs = append(errs, v.remove("BootOrder"))
	}
	if c.DropNext {
		errs = append(errs, v.remove("BootNext"))
	}
	for _, number := range c.Delete {
		errs = append(errs, v.remove(bootName(number)))
	}
	return errors.Join(errs...)
}

// Clean takes away the options whose label begins with prefix.
func (v Variables) Clean(prefix string) (removed int, err error) {
	state, err := v.State()
	if err != nil {
		return 0, err
	}
	c := Remove(state, prefix)
	if len(c.Delete) == 0 {
		return 0, nil
	}
	return len(c.Delete), v.Apply(c)
}

func bootName(number uint16) string { return fmt.Sprintf("Boot%04X", number) }

func encode(numbers ...uint16) []byte {
	var b []byte
	for _, n := range numbers {
		b = binary.LittleEndian.AppendUint16(b, n)
	}
	return b
}

func (v Variables) read(name string) ([]byte, error) {
	f, err := os.Open(v.path(name))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxVariable))
	if err != nil {
		return nil, err
	}
	if len(b) < 4 { // attributes
		return nil, fmt.Errorf("variable %s has %d bytes", name, len(b))
	}
	return b[4:], nil
}

func (v Variables) numbers(name string) ([]uint16, error) {
	b, err := v.read(name)
	if err != nil {
		return nil, err
	}
	numbers := make([]uint16, len(b)/2)
	for n := range numbers {
		numbers[n] = binary.LittleEndian.Uint16(b[2*n:])
	}
	return numbers, nil
}

// number is a variable of one number, nil when there is none.
func (v Variables) number(name string) *uint16 {
	numbers, err := v.numbers(name)
	if err != nil || len(numbers) != 1 {
		return nil
	}
	return &numbers[0]
}

func (v Variables) path(name string) string { return filepath.Join(v.Folder, name+global) }

// write sets a variable by one write, as the kernel wants it, and reads it back. Many firmwares
// refuse writes when their memory is nearly full, and some accept them and forget.
func (v Variables) write(name string, value []byte) error {
	v.unlock(name)
	f, err := os.OpenFile(v.path(name), os.O_WRONLY|os.O_CREATE, 0o644)
	if err != nil {
		return fmt.Errorf("write variable %s: %w", name, err)
	}
	_, err = f.Write(append(binary.LittleEndian.AppendUint32(nil, attributes), value...))
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write variable %s: %w", name, err)
	}
	got, err := v.read(name)
	if err != nil {
		return fmt.Errorf("read back variable %s: %w", name, err)
	}
	if !bytes.Equal(got, value) {
		return fmt.Errorf("variable %s is not kept by the firmware: it has %d bytes, or others, and %d were written", name, len(got), len(value))
	}
	return nil
}

func (v Variables) remove(name string) error {
	v.unlock(name)
	if err := os.Remove(v.path(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("delete variable %s: %w", name, err)
	}
	return nil
}

// immutable is the flag that Linux protects variables by from those that delete all files.
const immutable = 0x10 // FS_IMMUTABLE_FL of linux/fs.h

// unlock lets a variable be changed. Without success the change fails, and says why.
func (v Variables) unlock(name string) {
	f, err := os.Open(v.path(name))
	if err != nil {
		return
	}
	defer f.Close()
	flags, err := unix.IoctlGetUint32(int(f.Fd()), unix.FS_IOC_GETFLAGS)
	if err == nil && flags&immutable != 0 {
		_ = unix.IoctlSetPointerInt(int(f.Fd()), unix.FS_IOC_SETFLAGS, int(flags&^immutable))
	}
}
