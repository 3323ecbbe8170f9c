package wipe

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"ingot/cmd/metalprobe/inventory"
	"ingot/model"
)

// Limits on the wipe of one disk.
const (
	QuickLimit = 10 * time.Minute
	// SecureLimit is that of a small disk. Each byte of a large one is written, by the disk
	// itself or by this program, at leastPace bytes per second, and within longestLimit: Ingot
	// waits for ten days while it hears of a wipe.
	SecureLimit  = 24 * time.Hour
	leastPace    = 50e6
	longestLimit = 9 * 24 * time.Hour
	// grace is how long a disk that reached its limit may take to finish its step.
	grace = time.Minute
	// takedownLimit bounds the removal of each array or mapping over disks.
	takedownLimit = time.Minute
)

// maxParallel bounds the disks that are wiped at a time. Their own speed is the limit,
// not the machine's: a shelf of disks takes as long as one disk.
const maxParallel = 64

// remindEvery is how often a wipe that goes on is logged, for disks that do not report
// how far it is.
const remindEvery = 10 * time.Minute

var errLimit = errors.New("the time limit was reached")

// Wiper clears disks.
type Wiper struct {
	// Open opens a disk by its path.
	Open func(path string) (Device, error)
	// Takedown stops an array or removes a mapping.
	Takedown func(inventory.Node) error
	// Limit bounds the wipe of one disk; 0 is QuickLimit, or SecureLimit and more for large disks.
	Limit time.Duration
	// Watch receives how far the disks are; it may be nil.
	Watch Watch
	Log   *slog.Logger
}

// Local wipes disks of the machine this runs on.
func Local(log *slog.Logger) Wiper {
	return Wiper{Open: Open, Takedown: Takedown, Log: log}
}

// Wipe clears the chosen disks and returns the outcome of every disk, in their order. It
// waits for all of them; a failure of one does not stop the others.
func (w Wiper) Wipe(ctx context.Context, mode string, choices []Choice) []model.DiskWipe {
	for _, n := range takedowns(choices) {
		if err := w.takeDown(n); err != nil {
			w.Log.Warn("device over a disk cannot be taken down", "device", n.Name, "err", err)
		}
	}
	tracker := newWipeTracker(choices, w.Watch)
	results := make([]model.DiskWipe, len(choices))
	var group errgroup.Group
	group.SetLimit(maxParallel)
	for _, paths := range byDisk(choices) {
		group.Go(func() error {
			for _, i := range paths {
				c := choices[i]
				t := &diskTracker{wipe: tracker, disk: i, log: w.Log.With("disk", c.Disk.Name, "serial", c.Disk.Serial)}
				results[i] = w.wipe(ctx, mode, c, t)
				t.done(results[i].Result)
			}
			return nil
		})
	}
	for i, c := range choices {
		if c.Result != "" {
			results[i] = c.result()
			w.Log.Info("disk is not wiped", "disk", c.Disk.Name, "result", c.Result, "reason", c.Why)
		}
	}
	_ = group.Wait() // outcomes are in results
	return results
}

// byDisk groups the choices that are to be wiped: those of one world-wide name and serial number are
// paths to one disk, such as those of a SAS disk on two expanders. Each is wiped, because what a disk says of
// itself may be wrong, but one after another: while one sanitizes the disk, nothing works by the others.
func byDisk(choices []Choice) (groups [][]int) {
	group := make(map[[2]string]int)
	for i, c := range choices {
		name := [2]string{c.Disk.WWID, c.Disk.Serial}
		n, known := group[name]
		switch {
		case c.Result != "":
		case known && c.Disk.WWID != "":
			groups[n] = append(groups[n], i)
		default:
			group[name] = len(groups)
			groups = append(groups, []int{i})
		}
	}
	return groups
}

// takeDown takes one device down, but does not wait for ever for one that hangs.
func (w Wiper) takeDown(n inventory.Node) error {
	done := make(chan error, 1)
	go func() { done <- w.Takedown(n) }()
	select {
	case err := <-done:
		return err
	case <-time.After(takedownLimit):
		return fmt.Errorf("it is not done after %v", takedownLimit)
	}
}

func (c Choice) result() model.DiskWipe {
	return model.DiskWipe{
		Name: c.Disk.Name, Serial: c.Disk.Serial, Model: c.Disk.Model, SizeBytes: c.Disk.SizeBytes, WWID: c.Disk.WWID,
		Result: c.Result, Reason: c.Reason, Error: c.Why,
	}
}

func (w Wiper) wipe(ctx context.Context, mode string, c Choice, t *diskTracker) model.DiskWipe {
	limit := w.limit(mode, c.Disk.SizeBytes)
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("%w: %v", errLimit, limit))
	defer cancel()

	t.log.Info("wipe begins", "mode", mode, "bytes", c.Disk.SizeBytes)
	began := time.Now()
	method, err := w.erase(ctx, mode, c, t)
	result := c.result()
	result.Method, result.Result = method, model.WipeDone
	took := time.Since(began).Round(time.Millisecond)
	if err != nil {
		result.Result, result.Error = model.WipeFailed, oneLine(err)
		t.log.Error("wipe failed", "method", method, "took", took, "err", result.Error)
		return result
	}
	t.log.Info("wipe is done", "method", method, "took", took)
	return result
}

// oneLine is an error as reports have it: joined errors are lines otherwise.
func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }

func (w Wiper) limit(mode string, bytes uint64) time.Duration {
	switch {
	case w.Limit > 0:
		return w.Limit
	case mode == model.CleanupSecure:
		seconds := min(float64(bytes)/leastPace, longestLimit.Seconds())
		return max(SecureLimit, time.Duration(seconds)*time.Second)
	}
	return QuickLimit
}

// erase opens and clears a disk. A request that hangs in the kernel cannot be cancelled,
// so a disk that does not answer some time after ctx has ended is given up; its goroutine
// ends with the process.
func (w Wiper) erase(ctx context.Context, mode string, c Choice, t *diskTracker) (method string, err error) {
	type outcome struct {
		method string
		err    error
	}
	ended := make(chan outcome, 1)
	began := time.Now()
	go func() {
		device, err := w.Open(c.Disk.Path)
		if err != nil {
			ended <- outcome{"", fmt.Errorf("open: %w", err)}
			return
		}
		e := &eraser{device: device, partitions: c.Disk.Partitions, tracker: t, log: t.log}
		method, err := e.erase(ctx, mode)
		ended <- outcome{method, errors.Join(err, device.Close())}
	}()
	remind := time.NewTicker(remindEvery)
	defer remind.Stop()
	done, hung := ctx.Done(), (<-chan time.Time)(nil)
	for {
		select {
		case o := <-ended:
			return o.method, o.err
		case <-remind.C:
			t.log.Info("wipe is not done yet", "took", time.Since(began).Round(time.Second))
		case <-done:
			done, hung = nil, time.After(grace)
		case <-hung:
			return "", fmt.Errorf("the disk does not answer: %w", context.Cause(ctx))
		}
	}
}
