package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os/exec"
	"slices"
	"strings"
)

// interfaceAddress is an interface of this machine, and the address that it has on the
// network there: NAME=ADDRESS/BITS on the command line, or the name alone.
type interfaceAddress struct {
	name    string
	address netip.Prefix // not masked; invalid if only the name is given
}

// bridgeAddress is the address of this machine on a bridge for which none is given.
var bridgeAddress = netip.MustParsePrefix("10.20.0.1/24")

// UnmarshalText implements encoding.TextUnmarshaler.
func (i *interfaceAddress) UnmarshalText(text []byte) error {
	name, address, given := strings.Cut(string(text), "=")
	prefix, err := netip.ParsePrefix(address)
	switch {
	case given && err != nil || name == "" || strings.ContainsAny(name, "/ \t\n"):
		return fmt.Errorf("%q: write INTERFACE or INTERFACE=ADDRESS/BITS, such as rack0=10.20.0.1/24", text)
	case !given:
		i.name = name
		return nil
	case prefix.Masked().Addr() == prefix.Addr():
		return fmt.Errorf("%q: %s is the network: write the address of this machine on it, such as %s/%d", text, address, prefix.Addr().Next(), prefix.Bits())
	}
	i.name, i.address = name, prefix
	return nil
}

// maxBridgeName leaves room for a number behind it in the name of a tap: Linux has 15 bytes.
const maxBridgeName = 11

// bridge is a network of QEMU virtual machines and this machine: a bridge, and a tap
// interface for each machine.
type bridge struct {
	interfaceAddress
	taps []string
	made []string // interfaces that make made
}

// newBridge returns the bridge of n machines. It is not there before it is made.
func newBridge(at interfaceAddress, n int) (*bridge, error) {
	if len(at.name) > maxBridgeName {
		return nil, fmt.Errorf("--bridge %s: the name of a bridge has at most %d bytes", at.name, maxBridgeName)
	}
	if !at.address.IsValid() {
		at.address = bridgeAddress
	}
	b := &bridge{interfaceAddress: at}
	for i := range n {
		b.taps = append(b.taps, fmt.Sprintf("%s-%d", at.name, i+1))
	}
	return b, nil
}

// commands are the arguments of ip(8) that make the bridge. It forwards from the start, for
// firmware does not wait half a minute for a spanning tree.
func (b *bridge) commands() [][]string {
	all := [][]string{
		{"link", "add", "name", b.name, "type", "bridge", "stp_state", "0", "forward_delay", "0", "mcast_snooping", "0"},
		{"address", "add", b.address.String(), "dev", b.name},
	}
	for _, tap := range b.taps {
		all = append(all, []string{"tuntap", "add", tap, "mode", "tap"}, []string{"link", "set", tap, "master", b.name, "up"})
	}
	return append(all, []string{"link", "set", b.name, "up"})
}

func (b *bridge) make(ctx context.Context) error {
	for _, args := range b.commands() {
		if err := ip(ctx, args...); err != nil {
			b.remove(ctx)
			return fmt.Errorf("--bridge %s: %w", b.name, b.known(err))
		}
		switch {
		case args[0] == "tuntap":
			b.made = append(b.made, args[2])
		case args[1] == "add" && args[0] == "link":
			b.made = append(b.made, args[3])
		}
	}
	return nil
}

// known adds to an error what to do about an interface that is there already, perhaps from a rack
// that was killed.
func (b *bridge) known(err error) error {
	if text := err.Error(); !strings.Contains(text, "File exists") && !strings.Contains(text, "Device or resource busy") {
		return err
	}
	return fmt.Errorf("%w: choose another name, or remove what is there, if it is of a rack that was killed, by ip link delete: %s",
		err, strings.Join(append([]string{b.name}, b.taps...), ", "))
}

func (b *bridge) remove(ctx context.Context) {
	for _, name := range slices.Backward(b.made) {
		_ = ip(context.WithoutCancel(ctx), "link", "delete", name) // somebody may have removed it
	}
	b.made = nil
}

func ip(ctx context.Context, args ...string) error {
	var says bytes.Buffer
	cmd := exec.CommandContext(ctx, "ip", args...)
	cmd.Stdout, cmd.Stderr = &says, &says
	err := cmd.Run()
	if errors.Is(err, exec.ErrNotFound) {
		return errors.New("the program ip is not installed: apt-get install iproute2")
	}
	if err != nil {
		return fmt.Errorf("ip %s: %s", strings.Join(args, " "), cmp.Or(strings.TrimSpace(says.String()), err.Error()))
	}
	return nil
}
