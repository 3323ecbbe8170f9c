package bmc

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/stmcginnis/gofish/schemas"

	"ingot/model"
)

// storages reads the storage subsystems, drives and volumes, or where these show no drive
// the SimpleStorage that older BMCs have.
func (r *reading) storages(s *system) error {
	uri, simple := path(s.Storage.ID), path(s.SimpleStorage.ID)
	if uri == "" && simple == "" {
		return r.chassisDrives(s)
	}
	if uri == "" {
		return r.simpleStorages(simple)
	}
	err := each(r, uri, 2, r.storage)
	if r.hasDrives() || simple == "" || err != nil && final(err) {
		return err
	}
	again := r.simpleStorages(simple)
	if r.hasDrives() {
		r.inv.Summarized = append(r.inv.Summarized, model.PartDrives)
	}
	if err == nil {
		return again
	}
	if again != nil {
		r.problem(fmt.Sprintf("simple storage: %v", again))
	}
	return err
}

// chassisDrives reads the drives of the chassis that the machine has to itself, for a system without Storage.
func (r *reading) chassisDrives(s *system) error {
	for _, l := range s.Links.Chassis[:min(len(s.Links.Chassis), maxChassis)] {
		at := path(l.ID)
		a, err := r.get(r.ctx, at)
		if errors.Is(err, ErrNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		c := read[chassis](r, at, a.body)
		if c == nil || c.Drives.ID == "" || !r.alone(path(s.ID), c.Links.ComputerSystems) {
			continue
		}
		st := model.Storage{Name: clip(cmp.Or(c.Name, c.Short))}
		err = each(r, path(c.Drives.ID), 1, func(_ member, d *schemas.Drive) {
			if !isAbsent(d.Status.State) {
				st.Drives = append(st.Drives, driveOf(d))
			}
		})
		if len(st.Drives) > 0 {
			r.inv.Storages = append(r.inv.Storages, st)
		}
		if err != nil && !errors.Is(err, ErrNotFound) {
			return err
		}
	}
	return nil
}

func (r *reading) hasDrives() bool {
	return slices.ContainsFunc(r.inv.Storages, func(s model.Storage) bool { return len(s.Drives) > 0 })
}

// simpleStorages reads what older BMCs have of storage. One without a drive says nothing
// of what is known of Storage.
func (r *reading) simpleStorages(uri string) error {
	known := len(r.inv.Storages) > 0
	return each(r, uri, 1, func(_ member, s *simpleStorage) {
		st := model.Storage{Name: clip(cmp.Or(s.Name, s.Short)), State: clip(s.Status.State)}
		for _, d := range s.Devices {
			if isAbsent(schemas.State(d.Status.State)) {
				continue
			}
			st.Drives = append(st.Drives, model.Drive{
				Name: clip(d.Name), Vendor: clip(d.Manufacturer), Model: clip(d.Model),
				Bytes: max(0, d.CapacityBytes), State: clip(d.Status.State),
			})
		}
		if !known || len(st.Drives) > 0 {
			r.inv.Storages = append(r.inv.Storages, st)
		}
	})
}

func (r *reading) storage(m member, s *storage) {
	out := model.Storage{Name: clip(cmp.Or(s.Name, s.Short)), State: clip(s.Status.State)}
	var uris []string // of the drives
	for _, d := range r.linked(m.uri, r.expanded(m.uri, s)) {
		if drive := read[schemas.Drive](r, d.uri, d.raw); drive != nil && !isAbsent(drive.Status.State) {
			out.Drives = append(out.Drives, driveOf(drive))
			uris = append(uris, d.uri)
		}
	}
	if s.Drives != nil && len(s.Drives) == 0 {
		s.Volumes = nil // a controller without drives has none
	}
	for _, v := range r.volumes(s.Volumes) {
		if volume := read[schemas.Volume](r, v.uri, v.raw); volume != nil {
			out.Volumes = append(out.Volumes, volumeOf(volume))
			for _, i := range drivesOf(v.raw, uris) {
				out.Drives[i].Volumes = append(out.Drives[i].Volumes, diskVolume(volume))
			}
		}
	}
	for i := range out.Drives {
		if len(out.Drives[i].Volumes) > maxVolumes {
			r.problem(fmt.Sprintf("%s: drive %s is part of more than %d volumes", m.uri, out.Drives[i].Name, maxVolumes))
			out.Drives[i].Volumes = nil // so that no wipe of volumes is taken for one of the drive
		}
	}
	r.inv.Storages = append(r.inv.Storages, out)
}

func driveOf(d *schemas.Drive) model.Drive {
	return model.Drive{
		Name:         clip(cmp.Or(d.Name, d.ID)),
		MediaType:    clip(string(d.MediaType)),
		Type:         clip(string(d.Protocol)),
		Bytes:        size(d.CapacityBytes),
		Vendor:       clip(d.Manufacturer),
		Model:        clip(d.Model),
		SerialNumber: clip(d.SerialNumber),
		State:        clip(string(d.Status.State)),
		IDs:          worldWideNames(d.Identifiers),
		Bay:          clip(d.ODataID),
	}
}

func volumeOf(v *schemas.Volume) model.Volume {
	return model.Volume{
		Name:        clip(cmp.Or(v.Name, v.ID)),
		Bytes:       size(v.CapacityBytes),
		State:       clip(string(v.Status.State)),
		RAIDType:    clip(string(v.RAIDType)),
		VolumeUsage: clip(string(v.VolumeUsage)),
	}
}

func diskVolume(v *schemas.Volume) model.DiskVolume {
	return model.DiskVolume{Name: clip(cmp.Or(v.Name, v.ID)), IDs: worldWideNames(v.Identifiers), Bytes: uint64(size(v.CapacityBytes))}
}

// maxVolumes is how many volumes a drive is part of, at most.
const maxVolumes = 64

// maxNames is how many world-wide names of a drive or volume are kept.
const maxNames = 4

// worldWideNames are those among durable names: the others mean nothing to whoever sees the
// disk from its system.
func worldWideNames(all []schemas.Identifier) (names []string) {
	for _, id := range all {
		if name := model.WorldWideName(id.DurableName); name != "" && !slices.Contains(names, name) && len(names) < maxNames {
			names = append(names, name)
		}
	}
	return names
}

// drivesOf are the drives that a volume is on, as indices of their URIs: the library
// keeps the links to itself.
func drivesOf(volume []byte, uris []string) (drives []int) {
	v, _, err := decode[struct{ Links struct{ Drives []link } }](volume)
	if err != nil {
		return nil
	}
	for _, l := range v.Links.Drives[:min(len(v.Links.Drives), maxMembers)] {
		if i := slices.Index(uris, path(l.ID)); i >= 0 {
			drives = append(drives, i)
		}
	}
	return drives
}

// expanded returns the subsystem's drives. A service that expands by one level only
// left them as links; asked for the subsystem alone it expands them.
func (r *reading) expanded(uri string, s *storage) []json.RawMessage {
	svc := r.service.Load()
	if len(s.Drives) < 2 || svc == nil || svc.query(1) == "" {
		return s.Drives
	}
	if _, whole := asMember(s.Drives[0]); whole {
		return s.Drives
	}
	a, err := r.get(r.ctx, uri+svc.query(1))
	if err != nil {
		return s.Drives // to be read one by one
	}
	again, _, err := decode[storage](a.body)
	if err != nil || len(again.Drives) < len(s.Drives) {
		return s.Drives
	}
	s.Volumes = again.Volumes
	return again.Drives
}

// linked returns the resources that are given in a list, whole or as links. What
// cannot be read is noted; once the BMC does not answer, no more is asked of it.
func (r *reading) linked(of string, list []json.RawMessage) []member {
	var all []member
	seen, left := make(map[string]bool), maxListed
	for _, raw := range list[:min(len(list), maxMembers)] {
		m, whole := asMember(raw)
		if seen[m.uri] && m.uri != "" {
			continue
		}
		seen[m.uri] = true
		if m.uri == "" {
			if isError(raw) {
				r.problem(of + ": a part cannot be read, as an error is in its place")
			}
			continue
		}
		if !whole {
			var err error
			if m, err = r.member(r.ctx, m.uri); err != nil {
				r.problem(fmt.Sprintf("%s: %v", of, err))
				if final(err) {
					return all
				}
				continue
			}
			if left -= len(m.raw); left < 0 {
				r.problem(r.tooMuch(of).Error())
				return all
			}
		}
		all = append(all, m)
	}
	return all
}

// volumes returns the volumes in what a subsystem has of them: a link to the
// collection, or the collection with links, or with the volumes themselves.
func (r *reading) volumes(raw json.RawMessage) []member {
	if len(raw) == 0 {
		return nil
	}
	c, _, err := decode[struct {
		ID      string             `json:"@odata.id"`
		Members *[]json.RawMessage // nil for a link
	}](raw)
	if err != nil {
		return nil
	}
	if c.Members != nil {
		if len(*c.Members) == 0 {
			return nil
		}
		if _, whole := asMember((*c.Members)[0]); whole {
			return r.linked(path(c.ID), *c.Members)
		}
	}
	all, problems, err := r.members(r.ctx, path(c.ID), 1)
	for _, p := range problems {
		r.problem(p)
	}
	if err != nil {
		r.problem(fmt.Sprintf("%s: %v", path(c.ID), err))
	}
	return all
}
