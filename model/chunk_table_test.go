package model

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func exampleChunks() ChunkTable {
	return ChunkTable{Bytes: 3*ChunkBytes + 512, Chunks: []Chunk{
		{Length: 100, Sum: [32]byte{1}}, {}, {Offset: 100, Length: MaxChunkBytes, Sum: [32]byte{2}}, {Offset: 100 + MaxChunkBytes, Length: 7, Sum: [32]byte{3}},
	}}
}

func TestChunkTableIsReadAsItWasWritten(t *testing.T) {
	want := exampleChunks()
	got, err := ParseChunkTable(want.Encode(), want.Bytes)
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("ParseChunkTable: %v\n%s", err, diff)
	}
	if got.Data() != 2*ChunkBytes+512 || got.Stored() != 107+MaxChunkBytes || got.Size(3) != 512 {
		t.Errorf("Data %d, Stored %d, Size(3) %d", got.Data(), got.Stored(), got.Size(3))
	}
}

func TestChunkTableThatCannotBeIsRefused(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*ChunkTable)
		cut    int
		max    uint64
		want   string
	}{
		"a disk of no bytes":                       {change: func(t *ChunkTable) { t.Bytes, t.Chunks = 0, nil }, want: "0 bytes"},
		"a disk larger than allowed":               {change: func(*ChunkTable) {}, max: ChunkBytes, want: "at most 4194304 are allowed"},
		"an entry is missing":                      {change: func(t *ChunkTable) { t.Chunks = t.Chunks[:3] }, want: "it has 152 bytes"},
		"its end is missing":                       {change: func(*ChunkTable) {}, cut: 1, want: "it has 199 bytes"},
		"less than its first number":               {change: func(*ChunkTable) {}, cut: 195, want: "it has 5 bytes"},
		"a size that overflows the count":          {change: func(t *ChunkTable) { t.Bytes = 1<<64 - 1 }, max: 1<<64 - 1, want: "it has 200 bytes"},
		"chunks that overlap":                      {change: func(t *ChunkTable) { t.Chunks[2].Offset-- }, want: "chunk 2: it is stored at 99"},
		"a gap between chunks":                     {change: func(t *ChunkTable) { t.Chunks[3].Offset++ }, want: "chunk 3: it is stored at"},
		"a chunk that takes more than it can":      {change: func(t *ChunkTable) { t.Chunks[3].Length = MaxChunkBytes + 1 }, want: "at most 4227584 are possible"},
		"zeros that are stored":                    {change: func(t *ChunkTable) { t.Chunks[1].Offset = 100 }, want: "chunk 1: it is zeros"},
		"zeros that have a sum":                    {change: func(t *ChunkTable) { t.Chunks[1].Sum[31] = 1 }, want: "chunk 1: it is zeros"},
		"an offset that overflows with its length": {change: func(t *ChunkTable) { t.Chunks[3].Offset = 1<<64 - 1 }, want: "chunk 3"},
	} {
		t.Run(name, func(t *testing.T) {
			table := exampleChunks()
			test.change(&table)
			if test.max == 0 {
				test.max = 1 << 40
			}
			raw := table.Encode()
			_, err := ParseChunkTable(raw[:len(raw)-test.cut], test.max)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}
