package plan

import (
	"slices"
	"time"

	"ingot/model"
	"ingot/reconcile/plan/disks"
)

// disks are all that the server is known to have, or to have had: those of its record,
// those that its probe reported, and the drives that its BMC shows. A disk that vanished
// is still one that a wipe has to account for: what is on it goes with it.
func (s *server) disks() []model.Disk {
	all := s.rec.Disks.Known
	if p := s.fleet.in.Observed.Probes[s.name]; p != nil {
		all = disks.JoinDisks(all, disks.ProbedDisks(p.Data.Storage))
	}
	if i := s.facts.Inventory; i != nil {
		all = disks.JoinDisks(all, disks.Drives(i.Storages))
	}
	return all
}

// noteDisks has the record know all that is known of the server's disks.
func (s *server) noteDisks() {
	rec := s.edit()
	rec.Disks.Known = s.disks()
	if p := s.fleet.in.Observed.Probes[s.name]; p != nil && rec.Disks.KnownAt.IsZero() {
		rec.Disks.KnownAt = p.ReceivedAt
	}
}

// noteReplaced notes which drives a ServerMaintenance replaced: the BMC no longer shows
// such a drive, and shows one that was not known in its bay.
func (s *server) noteReplaced() {
	rec := s.edit()
	rec.Maintenance.ServicedAt = time.Time{}
	known, shown := rec.Disks.Known, disks.Drives(s.facts.Inventory.Storages)
	rec.Disks.Known = slices.Clone(known)
	for _, old := range known {
		if !old.FromBMC || old.Nameless() || old.Bay == "" || slices.ContainsFunc(shown, old.Same) {
			continue
		}
		i := slices.IndexFunc(shown, func(d model.Disk) bool {
			return d.Bay == old.Bay && !slices.ContainsFunc(known, d.Same)
		})
		for k := range rec.Disks.Known {
			if i >= 0 && old.Same(rec.Disks.Known[k]) {
				rec.Disks.Known[k].ReplacedBy = shown[i].Serial
			}
		}
	}
}
