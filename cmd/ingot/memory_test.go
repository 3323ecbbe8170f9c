package main

import (
	"bytes"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"ingot/model/must"
	"ingot/model/testtool"
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

// TestBallastTakesNoMemory shows that garbage gathers for longer with the ballast, which is
// not resident, also where it lies in memory that was in use before: in a process of its own, which
// does nothing else meanwhile.
func TestBallastTakesNoMemory(t *testing.T) {
	if testtool.RaceDetector {
		t.Skip("NOT MEASURED: the race detector has memory of its own beside that of the program")
	}
	const alone = "INGOT_TEST_ALONE"
	if os.Getenv(alone) == "" {
		cmd := exec.Command(os.Args[0], "-test.run", "^"+t.Name()+"$")
		cmd.Env = append(os.Environ(), alone+"=yes")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
		return
	}
	if used := bytes.Repeat([]byte{1}, 2*ballastSize); used[0] != 1 {
		t.Fatal("nobody wrote to it")
	}
	debug.FreeOSMemory()
	before, goal := resident(t), heapGoal()
	ballast := newBallast()
	runtime.GC()
	if grown := resident(t) - before; grown > ballastSize/4 {
		t.Errorf("%d bytes more are resident, with a ballast of %d", grown, ballastSize)
	}
	if more := heapGoal() - goal; more < ballastSize {
		t.Errorf("the heap may grow by %d bytes more until it is collected, want at least the ballast's %d", more, ballastSize)
	}
	runtime.KeepAlive(ballast)
}

// heapGoal is the size at which the heap is collected.
func heapGoal() int64 {
	sample := []metrics.Sample{{Name: "/gc/heap/goal:bytes"}}
	metrics.Read(sample)
	return int64(sample[0].Value.Uint64())
}

func resident(t *testing.T) int64 {
	t.Helper()
	text := must.Get(os.ReadFile("/proc/self/statm"))(t)
	pages := must.Get(strconv.ParseInt(strings.Fields(string(text))[1], 10, 64))(t)
	return pages * int64(os.Getpagesize())
}
