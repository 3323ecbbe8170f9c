package bmc

import (
	"context"
	"encoding/json"
	"net/http"
	"time"
)

// Bounds on waiting for a task.
const (
	taskWithin = 10 * time.Second
	taskPoll   = time.Second // unless the BMC says when to ask again
)

// followTask waits for what the BMC accepted and does later (DSP0266 §12.2), so that
// reading back does not come too early. It waits no longer than taskWithin and not for
// a task that waits itself, as for the machine's next start. What came of the task is
// for the caller to see in what it changed.
func (c *client) followTask(ctx context.Context, a *answer) {
	if a.status != http.StatusAccepted {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, taskWithin)
	defer cancel()
	for monitor := taskMonitor(a); monitor != "" && a.underWay(); {
		if !pause(ctx, max(c.retryAfter(a.header), c.opts.taskPoll)) {
			return
		}
		var err error
		if a, err = c.do(ctx, http.MethodGet, monitor, nil); err != nil { // it may answer without a body
			return
		}
	}
}

type task struct {
	ID          string `json:"@odata.id"`
	TaskMonitor string
	TaskState   string
}

// taskMonitor returns where to ask how the task goes, or "".
func taskMonitor(a *answer) string {
	if location := path(a.header.Get("Location")); location != "" {
		return location
	}
	var t task
	if json.Unmarshal(a.body, &t) != nil {
		return ""
	}
	if monitor := path(t.TaskMonitor); monitor != "" {
		return monitor
	}
	return path(t.ID)
}

// underWay reports whether the task is being done.
func (a *answer) underWay() bool {
	var t task
	_ = json.Unmarshal(a.body, &t) // a monitor may answer without a body
	switch t.TaskState {
	case "New", "Starting", "Running":
		return true
	case "":
		return a.status == http.StatusAccepted
	}
	return false
}

// pause waits and reports false when ctx ended before.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
