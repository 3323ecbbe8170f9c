package dhcp

import "ingot/model"

// Leases returns at most so many of the leases that are kept, ended ones too, in no order;
// more is how many there are beside those.
func (s *Server) Leases(most int) (all []model.Lease, more int) { return s.table.Leases(most) }
