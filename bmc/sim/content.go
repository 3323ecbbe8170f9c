package sim

import (
	"slices"

	"ingot/model"
)

// Content is what is on one of a server's disks.
type Content struct {
	Name   string `json:"name"` // nvme0n1
	Serial string `json:"serial"`
	// Image is the digest of the disk image that was written to it, as it is published, and
	// Install which install wrote it; "" = none.
	Image   string `json:"image,omitempty"`
	Install string `json:"install,omitempty"`
	// Written is how much of the image's data is there, in bytes. Whole is set once it is all
	// there: SHA256 is then that of the whole disk that the image is of, in hexadecimal.
	Written uint64 `json:"written,omitempty"`
	Whole   bool   `json:"whole,omitempty"`
	SHA256  string `json:"sha256,omitempty"`
	// Identities are those that the image brought along.
	Identities model.DiskIdentities `json:"identities,omitzero"`
}

// Contents are what is on the disks of a pretended machine, in their order.
func (s *Server) Contents() []Content {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]Content, len(s.build.Hardware.Drives))
	for i, d := range s.build.Hardware.Drives {
		list[i] = s.contents[s.diskSerial(i)]
		list[i].Name, list[i].Serial = d.Name, s.diskSerial(i)
	}
	return list
}

// Seed is what configures the system of the disk image that the server boots, nil if nothing
// does. It holds secrets.
func (s *Server) Seed() *model.InstallSeed {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seed
}

// DiskSerial is the serial number of the i-th disk.
func (s *Server) DiskSerial(i int) string { return s.diskSerial(i) }

// systemDisk is the serial number of the disk that the system is on, which the firmware boots;
// the caller holds mu. What a network boot installs goes to the first disk.
func (s *mainboard) systemDisk() string {
	switch {
	case s.disk == nil:
		return ""
	case s.disk.Serial != "":
		return s.disk.Serial
	}
	return s.diskSerial(0)
}

// clearDisk takes everything off a disk; the caller holds mu.
func (s *mainboard) clearDisk(serial string) {
	delete(s.contents, serial)
	if s.systemDisk() == serial {
		s.disk, s.seed, s.said = nil, nil, false
	}
}

// holds says what is on a disk, "" for nothing; the caller holds mu.
func (s host) holds(i int) string {
	serial := s.diskSerial(i)
	args, foreign := s.faults.get(FaultDiskHolds)
	switch content := s.contents[serial]; {
	case foreign && args.Disk == i:
		return "a filesystem ext4 that nobody here made"
	case content.Image != "":
		return "a partition table, of image " + content.Image
	case s.systemDisk() == serial:
		return "a partition table, of " + s.disk.Image
	}
	return ""
}

// shares returns what a disk has of an image's identities, "" for nothing; the caller holds mu.
func (s host) shares(i int, of model.DiskIdentities) string {
	if args, has := s.faults.get(FaultDuplicateLabels); has && args.Disk == i && len(of.Labels) > 0 {
		return "label " + of.Labels[0]
	}
	has := s.contents[s.diskSerial(i)].Identities
	for _, kind := range []struct {
		name    string
		has, of []string
	}{{"label", has.Labels, of.Labels}, {"filesystem UUID", has.UUIDs, of.UUIDs}, {"partition GUID", has.GUIDs, of.GUIDs}} {
		for _, value := range kind.has {
			if slices.Contains(kind.of, value) {
				return kind.name + " " + value
			}
		}
	}
	return ""
}
