package install

import (
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"ingot/model"
	"ingot/model/gpt"
)

// recordOf is the first MiB of an image with a master boot record of partitions that each have
// so many MiB, one behind the other.
func recordOf(mebibytes ...int) []byte {
	head := make([]byte, mebibyte)
	head[510], head[511] = 0x55, 0xaa
	at := uint32(2048)
	for n, size := range mebibytes {
		entry := head[recordEntries+n*recordEntry:]
		entry[4] = 0x83
		binary.LittleEndian.PutUint32(entry[8:], at)
		binary.LittleEndian.PutUint32(entry[12:], uint32(size)*2048)
		at += uint32(size) * 2048
	}
	return head
}

func TestWhereTheSeedGoes(t *testing.T) {
	seed := func(files map[string]string) *model.InstallSeed {
		return &model.InstallSeed{Kind: model.SeedNoCloud, Label: "cidata", Files: files}
	}
	tests := map[string]struct {
		head   []byte
		seed   *model.InstallSeed
		disk   int64
		sector int
		want   span
		reason model.Reason
	}{
		"at the end of the disk, with the table's backup behind it": {
			head: imageOf(t, 20, 512)[:mebibyte], seed: seed(nil), disk: 64 * mebibyte, want: span{59 * mebibyte, 63 * mebibyte},
		},
		"as large as its files (N63)": {
			head: imageOf(t, 20, 512)[:mebibyte], seed: seed(map[string]string{"user-data": strings.Repeat("x", 9*mebibyte)}), disk: 64 * mebibyte,
			want: span{53 * mebibyte, 63 * mebibyte},
		},
		"nowhere, as its files are more than a volume holds": {
			head: imageOf(t, 20, 512)[:mebibyte], seed: seed(map[string]string{"user-data": strings.Repeat("x", 64*mebibyte)}), disk: 1 << 40,
			reason: model.ReasonSeedNoRoom,
		},
		"nowhere, as the image fills the disk": {
			head: imageOf(t, 20, 512)[:mebibyte], seed: seed(nil), disk: 20 * mebibyte, reason: model.ReasonSeedNoRoom,
		},
		"in the free slot of a master boot record": {head: recordOf(4, 4), seed: seed(nil), disk: 64 * mebibyte, want: span{60 * mebibyte, 64 * mebibyte}},
		"in a master boot record below 2 TiB":      {head: recordOf(4), seed: seed(nil), disk: 8 << 40, want: span{2<<40 - 4*mebibyte, 2 << 40}},
		"nowhere, as a master boot record has four partitions (N67)": {
			head: recordOf(4, 4, 4, 4), seed: seed(nil), disk: 64 * mebibyte, reason: model.ReasonSeedNoRoom,
		},
		"nowhere, as the last partition of a master boot record ends at the end": {
			head: recordOf(4, 56), seed: seed(nil), disk: 64 * mebibyte, reason: model.ReasonSeedNoRoom,
		},
		"nowhere, as none is wanted": {head: recordOf(4, 4, 4, 4), disk: 64 * mebibyte},
		"not on an image without a partition table": {
			head: make([]byte, mebibyte), seed: seed(nil), disk: 64 * mebibyte, reason: model.ReasonImageNoPartitions,
		},
		"not on an image whose partition table is broken": {
			head: append(append(imageOf(t, 20, 512)[:600:600], 1), imageOf(t, 20, 512)[601:mebibyte]...), seed: seed(nil), disk: 64 * mebibyte, reason: model.ReasonImageNoPartitions,
		},
		"not on an image whose table protects nothing": {
			head: protectiveOnly(t), seed: seed(nil), disk: 64 * mebibyte, reason: model.ReasonImageNoPartitions,
		},
		"on sectors of 4096 bytes": {
			head: imageOf(t, 20, 4096)[:mebibyte], seed: seed(nil), disk: 64 * mebibyte, sector: 4096, want: span{59 * mebibyte, 63 * mebibyte},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if test.sector == 0 {
				test.sector = 512
			}
			a, err := arrange(test.head, place{"install-1", 20 * mebibyte, test.disk, test.sector, test.seed})
			var f *Failure
			if test.reason != "" {
				if !errors.As(err, &f) || f.Reason != test.reason {
					t.Errorf("error is %v, want %s", err, test.reason)
				}
				return
			}
			if err != nil || a.seedAt != test.want {
				t.Errorf("seed is at %+v, want %+v; error %v", a.seedAt, test.want, err)
			}
			if len(a.head) != mebibyte {
				t.Errorf("the first MiB has %d bytes", len(a.head))
			}
			if record, ok := gpt.ReadMBR(a.head); !ok || !record.Protective && test.seed != nil && seedSlot(record) != test.want {
				t.Errorf("the master boot record is %+v", record)
			}
		})
	}
}

// protectiveOnly is an image whose GUID partition table is lost.
func protectiveOnly(t *testing.T) []byte {
	head := imageOf(t, 20, 512)[:mebibyte]
	clear(head[512:])
	return head
}

func seedSlot(record gpt.MBR) span {
	for _, p := range record.Partitions {
		if p.Type == typeFAT16 {
			return span{int64(p.First) * 512, (int64(p.First) + int64(p.Sectors)) * 512}
		}
	}
	return span{}
}
