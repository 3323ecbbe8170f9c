package proposal

import (
	"time"

	"ingot/model"
)

// LastServed is when a server was last given anything with its ticket, zero = never.
func LastServed(p *model.Progress) time.Time {
	if p == nil {
		return time.Time{}
	}
	last := p.DHCPAt
	for _, at := range []time.Time{p.TFTPAt, p.HTTPBootAt, p.ScriptAt, p.KernelAt, p.InitrdAt, p.IgnitionAt} {
		if at.After(last) {
			last = at
		}
	}
	return last
}
