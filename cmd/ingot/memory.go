package main

import (
	"io/fs"
	"path"
	"strconv"
	"strings"
)

// memoryShare is how much of what the kernel lets this process have is for Go's heap, in
// percent. The rest is for what Go does not count: the store's mapped file, the stacks of
// a burst, and programs that are run.
const memoryShare = 80

// memoryLimit is the memory limit for the garbage collector: a share of what this
// process's control groups may have, 0 = they may have all. Without it the heap may grow
// to twice what is in use, and the kernel kills Ingot where a collection would have done.
func memoryLimit(root fs.FS) int64 {
	groups, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return 0
	}
	limit := int64(0)
	for line := range strings.Lines(string(groups)) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) != 3 {
			continue
		}
		if least := groupLimit(root, fields[1], fields[2]); least > 0 && (limit == 0 || least < limit) {
			limit = least
		}
	}
	return limit / 100 * memoryShare
}

// groupLimit is the least limit of a group and those that it is in, see cgroups(7):
// version 2 names no controllers. A container sees its own group as the root.
func groupLimit(root fs.FS, controllers, group string) int64 {
	mount, file := "sys/fs/cgroup", "memory.max"
	if controllers != "" {
		mount, file = "sys/fs/cgroup/memory", "memory.limit_in_bytes"
	}
	if controllers != "" && !strings.Contains(","+controllers+",", ",memory,") {
		return 0
	}
	least := int64(0)
	for at := path.Clean("/" + group); ; at = path.Dir(at) {
		text, err := fs.ReadFile(root, path.Join(mount, at, file))
		limit, invalid := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
		if err == nil && invalid == nil && limit < unlimited && (least == 0 || limit < least) {
			least = limit
		}
		if at == "/" {
			return least
		}
	}
}

// unlimited is what version 1 says where there is no limit, or more.
const unlimited = 1 << 60
