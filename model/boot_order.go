package model

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// BootOption is one entry of a firmware's boot menu.
type BootOption struct {
	Reference  string // by which the boot order names it
	Name       string // for people
	DevicePath string // UEFI's
}

// ArrangedBoot is the boot order now with the options that want names in front, those of lower
// priority first. Each entry of want names one by its device, or else by its name: the
// option's reference, or else what people call it, or else its device path. An error says
// what names none, or several.
func ArrangedBoot(want []BootOrder, now []string, options []BootOption) ([]string, error) {
	for _, ref := range now {
		if !slices.ContainsFunc(options, func(o BootOption) bool { return o.Reference == ref }) {
			options = append(slices.Clip(options), BootOption{Reference: ref})
		}
	}
	byPriority := slices.SortedFunc(slices.Values(want), func(a, b BootOrder) int { return cmp.Compare(a.Priority, b.Priority) })
	var order []string
	for _, w := range byPriority {
		ref, err := w.option(options)
		if err != nil {
			return nil, err
		}
		if slices.Contains(order, ref) {
			return nil, fmt.Errorf("entry %s names %s, which another names, too", show(w.Name), show(ref))
		}
		order = append(order, ref)
	}
	for _, ref := range now {
		if !slices.Contains(order, ref) {
			order = append(order, ref)
		}
	}
	return order, nil
}

// option is the reference of the one option that the entry names.
func (b BootOrder) option(options []BootOption) (string, error) {
	for _, name := range []string{b.Device, b.Name} {
		for _, same := range []func(BootOption) bool{
			func(o BootOption) bool { return o.Reference == name },
			func(o BootOption) bool { return strings.EqualFold(o.Reference, name) },
			func(o BootOption) bool { return strings.EqualFold(o.Name, name) },
			func(o BootOption) bool { return strings.EqualFold(o.DevicePath, name) },
		} {
			i := slices.IndexFunc(options, same)
			switch {
			case i < 0 || name == "":
			case slices.ContainsFunc(options[i+1:], same):
				return "", fmt.Errorf("%s is the name of several boot options: name one by its reference: %s", show(name), shownOptions(options))
			default:
				return options[i].Reference, nil
			}
		}
	}
	var known []string
	for _, o := range options {
		known = append(known, o.Reference, o.Name)
	}
	return "", fmt.Errorf("no boot option is called %s or %s%s; there are %s", show(b.Device), show(b.Name),
		didYouMean(cmp.Or(Nearest(b.Device, known), Nearest(b.Name, known))), shownOptions(options))
}

func shownOptions(options []BootOption) string {
	const most = 8
	var all []string
	for _, o := range options[:min(len(options), most)] {
		text := shorten(o.Reference)
		if o.Name != "" {
			text += " (" + shorten(o.Name) + ")"
		}
		all = append(all, text)
	}
	if more := len(options) - most; more > 0 {
		all = append(all, strconv.Itoa(more)+" more")
	}
	return strings.Join(all, ", ")
}

// BootOrderWish is a digest of what Git says of a boot order.
func BootOrderWish(want []BootOrder) string { return shortDigest(fmt.Sprintf("%#v", want)) }

// BootOrderKey is a digest of that, and of what the answer of the machine depends on: while it
// is the same, nothing has to be asked again.
func BootOrderKey(want []BootOrder, firmware string, now []string) string {
	return BootOrderWish(want) + "-" + shortDigest(fmt.Sprintf("%q %q", firmware, now))
}

func shortDigest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}
