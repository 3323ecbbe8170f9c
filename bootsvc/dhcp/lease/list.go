package lease

import "ingot/model"

// Leases returns at most so many of the leases that are kept, ended ones and addresses that
// are set aside too, in no order; more is how many there are beside those.
func (t *Table) Leases(most int) (all []model.Lease, more int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, e := range t.bySlot {
		switch {
		case e.expires == 0: // offered, and not taken
		case len(all) == most:
			more++
		default:
			all = append(all, e.lease())
		}
	}
	return all, more
}
