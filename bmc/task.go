package bmc

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Bounds on waiting for a task.
const (
	taskWithin = 10 * time.Second
	taskPoll   = time.Second // unless the BMC says when to ask again
)

// followTask waits for the task of an accepted request (DSP0266 §12.2), so that reading back does not come too early,
// and returns why the task failed, "" if it did not or that is unknown. It waits no longer than taskWithin and not for a
// task that waits itself, as for the machine's next start.
func (c *client) followTask(ctx context.Context, a *answer) (failure string) {
	if a.status != http.StatusAccepted {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, taskWithin)
	defer cancel()
	for monitor := taskMonitor(a); monitor != "" && a.underWay(); {
		if !pause(ctx, max(c.retryAfter(a.header), c.opts.taskPoll)) {
			return ""
		}
		next, err := c.do(ctx, http.MethodGet, monitor, nil) // it may answer without a body
		switch statusOf(err) {
		case http.StatusBadRequest, http.StatusConflict: // a monitor answers as the request would have (DSP0266 §12.2)
			return asError(err).Detail
		}
		if err != nil {
			return ""
		}
		a = next
	}
	return c.detail(a.task().failure())
}

type task struct {
	ID          string `json:"@odata.id"`
	TaskMonitor string
	TaskState   string
	Messages    []struct{ Message string }
}

// task decodes a task. A monitor may answer without a body, which gives an empty task.
func (a *answer) task() (t task) {
	_ = json.Unmarshal(a.body, &t)
	return t
}

// failure describes how a task failed, "" if it did not.
func (t task) failure() string {
	if !slices.Contains([]string{"Exception", "Killed", "Cancelled"}, t.TaskState) {
		return ""
	}
	texts := []string{"its task ended in state " + t.TaskState}
	for _, m := range t.Messages[:min(len(t.Messages), maxMessages)] {
		texts = append(texts, m.Message)
	}
	return strings.Join(texts, ": ")
}

// taskMonitor returns where to ask how the task goes, or "".
func taskMonitor(a *answer) string {
	if location := path(a.header.Get("Location")); location != "" {
		return location
	}
	t := a.task()
	if monitor := path(t.TaskMonitor); monitor != "" {
		return monitor
	}
	return path(t.ID)
}

// underWay reports whether the task is being done.
func (a *answer) underWay() bool {
	switch a.task().TaskState {
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
