package model

// Versions are the versions of all records, the fleet's first.
func (r *Records) Versions() []Version {
	all := []Version{r.Fleet.Version}
	for _, rec := range r.Servers {
		all = append(all, rec.Version)
	}
	for _, rec := range r.BMCs {
		all = append(all, rec.Version)
	}
	for _, rec := range r.Claims {
		all = append(all, rec.Version)
	}
	for _, rec := range r.Endpoints {
		all = append(all, rec.Version)
	}
	return all
}

// Newest is the newest version of a record.
func (r *Records) Newest() Version {
	newest := r.Fleet.Version
	for _, v := range r.Versions() {
		if v.After(newest) {
			newest = v
		}
	}
	return newest
}
