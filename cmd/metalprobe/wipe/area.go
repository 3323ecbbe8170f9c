package wipe

import "ingot/cmd/metalprobe/inventory"

// area is a range of a disk, in bytes.
type area struct{ offset, length int64 }

const (
	mib = 1 << 20
	// edge is cleared at both ends of a disk, where partition tables, boot loaders and the
	// metadata of RAID controllers are, and at both ends of each partition: file systems,
	// volume groups and arrays have their labels there, and a new partition in the same
	// place would show them again. LUKS2 keeps its keys in as many bytes by default.
	edge = 16 * mib
)

func edges(size int64, partitions []inventory.Partition) []area {
	areas := ends(0, size, edge)
	for _, p := range partitions {
		// A partition table may claim anything.
		if p.Start < uint64(size) && p.Bytes > 0 {
			length := min(p.Bytes, uint64(size)-p.Start)
			areas = append(areas, ends(int64(p.Start), int64(length), edge)...)
		}
	}
	return areas
}

// ends are the first and the last width bytes of a range, or the whole of it.
func ends(offset, length, width int64) []area {
	if length <= 2*width {
		return []area{{offset, length}}
	}
	return []area{{offset, width}, {offset + length - width, width}}
}

// spotChecks are the areas that are read to verify that a whole disk was cleared: its
// edges, and areas spread evenly between them.
func spotChecks(size int64) []area {
	const count, width = 1024, 64 << 10
	areas := edges(size, nil)
	step := size / count
	for i := range int64(count) {
		if offset := i * step; step > 0 && offset+width <= size {
			areas = append(areas, area{offset, width})
		}
	}
	return areas
}

// sampleAreas are the areas that are sampled before a disk is cleared: both of its ends,
// and blocks spread evenly between them.
func sampleAreas(size int64) []area {
	const count = 1024
	areas := ends(0, size, mib)
	step := size / count / blockSize * blockSize
	for i := range int64(count) {
		if offset := i * step; offset >= mib && offset+blockSize <= size-mib {
			areas = append(areas, area{offset, blockSize})
		}
	}
	return areas
}
