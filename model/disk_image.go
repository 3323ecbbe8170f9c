package model

// DiskImage is a disk image that a probe writes to a server's disk, as it was found when its
// ticket was armed.
type DiskImage struct {
	Ref    string `json:"ref"`    // as the person wrote it
	Digest string `json:"digest"` // of the file as published: sha256:… or sha512:…
	// Format is raw or qcow2, and Compression zstd, gzip, xz or bzip2, "" for none: by their
	// magic, whatever the file is called.
	Format      string `json:"format"`
	Compression string `json:"compression,omitempty"`
	// Bytes is the size of the disk that the image is of, and Data how much of it is not in
	// chunks of zeros.
	Bytes uint64 `json:"bytes"`
	Data  uint64 `json:"data"`
	// SectorSize is that of the disk it was made for, by where its partition table lies: 512 or
	// 4096 bytes. 0 = its table (MBR) does not say, and 512 is meant.
	SectorSize int `json:"sectorSize,omitempty"`
	// Starts are the ways in which firmware can start it.
	Starts []StartMethod `json:"starts,omitempty"`
	// Note says, for people, what else is made of it than may be expected: by what its file is
	// called, or by the Ignition that it is to read. "" = nothing.
	Note string `json:"note,omitempty"`
}

// StartMethod is a way in which firmware starts a system from a disk.
type StartMethod string

// The ways in which firmware starts a system from a disk: boot code in the master boot record,
// or a loader at the path for removable media, or one that a fallback file names (UEFI
// specification §3.5.1.1), by the machine's architecture.
const (
	StartBIOS      StartMethod = "bios"
	StartUEFIAMD64 StartMethod = "uefi-amd64"
	StartUEFIARM64 StartMethod = "uefi-arm64"
)

// DiskIdentities are what a running system finds disks and partitions by. What an image has of
// them no other disk of its server may have.
type DiskIdentities struct {
	// Labels are of filesystems, UUIDs of filesystems, in lower case where they have letters;
	// GUIDs are of partitions and of the disk, canonical.
	Labels []string `json:"labels,omitempty"`
	UUIDs  []string `json:"uuids,omitempty"`
	GUIDs  []string `json:"guids,omitempty"`
}

// RootDisk is the disk that an image was written to. All texts are bounded.
type RootDisk struct {
	Name   string `json:"name,omitempty"` // sda, as the probe saw it: not the same in each boot
	Serial string `json:"serial,omitempty"`
	WWID   string `json:"wwid,omitempty"`
	Model  string `json:"model,omitempty"`
	Bytes  uint64 `json:"bytes,omitempty"`
}
