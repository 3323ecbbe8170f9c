package model

// inlineBMC is the BMC that a Server describes within itself, nil if it describes none: as if
// it stood in Git by itself, with the name of the Server.
func (o *Server) inlineBMC() *BMC {
	within := o.Spec.BMC
	if within == nil {
		return nil
	}
	return &BMC{
		Meta: Meta{Name: o.Name, Annotations: o.Annotations, Source: o.Source, Tenant: o.Tenant, Within: ServerName(o.Name)},
		Spec: BMCSpec{
			Access: &InlineEndpoint{IP: within.Address}, BMCSecretRef: within.BMCSecretRef, Protocol: within.Protocol,
		},
	}
}

// Behind is the BMC that a server is behind, as its manifest says; "" = it says none.
func (o *Server) Behind() BMCName {
	switch {
	case o.Spec.BMCRef != nil:
		return BMCName(o.Spec.BMCRef.Name)
	case o.Spec.BMC != nil:
		return BMCName(o.Name)
	}
	return ""
}

// addServer puts a Server into its map, and the BMC that it describes into its. A BMC that
// stands in Git by itself keeps its name; CrossCheck has more to say of that.
func (d *Desired) addServer(s *Server) {
	d.Servers[ServerName(s.Name)] = s
	d.addInlineBMC(s)
}

func (d *Desired) addInlineBMC(s *Server) {
	name := BMCName(s.Name)
	if old := d.BMCs[name]; old != nil && old.Within == "" {
		return
	}
	delete(d.BMCs, name)
	if b := s.inlineBMC(); b != nil {
		d.BMCs[name] = b
	}
}
