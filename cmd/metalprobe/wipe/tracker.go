package wipe

import (
	"log/slog"
	"slices"
	"sync"
	"time"

	"ingot/model"
)

// Watch receives how far all disks are, in the order of their choices. Urgent is set
// when a disk has changed its method or is done. It must not block.
type Watch func(disks []model.DiskProgress, urgent bool)

// wipeTracker keeps how far each disk is. It is safe for concurrent use.
type wipeTracker struct {
	watch Watch

	mu    sync.Mutex
	disks []model.DiskProgress
}

func newWipeTracker(choices []Choice, watch Watch) *wipeTracker {
	t := &wipeTracker{watch: watch}
	for _, c := range choices {
		p := model.DiskProgress{Name: c.Disk.Name, Serial: c.Disk.Serial, SizeBytes: c.Disk.SizeBytes, Result: c.Result}
		if c.Result != "" {
			p.Percent = 100
		}
		t.disks = append(t.disks, p)
	}
	return t
}

func (t *wipeTracker) update(disk int, urgent bool, change func(*model.DiskProgress)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	change(&t.disks[disk])
	if t.watch != nil {
		t.watch(slices.Clone(t.disks), urgent)
	}
}

// logEvery is the least time between two lines of one disk in the log.
const logEvery = time.Second

// diskTracker notes how far one disk is, in a wipeTracker and in the log.
type diskTracker struct {
	wipe *wipeTracker
	disk int // its index there
	log  *slog.Logger

	method   Method
	percent  int
	began    time.Time // when the method began
	tenth    int       // tenth of the method that was logged last
	loggedAt time.Time // when that was
}

// begin notes that a method begins; estimate is the disk's, 0 when it has none.
func (t *diskTracker) begin(m Method, estimate time.Duration) {
	now, percent := time.Now(), 0
	if m.firmware() {
		percent = -1 // until the disk reports one
	}
	t.method, t.percent, t.began, t.tenth, t.loggedAt = m, percent, now, 0, now
	log := t.log.With("method", m)
	if estimate > 0 {
		log = log.With("estimate", estimate)
	}
	log.Info("wipe method")
	t.wipe.update(t.disk, true, func(p *model.DiskProgress) { p.Method, p.Percent = string(m), percent })
}

// report is an OnProgress: it notes how far a method is, which may have begun before
// this program did.
func (t *diskTracker) report(m Method, percent int) {
	if m != t.method {
		t.begin(m, 0)
	}
	t.advance(percent)
}

// advance notes how far the method is, and logs every tenth of it. Progress never goes
// backwards: a lower percentage, or none, is ignored.
func (t *diskTracker) advance(percent int) {
	percent = min(percent, 100)
	if percent <= t.percent {
		return
	}
	t.percent = percent
	t.wipe.update(t.disk, false, func(p *model.DiskProgress) { p.Percent = percent })
	now := time.Now()
	if tenth := percent / 10; tenth > t.tenth && now.Sub(t.loggedAt) >= logEvery {
		t.tenth, t.loggedAt = tenth, now
		left := now.Sub(t.began) * time.Duration(100-percent) / time.Duration(percent)
		t.log.Info("wipe goes on", "method", t.method, "percent", percent, "left", left.Round(time.Second))
	}
}

func (t *diskTracker) done(result string) {
	t.wipe.update(t.disk, true, func(p *model.DiskProgress) {
		p.Result = result
		if result == model.WipeDone {
			p.Percent = 100
		}
	})
}
