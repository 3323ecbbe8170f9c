package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/insomniacslk/dhcp/dhcpv4/nclient4"
	"golang.org/x/sys/unix"

	"ingot/cmd/metalprobe/modules"
)

// card is the machine's network card.
const card = "eth0"

// startHardware loads modules until there are a network card and a disk: the bus of
// a virtual machine shows its devices only once it has its own.
func startHardware() error {
	f, err := os.Open(modules.IndexFile)
	if err != nil {
		return err
	}
	defer f.Close()
	index, err := modules.Parse(f)
	if err != nil {
		return err
	}
	return within("find hardware", func() error {
		loadModules(index)
		_, err := net.InterfaceByName(card)
		_, noDisk := findDisk()
		return errors.Join(err, noDisk)
	})
}

// loadModules loads modules for all hardware that can be seen.
func loadModules(index modules.Index) {
	_ = filepath.WalkDir("/sys/devices", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.Name() != "modalias" {
			return nil
		}
		for _, name := range index.For(line(path)) {
			for _, m := range append(index.Modules[name], name) {
				loadModule(m)
			}
		}
		return nil
	})
}

// loadModule loads a module. One that cannot be is missed as what it is for.
func loadModule(name string) {
	f, err := os.Open(filepath.Join(modules.Folder, name+".ko"))
	if err != nil {
		return
	}
	defer f.Close()
	_ = unix.FinitModule(int(f.Fd()), "", 0)
}

// configure gives the card the address that DHCP has for it.
func configure() error {
	if err := request(unix.SIOCSIFFLAGS, func(r *unix.Ifreq) error { r.SetUint16(unix.IFF_UP | unix.IFF_RUNNING); return nil }); err != nil {
		return fmt.Errorf("bring %s up: %w", card, err)
	}
	return within("get an address", func() error {
		c, err := nclient4.New(card, nclient4.WithTimeout(2*time.Second))
		if err != nil {
			return err
		}
		defer func() { _ = c.Close() }()
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		lease, err := c.Request(ctx)
		if err != nil {
			return err
		}
		return use(lease.ACK)
	})
}

func use(given *dhcpv4.DHCPv4) error {
	for what, ip := range map[uint]net.IP{unix.SIOCSIFADDR: given.YourIPAddr, unix.SIOCSIFNETMASK: net.IP(given.SubnetMask())} {
		if err := request(what, func(r *unix.Ifreq) error { return r.SetInet4Addr(ip.To4()) }); err != nil {
			return fmt.Errorf("set address %s: %w", given.YourIPAddr, err)
		}
	}
	return nil
}

// request changes a setting of the card (netdevice(7)).
func request(what uint, fill func(*unix.Ifreq) error) error {
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	defer unix.Close(socket)
	r, err := unix.NewIfreq(card)
	if err != nil {
		return err
	}
	return errors.Join(fill(r), unix.IoctlIfreq(socket, what, r))
}

func findDisk() (disk, error) {
	all, err := os.ReadDir("/sys/block")
	for _, d := range all {
		for _, kind := range []string{"vd", "sd", "nvme"} {
			if strings.HasPrefix(d.Name(), kind) {
				return disk("/dev/" + d.Name()), nil
			}
		}
	}
	return "", errors.Join(errors.New("there is no disk"), err)
}
