package machine

import (
	"path"
	"slices"
)

// Role is what this program is to be.
type Role int

// The roles.
const (
	RoleNone       Role = iota // a program like any other
	RoleSupervisor             // the first process of a machine
	RoleWorker                 // what the first process started
	RolePowerOff               // /sbin/poweroff, called by the kernel
	RoleReboot                 // /sbin/reboot
	RoleModprobe               // /sbin/modprobe, called by the kernel
)

// workerFlag starts the worker. It is not meant for people.
const workerFlag = "--machine"

// RoleOf returns the role, by the name that the program was called by, its arguments
// and process IDs. A container's program is a first process as well, so the program has
// to be called init, or be given --init, to supervise.
func RoleOf(args []string, pid, parent int) Role {
	name, first := path.Base(args[0]), ""
	if len(args) > 1 {
		first = args[1]
	}
	switch {
	case name == "poweroff", name == "halt":
		return RolePowerOff
	case name == "reboot":
		return RoleReboot
	case name == "modprobe":
		return RoleModprobe
	case parent == 1 && first == workerFlag:
		return RoleWorker
	case pid == 1 && (name == "init" || slices.Contains(args[1:], "--init")):
		return RoleSupervisor
	}
	return RoleNone
}
