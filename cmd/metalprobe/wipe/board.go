package wipe

import (
	"log/slog"
	"slices"
	"sync"
	"time"

	"ingot/model"
)

// Watch is told how far all disks are, in the order of their choices. Turn is set
// when a disk has changed its method or is done. It must not block.
type Watch func(disks []model.DiskProgress, turn bool)

// board keeps how far each disk is. It is safe for concurrent use.
type board struct {
	watch Watch

	mu    sync.Mutex
	disks []model.DiskProgress
}

// newBoard returns a board of all disks.
func newBoard(choices []Choice, watch Watch) *board {
	b := &board{watch: watch}
	for _, c := range choices {
		p := model.DiskProgress{Name: c.Disk.Name, Serial: c.Disk.Serial, SizeBytes: c.Disk.SizeBytes, Result: c.Result}
		if c.Result != "" {
			p.Percent = 100
		}
		b.disks = append(b.disks, p)
	}
	return b
}

// change changes what is known of a disk, and tells of it.
func (b *board) change(disk int, turn bool, change func(*model.DiskProgress)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	change(&b.disks[disk])
	if b.watch != nil {
		b.watch(slices.Clone(b.disks), turn)
	}
}

// lineEvery is the least time between two lines of one disk on the console.
const lineEvery = time.Second

// gauge shows how far one disk is, on a board and in the log.
type gauge struct {
	board *board
	disk  int // on the board
	log   *slog.Logger

	method  Method
	percent int
	began   time.Time // the method
	shown   int       // tenth that was logged last
	line    time.Time // when that was
}

// turn notes that a method begins; estimate is the disk's, 0 when it has none.
func (g *gauge) turn(m Method, estimate time.Duration) {
	now, percent := time.Now(), 0
	if m.firmware() {
		percent = -1 // until it says more
	}
	g.method, g.percent, g.began, g.shown, g.line = m, percent, now, 0, now
	log := g.log.With("method", m)
	if estimate > 0 {
		log = log.With("estimate", estimate)
	}
	log.Info("wipe method")
	g.board.change(g.disk, true, func(p *model.DiskProgress) { p.Method, p.Percent = string(m), percent })
}

// told is a Told: it notes how far a method is, which may be one that was begun
// before this program was.
func (g *gauge) told(m Method, percent int) {
	if m != g.method {
		g.turn(m, 0)
	}
	g.at(percent)
}

// at notes how far the method is, and logs every tenth of it. A disk that takes
// something back, or says no more, is not heeded: progress goes forwards.
func (g *gauge) at(percent int) {
	percent = min(percent, 100)
	if percent <= g.percent {
		return
	}
	g.percent = percent
	g.board.change(g.disk, false, func(p *model.DiskProgress) { p.Percent = percent })
	now := time.Now()
	if tenth := percent / 10; tenth > g.shown && now.Sub(g.line) >= lineEvery {
		g.shown, g.line = tenth, now
		left := now.Sub(g.began) * time.Duration(100-percent) / time.Duration(percent)
		g.log.Info("wipe goes on", "method", g.method, "percent", percent, "left", left.Round(time.Second))
	}
}

// done notes the outcome.
func (g *gauge) done(result string) {
	g.board.change(g.disk, true, func(p *model.DiskProgress) {
		p.Result = result
		if result == model.WipeDone {
			p.Percent = 100
		}
	})
}
