package install

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"ingot/model"
	"ingot/model/filesystem"
	"ingot/model/gpt"
)

// content is what a disk holds, as far as systems look at it.
type content struct {
	// holds names what is on the disk, for messages; empty = nothing.
	holds []string
	// unfinished is set for a disk that holds nothing but an install of ours that was not
	// finished.
	unfinished bool
	bootRecord bool // it has a master boot record, maybe one that protects a GPT
	found      []identity
	partitions []partition
}

// identity is a name that a system finds a disk or partition by.
type identity struct {
	kind  string // label, UUID or GUID
	value string
	where string // "partition 1 (ext4)", or "the disk"
	seed  bool   // in a seed's partition of ours
}

// marker is what a disk has while an image is being written to it: what is on such a disk is
// nobody's. It is in the block that is written last, behind where tables begin.
const (
	marker   = "INGOT: a disk image is being written here; nothing on this disk is whole.\n"
	markerAt = lastWritten / 2
)

func lookAt(r io.ReaderAt, size int64) content {
	var c content
	c.unfinished, c.bootRecord = hasAt(r, markerAt, marker), hasAt(r, 510, "\x55\xaa")
	table, err := gpt.Read(r, size)
	switch {
	case err == nil:
		c.guidTable(table)
	case !errors.Is(err, gpt.ErrNone):
		c.holds = append(c.holds, "a GUID partition table that is broken")
	default:
		c.masterBootRecord(r)
	}
	if err != nil && (hasAt(r, size-512, "EFI PART") || hasAt(r, size-4096, "EFI PART")) {
		c.holds = append(c.holds, "the backup of a GUID partition table")
	}
	if id, ok := filesystem.Identify(r, size); ok {
		c.note("the disk", id, false)
	}
	for n, p := range c.partitions {
		if id, ok := filesystem.Identify(io.NewSectionReader(r, p.from, p.to-p.from), p.to-p.from); ok {
			c.partitions[n].id = id
			c.note(fmt.Sprintf("partition %d", p.number), id, p.name == seedPartition)
		}
	}
	return c
}

func hasAt(r io.ReaderAt, at int64, text string) bool {
	b := make([]byte, len(text))
	n, _ := r.ReadAt(b, at)
	return n == len(b) && string(b) == text
}

func (c *content) guidTable(table gpt.Table) {
	c.holds = append(c.holds, fmt.Sprintf("a GUID partition table with %d partitions", len(table.Partitions)))
	c.found = append(c.found, identity{"GUID", table.DiskGUID, "the disk", false})
	sector := int64(table.SectorSize)
	for _, p := range table.Partitions {
		seed := p.Name == seedPartition
		c.found = append(c.found, identity{"GUID", p.GUID, fmt.Sprintf("partition %d", p.Number), seed})
		c.partitions = append(c.partitions, partition{
			number: p.Number, kind: p.Type, guid: p.GUID, name: p.Name, span: span{int64(p.First) * sector, int64(p.Last+1) * sector},
		})
	}
}

func (c *content) masterBootRecord(r io.ReaderAt) {
	first := make([]byte, 512)
	if n, _ := r.ReadAt(first, 0); n < len(first) {
		return
	}
	record, ok := gpt.ReadMBR(first)
	if !ok {
		return
	}
	c.holds = append(c.holds, "a master boot record with partitions")
	for n, p := range record.Partitions {
		if p.Type != 0 {
			c.partitions = append(c.partitions, partition{number: n + 1, span: span{int64(p.First) * 512, (int64(p.First) + int64(p.Sectors)) * 512}})
		}
	}
}

// note keeps what a filesystem, or what is like one, is found by.
func (c *content) note(where string, id filesystem.ID, seed bool) {
	if where == "the disk" {
		c.holds = append(c.holds, strings.TrimSpace(id.Type+" "+id.Label))
	}
	where += " (" + id.Type + ")"
	if id.Label != "" {
		c.found = append(c.found, identity{"label", id.Label, where, seed})
	}
	if id.UUID != "" {
		c.found = append(c.found, identity{"UUID", id.UUID, where, seed})
	}
}

// blank reports whether nothing on the disk has to be kept.
func (c content) blank() bool { return len(c.holds) == 0 || c.unfinished }

// ours reports whether the disk has the seed of one install, and so all of it: by the name and
// GUID of its partition, or, in a master boot record, by the serial number of its filesystem.
// Its first block is written last: without that the disk is not whole, though all else is there.
func (c content) ours(install string) bool {
	if c.unfinished || !c.bootRecord {
		return false
	}
	serial := seedSerial(install)
	uuid := fmt.Sprintf("%04x-%04x", serial>>16, serial&0xffff)
	return slices.ContainsFunc(c.partitions, func(p partition) bool {
		return p.name == seedPartition && p.guid == seedGUID(install) || p.kind == "" && p.id.Type == "vfat" && p.id.UUID == uuid
	})
}

// seeds are the seed partitions of ours, of whatever install.
func (c content) seeds() []partition {
	return slices.DeleteFunc(slices.Clone(c.partitions), func(p partition) bool { return p.name != seedPartition })
}

// seedLabels are those by which systems find their configuration: that of another disk would be
// taken for theirs.
var seedLabels = []string{"cidata", "config-2"}

// duplicates are the identities on a disk that a system of the image would take for its own.
func (c content) duplicates(ids model.DiskIdentities, seed *model.InstallSeed) []string {
	labels := ids.Labels
	if seed != nil {
		labels = append(slices.Clone(labels), append(seedLabels, seed.Label)...)
	}
	var list []string
	for _, f := range c.found {
		known := map[string][]string{"label": labels, "UUID": ids.UUIDs, "GUID": ids.GUIDs}[f.kind]
		same := func(value string) bool {
			return value == f.value || strings.EqualFold(value, f.value) && (f.kind != "label" || slices.Contains(seedLabels, strings.ToLower(value)))
		}
		if !f.seed && slices.ContainsFunc(known, same) {
			list = append(list, fmt.Sprintf("%s %s of %s", f.kind, f.value, f.where))
		}
	}
	return list
}

func sameBytes(r io.ReaderAt, at int64, b []byte) bool {
	got := make([]byte, len(b))
	n, _ := r.ReadAt(got, at)
	return n == len(b) && bytes.Equal(got, b)
}
