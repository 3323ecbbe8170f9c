// Guest is what the claims of the test boot: started from the network it does what a
// tenant's installer does, installs itself on the machine's disk with what its
// Ignition says, and reports the server up; started from the disk it is what was
// installed. Either way it tells the test's witness who it is, and stays.
//
// It is the init of an initramfs that package cmd/probeimage/image made, and its
// machine's only process.
package main

import (
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"ingot/features/life"
)

func main() {
	if os.Getpid() != 1 {
		os.Exit(1) // the kernel asks for a module that is not here
	}
	fmt.Println("guest: ended:", run())
	for {
		time.Sleep(time.Hour) // the kernel does not take the end of its init well
	}
}

// run is the machine's life. It returns only if something is wrong.
func run() error {
	if err := mount(); err != nil {
		return err
	}
	if err := startHardware(); err != nil {
		return err
	}
	if err := configure(); err != nil {
		return err
	}
	disk, err := findDisk()
	if err != nil {
		return err
	}
	said, err := commandLine()
	if err != nil {
		return err
	}
	from := life.FromDisk
	if ignition := said["ignition.config.url"]; ignition != "" {
		from = life.FromNetwork
		err = install(disk, ignition, said["gl.url"])
	}
	if err != nil {
		return err
	}
	var runs life.Installation
	err = disk.open(func(f *os.File) (err error) {
		runs, err = life.LoadInstallation(f)
		return err
	})
	if err != nil {
		return err
	}
	return obey(runs.Files[life.WitnessFile], life.Word{
		From: from, Installation: runs.ID, Hostname: runs.Files[life.HostnameFile],
		UUID: strings.ToLower(line("/sys/class/dmi/id/product_uuid")), Boot: line("/proc/sys/kernel/random/boot_id"),
	})
}

// obey tells the witness again and again, and does what it orders.
func obey(witness string, w life.Word) error {
	for ; ; time.Sleep(time.Second) {
		order, err := post(witness, w)
		if err != nil {
			fmt.Println("guest: tell the witness:", err)
		}
		if order == life.OrderRestart {
			return unix.Reboot(unix.LINUX_REBOOT_CMD_RESTART)
		}
	}
}

func mount() error {
	for folder, kind := range map[string]string{"/proc": "proc", "/sys": "sysfs", "/dev": "devtmpfs"} {
		if err := unix.Mount(kind, folder, kind, 0, ""); err != nil {
			return fmt.Errorf("mount %s: %w", folder, err)
		}
	}
	return nil
}

// commandLine is what the kernel was told, by key.
func commandLine() (map[string]string, error) {
	text, err := os.ReadFile("/proc/cmdline")
	said := make(map[string]string)
	for word := range strings.FieldsSeq(string(text)) {
		key, value, _ := strings.Cut(word, "=")
		said[key] = value
	}
	return said, err
}

// line is what a file of one line says, "" without one.
func line(path string) string {
	text, _ := os.ReadFile(path)
	return strings.TrimSpace(string(text))
}

// within tries until something works, for as long as a busy machine may need.
func within(what string, try func() error) error {
	const limit, pause = time.Minute, 200 * time.Millisecond
	var err error
	for began := time.Now(); time.Since(began) < limit; time.Sleep(pause) {
		if err = try(); err == nil {
			return nil
		}
	}
	return fmt.Errorf("%s: %w", what, err)
}
