package machine

import (
	"context"
	"encoding/binary"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// PowerOff flushes the disks' caches and powers the machine off.
func PowerOff() { end(unix.LINUX_REBOOT_CMD_POWER_OFF) }

// Restart flushes the disks' caches and restarts the machine.
func Restart() { end(unix.LINUX_REBOOT_CMD_RESTART) }

// end stops the machine. Network cards are taken down first, so that nothing is sent
// while their drivers shut down: Linux 6.1 was seen to hang in virtio_net then, while a
// check for duplicate IPv6 addresses was under way.
func end(command int) {
	for _, card := range ethernetCards() {
		_ = setFlags(card.Name, func(flags uint16) uint16 { return flags &^ unix.IFF_UP })
	}
	syncDisks()
	_ = unix.Reboot(command)
}

// syncFor is how long a machine that ends waits for its caches to be written: a disk
// that hangs would keep it on for ever.
const syncFor = 10 * time.Second

func syncDisks() {
	done := make(chan struct{})
	go func() {
		unix.Sync()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(syncFor):
	}
}

// searchButtons is how often new input devices are looked for: a press before the
// device is known is lost.
const searchButtons = 200 * time.Millisecond

// awaitPowerButton returns true when the power button is pressed, which is also how a
// BMC asks for a graceful shutdown, and false when ctx ends.
func awaitPowerButton(ctx context.Context, log *slog.Logger) bool {
	pressed := make(chan string, 1)
	known := make(map[string]bool)
	tick := time.NewTicker(searchButtons)
	defer tick.Stop()
	for {
		devices, _ := filepath.Glob("/dev/input/event*")
		for _, device := range devices {
			if known[device] {
				continue
			}
			known[device] = true
			if f, err := os.Open(device); err == nil {
				defer f.Close()                   //nolint:revive // few, and all are needed until the end
				go readButton(f, device, pressed) // ends with the file
			}
		}
		select {
		case device := <-pressed:
			log.Info("power button is pressed", "device", device)
			return true
		case <-ctx.Done():
			return false
		case <-tick.C:
		}
	}
}

// readButton sends the device's name when the power key of an input device goes down.
func readButton(f *os.File, device string, pressed chan<- string) {
	event := make([]byte, inputEventSize)
	for {
		if _, err := f.Read(event); err != nil {
			return
		}
		if powerPressed(event) {
			select {
			case pressed <- device:
			default:
			}
		}
	}
}

// An input_event of linux/input.h: a time of two words, type, code, value.
const inputEventSize = 24

// powerPressed reports whether an input event is the power key going down.
func powerPressed(event []byte) bool {
	const key, power, down = 1, 116, 1 // EV_KEY, KEY_POWER
	order := binary.NativeEndian
	return len(event) == inputEventSize &&
		order.Uint16(event[16:]) == key && order.Uint16(event[18:]) == power && order.Uint32(event[20:]) == down
}
