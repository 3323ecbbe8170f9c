package model

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"strings"
)

// RootDeviceHints are the conditions of one annotation ingot/root-device: a disk has to fulfil
// them all. The zero value is fulfilled by every disk.
type RootDeviceHints []RootDeviceHint

// RootDeviceHint is one condition that a disk has to fulfil: Key Op Value.
type RootDeviceHint struct {
	Key   string
	Op    string // =, != , and of size >= or <=
	Value string // as the person wrote it
	bytes uint64 // of size
}

// The keys of root device hints. Kernel names are none of them, because they are not the
// same in each boot.
const (
	hintSerial     = "serial"
	hintWWID       = "wwid"
	hintModel      = "model"
	hintVendor     = "vendor"
	hintTransport  = "transport"
	hintByPath     = "by-path"
	hintHCTL       = "hctl"
	hintRotational = "rotational"
	hintSize       = "size"
)

var hintKeys = []string{hintSerial, hintWWID, hintModel, hintVendor, hintTransport, hintByPath, hintHCTL, hintRotational, hintSize}

// hintOps are the operators, those first that others begin.
var hintOps = []string{"!=", ">=", "<=", "="}

// Bounds on the text of root device hints.
const (
	maxHintsLength = 1 << 10
	maxHints       = 16
)

// ParseRootDeviceHints reads the value of an annotation ingot/root-device: conditions
// "key op value" with commas between, such as "serial=S4X1*" or
// "rotational=false, size>=400GB". An empty text has no conditions.
func ParseRootDeviceHints(text string) (RootDeviceHints, error) {
	if len(text) > maxHintsLength {
		return nil, fmt.Errorf("root device hints have %d bytes: at most %d are read", len(text), maxHintsLength)
	}
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	parts := strings.Split(text, ",")
	if len(parts) > maxHints {
		return nil, fmt.Errorf("there are %d root device hints: at most %d are allowed", len(parts), maxHints)
	}
	var hints RootDeviceHints
	for _, part := range parts {
		h, err := parseRootDeviceHint(strings.TrimSpace(part))
		if err != nil {
			return nil, fmt.Errorf("root device hint %s: %w", show(strings.TrimSpace(part)), err)
		}
		hints = append(hints, h)
	}
	return hints, nil
}

var errKernelName = errors.New("names that the kernel gives, such as /dev/sda, are not the same in each boot: " +
	"name the disk by its serial, wwid or by-path")

func parseRootDeviceHint(text string) (RootDeviceHint, error) {
	at := strings.IndexAny(text, "!<>=")
	if strings.HasPrefix(text, "/dev/") && at < 0 {
		return RootDeviceHint{}, errKernelName
	}
	if at < 0 {
		return RootDeviceHint{}, fmt.Errorf("no operator is in it: write key=value, for example serial=S4X1NB0K; keys are %s", oneOf(hintKeys))
	}
	h := RootDeviceHint{Key: strings.ToLower(strings.TrimSpace(text[:at]))}
	for _, op := range hintOps {
		if value, ok := strings.CutPrefix(text[at:], op); ok {
			h.Op, h.Value = op, strings.TrimSpace(value)
			break
		}
	}
	return h.check()
}

// check finds what is wrong with a condition, and reads a size.
func (h RootDeviceHint) check() (RootDeviceHint, error) {
	ordered := h.Op == ">=" || h.Op == "<="
	switch {
	case slices.Contains([]string{"name", "path", "device", "devicename"}, h.Key), strings.HasPrefix(h.Value, "/"):
		return h, errKernelName
	case !slices.Contains(hintKeys, h.Key):
		return h, fmt.Errorf("key %s is not known; %s", show(h.Key), guess(h.Key, hintKeys))
	case h.Op == "":
		return h, errors.New("operators are =, != and, for size, >= and <=")
	case h.Value == "" || strings.ContainsAny(h.Value, "<>="):
		return h, fmt.Errorf("%s has no value that can be compared: write one value behind %s, without < > and =", h.Key, h.Op)
	case h.Key == hintSize && !ordered:
		return h, errors.New("a size is never met exactly: write size>= or size<=, or both")
	case h.Key != hintSize && ordered:
		return h, fmt.Errorf("operator %s is for size only: use = or !=", h.Op)
	case h.Key == hintRotational && rotational(h.Value) == "":
		return h, fmt.Errorf("rotational is true or false, not %s", show(h.Value))
	}
	var err error
	if h.Key == hintSize {
		h.bytes, err = parseSize(h.Value)
	}
	return h, err
}

