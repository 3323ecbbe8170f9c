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
	QuickLimit  = 10 * time.Minute
	SecureLimit = 24 * time.Hour
	// grace is how long a disk that ran into its limit may take to finish its step.
	grace = time.Minute
	// takedownLimit bounds the taking down of what rests on disks, one by one.
	takedownLimit = time.Minute
)

// maxParallel bounds the disks that are wiped at a time. Their own speed is the
// limit, not the machine's: a shelf of disks is done in the time of one.
const maxParallel = 64

// remindEvery is how often the log tells of a disk that does not say how far it is.
const remindEvery = 10 * time.Minute

var errLimit = errors.New("the time limit was reached")

// Wiper clears disks.
type Wiper struct {
	// Open opens a disk by its path.
	Open func(path string) (Device, error)
	// Takedown stops an array or removes a mapping.
	Takedown func(inventory.Node) error
	// Limit bounds the wipe of one disk; 0 is QuickLimit or SecureLimit.
	Limit time.Duration
	// Watch is told how far the disks are; nil = nobody is.
	Watch Watch
	Log   *slog.Logger
}

// Local wipes disks of the machine this runs on.
func Local(log *slog.Logger) Wiper {
	return Wiper{Open: Open, Takedown: Takedown, Log: log}
}

// Wipe clears the chosen disks and returns the outcome for every disk, in their
// order. It waits for all of them; one that fails keeps no other from being done.
func (w Wiper) Wipe(ctx context.Context, mode string, choices []Choice) []model.DiskWipe {
	for _, n := range takedowns(choices) {
		if err := w.takeDown(n); err != nil {
			w.Log.Warn("device over a disk cannot be taken down", "device", n.Name, "err", err)
		}
	}
	board := newBoard(choices, w.Watch)
	results := make([]model.DiskWipe, len(choices))
	var group errgroup.Group
	group.SetLimit(maxParallel)
	for i, c := range choices {
		results[i] = c.result()
		if c.Result != "" {
			w.Log.Info("disk is not wiped", "disk", c.Disk.Name, "result", c.Result, "reason", c.Why)
			continue
		}
		group.Go(func() error {
			g := &gauge{board: board, disk: i, log: w.Log.With("disk", c.Disk.Name, "serial", c.Disk.Serial)}
			results[i] = w.wipe(ctx, mode, c, g)
			g.done(results[i].Result)
			return nil
		})
	}
	_ = group.Wait() // outcomes are in results
	return results
}

// takeDown takes one device down, and does not wait for ever for one that hangs.
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

// result is the outcome for a disk that is not wiped.
func (c Choice) result() model.DiskWipe {
	return model.DiskWipe{
		Name: c.Disk.Name, Serial: c.Disk.Serial, Model: c.Disk.Model, SizeBytes: c.Disk.SizeBytes, WWID: c.Disk.WWID,
		Result: c.Result, Reason: c.Reason, Error: c.Why,
	}
}

// wipe clears one disk within its limit.
func (w Wiper) wipe(ctx context.Context, mode string, c Choice, g *gauge) model.DiskWipe {
	limit := w.limit(mode)
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("%w: %v", errLimit, limit))
	defer cancel()

	g.log.Info("wipe begins", "mode", mode, "bytes", c.Disk.SizeBytes)
	began := time.Now()
	method, err := w.erase(ctx, mode, c, g)
	result := c.result()
	result.Method, result.Result = method, model.WipeDone
	took := time.Since(began).Round(time.Millisecond)
	if err != nil {
		result.Result, result.Error = model.WipeFailed, oneLine(err)
		g.log.Error("wipe failed", "method", method, "took", took, "err", result.Error)
		return result
	}
	g.log.Info("wipe is done", "method", method, "took", took)
	return result
}

// oneLine is an error as a report has it: joined errors come in lines.
func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }

func (w Wiper) limit(mode string) time.Duration {
	switch {
	case w.Limit > 0:
		return w.Limit
	case mode == model.CleanupSecure:
		return SecureLimit
	}
	return QuickLimit
}

// erase opens and clears a disk. A request that hangs in the kernel cannot be
// taken back, so a disk that does not come to its senses some time after ctx has
// ended is given up; its goroutine ends with the process.
func (w Wiper) erase(ctx context.Context, mode string, c Choice, g *gauge) (method string, err error) {
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
		e := &eraser{device: device, partitions: c.Disk.Partitions, gauge: g, log: g.log}
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
			g.log.Info("wipe is not done yet", "since", time.Since(began).Round(time.Second))
		case <-done:
			done, hung = nil, time.After(grace)
		case <-hung:
			return "", fmt.Errorf("the disk does not answer: %w", context.Cause(ctx))
		}
	}
}
