package machine

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// lookEvery is how often network cards, cables and router advertisements are looked for.
const lookEvery = 100 * time.Millisecond

// carrierAfter is when a missing cable is reported.
const carrierAfter = 10 * time.Second

type nic struct {
	name    string
	index   int
	mac     net.HardwareAddr
	id      *identity
	uplinks *uplinks
	log     *slog.Logger
}

// network configures all Ethernet cards, for as long as the machine is on.
type network struct {
	id      *identity
	uplinks *uplinks
	log     *slog.Logger
}

// run follows cards as they appear, until ctx ends.
func (n *network) run(ctx context.Context) error {
	if err := setUp("lo"); err != nil {
		n.log.Warn("loopback is not up", "err", err)
	}
	var cards sync.WaitGroup
	defer cards.Wait()
	known := make(map[int]bool)
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		for _, card := range ethernetCards() {
			if !known[card.Index] {
				known[card.Index] = true
				c := &nic{
					name: card.Name, index: card.Index, mac: card.HardwareAddr,
					id: n.id, uplinks: n.uplinks, log: n.log.With("interface", card.Name),
				}
				cards.Go(func() { c.run(ctx) })
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// ethernetCards lists the interfaces that have hardware behind them.
func ethernetCards() []net.Interface {
	all, _ := net.Interfaces() // the next attempt may succeed
	return slices.DeleteFunc(all, func(i net.Interface) bool {
		_, err := os.Stat(filepath.Join("/sys/class/net", i.Name, "device"))
		return err != nil || len(i.HardwareAddr) != 6
	})
}

// run brings a card up and configures it when it has a cable.
func (c *nic) run(ctx context.Context) {
	c.log.Info("network card", "mac", c.mac)
	if err := setUp(c.name); err != nil {
		c.log.Warn("network card cannot be brought up", "err", err)
		return
	}
	if !c.awaitCarrier(ctx) {
		return
	}
	var families sync.WaitGroup
	families.Go(func() { c.configure4(ctx) })
	families.Go(func() { c.configure6(ctx) })
	families.Wait()
}

// awaitCarrier waits for a link: a cable with a switch at its other end.
func (c *nic) awaitCarrier(ctx context.Context) bool {
	began, reported := time.Now(), false
	for {
		state, _ := os.ReadFile(filepath.Join("/sys/class/net", c.name, "carrier"))
		if strings.TrimSpace(string(state)) == "1" {
			c.log.Info("link is up")
			return true
		}
		if !reported && time.Since(began) > carrierAfter {
			reported = true
			c.log.Info("no link: is the cable plugged in, and the switch's port enabled?")
		}
		if !pause(ctx, lookEvery) {
			return false
		}
	}
}

// preferred reports whether the firmware booted from this card, or does not say from
// which.
func (c *nic) preferred() bool {
	return c.id.bootMAC == nil || bytes.Equal(c.id.bootMAC, c.mac)
}

// setUp brings an interface up, by its flag IFF_UP.
func setUp(name string) error {
	return setFlags(name, func(flags uint16) uint16 { return flags | unix.IFF_UP })
}

// setFlags changes an interface's flags (netdevice(7)).
func setFlags(name string, change func(flags uint16) uint16) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	request, err := unix.NewIfreq(name)
	if err != nil {
		return err
	}
	if err := unix.IoctlIfreq(fd, unix.SIOCGIFFLAGS, request); err != nil {
		return err
	}
	request.SetUint16(change(request.Uint16()))
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, request)
}

// pause waits, and reports whether ctx is still alive.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
