package reconcile

import (
	"testing"
	"testing/synctest"
	"time"

	"ingot/model"
)

// BMCs that do not answer delay no servers but their own, however many they are (law 4).
func TestSilentBMCsDelayNoOthers(t *testing.T) {
	for name, tt := range map[string]struct {
		servers int
		known   bool // before they fell silent
	}{
		"that never answered":  {800, false},
		"that answered before": {400, true},
	} {
		t.Run(name, func(t *testing.T) {
			if testing.Short() { // still several times as many as are read at a time
				tt.servers /= 4
				t.Logf("%d servers; make test-long has four times as many", tt.servers)
			}
			synctest.Test(t, func(t *testing.T) {
				w := newLoopWorld(t, tt.servers)
				silence := func() {
					for i := 1; i < tt.servers; i++ {
						w.change(i, func(m *machine) { m.frozen = true })
					}
				}
				w.limit = tt.servers // of power-ons, so that all are soon discovered
				if !tt.known {
					silence()
				}
				w.start()
				if tt.known {
					w.expect(3*time.Minute, tt.servers-1, "Available Off")
					silence()
				}
				w.expect(time.Minute, 0, "Available Off")
				w.commit(func(d *model.Desired) { d.Add(claim("web")) })
				w.expect(20*time.Second, 0, "Reserved On default/web")
				w.stop()
			})
		})
	}
}
