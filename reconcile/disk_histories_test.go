package reconcile

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"ingot/model"
	"ingot/reconcile/internal/fleettest"
)

// TestRandomHistoriesWithDiskImagesBreakNoLaw has fleets live whose claims have disk images, in
// which probes fail and power is cut in the middle of an install. What is written to whose disk
// is looked at where it is begun, see beginWriting.
func TestRandomHistoriesWithDiskImagesBreakNoLaw(t *testing.T) {
	for seed := range fleettest.Histories(5, 40) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newLoopWorld(t, 4)
				w.onDisk, w.preparing = true, 3
				h := newHistory(w, seed, 3)
				w.start()
				for range 60 {
					h.event()
					if h.rnd.IntN(3) == 0 {
						h.diskEvent()
					}
					pass(time.Duration(h.rnd.IntN(90)) * time.Second)
					h.check()
				}
				h.revive()
				h.end(8 * time.Hour)
			})
		})
	}
}

// diskEvent is something that happens to a machine that is installed from a disk image.
func (h *history) diskEvent() {
	stage := model.DiskInstallStages[h.rnd.IntN(len(model.DiskInstallStages))]
	i, n := h.rnd.IntN(4), h.rnd.IntN(4)
	h.say("event %d at stage %s of machine %d", n, stage, i)
	h.w.change(i, func(m *machine) {
		switch n {
		case 0:
			m.cut, m.cuts, m.comesOn = stage, 1, h.rnd.IntN(2) == 0
		case 1:
			m.unsaid = true
		case 2:
			m.noNotice = !m.noNotice
		case 3:
			h.w.preparing = 2
		}
	})
}
