package sim

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"ingot/bmc/sim/internal/delay"
)

// startStages are the faults that a BMC has one after the other while it starts. Real BMCs
// show some of them, in an order of their own, for half a minute to several minutes.
var startStages = []Fault{
	FaultHTML, FaultUnavailable, FaultNotFound, FaultUnauthorized, FaultSessionLimit, FaultNoSystems, FaultCollectionEmpty, FaultUUIDMissing,
}

// cutPower takes the mains away from the BMC and its machines. They return after a stage's
// time, the machines stay off, and the BMC passes through the stages of its start.
func (b *BMC) cutPower(args FaultArgs) error {
	if b.faults.has(FaultPowerCut) {
		return fmt.Errorf("fault %s: the power of %s is cut already", FaultPowerCut, b.name)
	}
	b.faults.put(FaultPowerCut, args)
	if err := b.Unplug(); err != nil {
		return err
	}
	each := orDefault(args.Delay, 10*time.Second)
	b.rack.start(func(ctx context.Context) {
		stage := FaultRefuse
		for _, next := range append(startStages, "") {
			if !delay.Wait(ctx, each) || !b.faults.advance(FaultPowerCut, stage, next) {
				return
			}
			b.rack.opts.Log.Info("BMC starts", "bmc", b.name, "stage", string(next))
			if stage == FaultRefuse {
				b.returnPower()
			}
			stage = next
		}
		b.faults.remove(FaultPowerCut)
	})
	return nil
}

// returnPower lets the BMC answer again.
func (b *BMC) returnPower() {
	b.bootedAt.Store(time.Now().Unix())
	if err := b.reopen(); err != nil {
		b.rack.opts.Log.Error("BMC cannot listen again", "bmc", b.name, "err", err)
	}
}

// endPowerCut has the BMC ready at once.
func (b *BMC) endPowerCut() error {
	b.faults.remove(FaultPowerCut)
	for _, f := range startStages {
		b.faults.remove(f)
	}
	return b.Plug()
}

// advance replaces the fault of one stage by that of the next, "" = none, unless the sequence
// that they belong to was cleared.
func (f *faults) advance(sequence, from, to Fault) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, on := f.set[sequence]; !on {
		return false
	}
	delete(f.set, from)
	if to != "" {
		f.set[to] = FaultArgs{}
	}
	return true
}

// startingAnswer is the answer of a BMC of which only the web server runs, if it is one.
func (b service) startingAnswer() (reply, bool) {
	switch {
	case b.faults.has(FaultHTML):
		return reply{
			status: http.StatusOK, header: http.Header{"Content-Type": {"text/html"}},
			raw: []byte("<!DOCTYPE html><html><body>The management controller is starting. Please wait.</body></html>"),
		}, true
	case b.faults.has(FaultUnavailable):
		return failure(http.StatusServiceUnavailable, newMessage(msgUnavailable, retryAfter)), true
	}
	return reply{}, false
}
