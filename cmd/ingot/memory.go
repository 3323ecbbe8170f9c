package main

import (
	"io/fs"
	"path"
	"strconv"
	"strings"
)

// memoryShare is the share of this process's memory limit that is for Go's heap, in percent.
// The rest is for what Go does not count: the store's mapped file, the stacks of a burst, and
// child processes.
const memoryShare = 80

// memoryLimit returns the memory limit for the garbage collector: a share of the limit of
// this process's control groups, 0 if they have none. Without it the heap may grow to twice
// what is in use, and the kernel kills Ingot where a collection would have been enough.
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
		if smallest := groupLimit(root, fields[1], fields[2]); smallest > 0 && (limit == 0 || smallest < limit) {
			limit = smallest
		}
	}
	return limit / 100 * memoryShare
}

// groupLimit returns the smallest limit of a group and its ancestors, see cgroups(7): version
// 2 names no controllers. A container sees its own group as the root.
func groupLimit(root fs.FS, controllers, group string) int64 {
	mount, file := "sys/fs/cgroup", "memory.max"
	if controllers != "" {
		mount, file = "sys/fs/cgroup/memory", "memory.limit_in_bytes"
	}
	if controllers != "" && !strings.Contains(","+controllers+",", ",memory,") {
		return 0
	}
	smallest := int64(0)
	for at := path.Clean("/" + group); ; at = path.Dir(at) {
		text, err := fs.ReadFile(root, path.Join(mount, at, file))
		limit, invalid := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
		if err == nil && invalid == nil && limit < unlimited && (smallest == 0 || limit < smallest) {
			smallest = limit
		}
		if at == "/" {
			return smallest
		}
	}
}

// unlimited is a bound that only limits of version 1 reach that mean none.
const unlimited = 1 << 60
