package main

import (
	"testing"
	"testing/fstest"
)

func TestMemoryLimit(t *testing.T) {
	const gib = int64(1 << 30)
	share := func(limit int64) int64 { return limit / 100 * memoryShare }
	tests := map[string]struct {
		files map[string]string
		want  int64
	}{
		"of a systemd unit": {files: map[string]string{
			"proc/self/cgroup": "0::/system.slice/ingot.service\n",
			"sys/fs/cgroup/system.slice/ingot.service/memory.max": "2147483648\n",
			"sys/fs/cgroup/system.slice/memory.max":               "max\n",
		}, want: share(2 * gib)},
		"of the slice that the unit is in": {files: map[string]string{
			"proc/self/cgroup": "0::/system.slice/ingot.service\n",
			"sys/fs/cgroup/system.slice/ingot.service/memory.max": "2147483648\n",
			"sys/fs/cgroup/system.slice/memory.max":               "1073741824\n",
		}, want: share(gib)},
		"of the unit, though its slice may have more": {files: map[string]string{
			"proc/self/cgroup": "0::/system.slice/ingot.service\n",
			"sys/fs/cgroup/system.slice/ingot.service/memory.max": "1073741824\n",
			"sys/fs/cgroup/system.slice/memory.max":               "4294967296\n",
		}, want: share(gib)},
		"of a container": {files: map[string]string{
			"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "536870912\n",
		}, want: share(gib / 2)},
		"of a container that sees the host's name of its group": {files: map[string]string{
			"proc/self/cgroup": "0::/docker/0123\n", "sys/fs/cgroup/memory.max": "536870912\n",
		}, want: share(gib / 2)},
		"of control groups version 1": {files: map[string]string{
			"proc/self/cgroup": "5:cpu,cpuacct:/a\n4:memory:/system.slice/ingot.service\n0::/system.slice/ingot.service\n",
			"sys/fs/cgroup/memory/system.slice/ingot.service/memory.limit_in_bytes": "1073741824\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes":                            "9223372036854771712\n",
		}, want: share(gib)},
		"where there is none": {files: map[string]string{
			"proc/self/cgroup": "0::/user.slice\n", "sys/fs/cgroup/user.slice/memory.max": "max\n",
		}, want: 0},
		"where version 1 has none": {files: map[string]string{
			"proc/self/cgroup": "4:memory:/\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
		}, want: 0},
		"without control groups": {files: map[string]string{}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			root := make(fstest.MapFS)
			for file, text := range tt.files {
				root[file] = &fstest.MapFile{Data: []byte(text)}
			}
			if got := memoryLimit(root); got != tt.want {
				t.Errorf("the limit is %d, want %d", got, tt.want)
			}
		})
	}
}