// sizeUnits are the units of a size, the longest first.
var sizeUnits = []struct {
	name  string
	bytes uint64
}{
	{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40},
	{"kB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}, {"B", 1}, {"", 1},
}

// parseSize reads a whole number with a unit.
func parseSize(text string) (uint64, error) {
	for _, unit := range sizeUnits {
		digits, ok := strings.CutSuffix(text, unit.name)
		if !ok {
			continue
		}
		n, err := strconv.ParseUint(strings.TrimSpace(digits), 10, 64)
		if high, low := bits.Mul64(n, unit.bytes); err == nil && high == 0 {
			return low, nil
		}
		break
	}
	return 0, fmt.Errorf("%s is no size: write a whole number and a unit (kB, MB, GB, TB, KiB, MiB, GiB, TiB), such as 400GB", show(text))
}

// String is the condition as it is read.
func (h RootDeviceHint) String() string { return h.Key + h.Op + h.Value }

// String are the conditions as they are read.
func (h RootDeviceHints) String() string {
	texts := make([]string, 0, len(h))
	for _, hint := range h {
		texts = append(texts, hint.String())
	}
	return strings.Join(texts, ", ")
}

// Identity reports whether the hints name one disk, by its serial number or its world-wide
// name: two that fit are then a mistake, not a choice.
func (h RootDeviceHints) Identity() bool {
	return slices.ContainsFunc(h, func(hint RootDeviceHint) bool {
		return hint.Op == "=" && (hint.Key == hintSerial || hint.Key == hintWWID)
	})
}

// Fit reports whether a disk fulfils all conditions.
func (h RootDeviceHints) Fit(d ProbeDisk) bool {
	return !slices.ContainsFunc(h, func(hint RootDeviceHint) bool { return !hint.fit(d) })
}

func (h RootDeviceHint) fit(d ProbeDisk) bool {
	switch h.Op {
	case ">=":
		return d.SizeBytes >= h.bytes
	case "<=":
		return d.SizeBytes <= h.bytes
	}
	fold := hintFold(h.Key)
	return glob(fold(h.Value), fold(h.property(d))) == (h.Op == "=")
}

func (h RootDeviceHint) property(d ProbeDisk) string {
	switch h.Key {
	case hintSerial:
		return d.Serial
	case hintWWID:
		return d.WWID
	case hintModel:
		return d.Model
	case hintVendor:
		return d.Vendor
	case hintTransport:
		return d.Transport
	case hintByPath:
		return d.ByPath
	case hintHCTL:
		return d.HCTL
	}
	return strconv.FormatBool(d.Rotational)
}

// hintFold returns what makes two spellings of a property one: case never counts, nor do
// blanks in names; readers of serial numbers differ in dashes, those of world-wide names in
// what they put in front.
func hintFold(key string) func(string) string {
	switch key {
	case hintSerial:
		return func(s string) string { return strings.ToUpper(unbroken.Replace(s)) }
	case hintWWID:
		return foldWWID
	case hintRotational:
		return rotational
	case hintByPath:
		return foldPath
	}
	return func(s string) string { return strings.ToLower(strings.Join(strings.Fields(s), " ")) }
}

// foldWWID is a world-wide name, or a pattern of one, as it is compared. What is none of the
// forms of WorldWideName, such as t10.ATA…, is compared whole.
func foldWWID(text string) string {
	if name := WorldWideName(text); name != "" {
		return name
	}
	name := strings.ToLower(strings.Join(strings.Fields(text), ""))
	for _, prefix := range []string{"naa.", "eui.", "wwn-", "0x"} {
		name = strings.TrimPrefix(name, prefix)
	}
	return name
}

// foldPath is a place, or a pattern of one, as it is compared: newer udev writes a port of SATA as ata-1.0.
func foldPath(text string) string {
	path := strings.ToLower(strings.Join(strings.Fields(text), ""))
	at := strings.LastIndex(path, "-ata-")
	if at < 0 {
		return path
	}
	if port, ok := strings.CutSuffix(path[at:], ".0"); ok && !strings.Contains(port, ".") {
		return path[:at] + port
	}
	return path
}

// rotational is a spelling of true or false, "" for neither.
func rotational(text string) string {
	switch strings.ToLower(text) {
	case "true", "1", "yes":
		return "true"
	case "false", "0", "no":
		return "false"
	}
	return ""
}

// glob reports whether text has the form of pattern, in which * stands for any text.
func glob(pattern, text string) bool {
	parts := strings.Split(pattern, "*")
	text, ok := strings.CutPrefix(text, parts[0])
	if !ok || len(parts) == 1 {
		return ok && text == ""
	}
	last := len(parts) - 1
	for _, part := range parts[1:last] {
		_, text, ok = strings.Cut(text, part)
		if !ok {
			return false
		}
	}
	return strings.HasSuffix(text, parts[last])
}
