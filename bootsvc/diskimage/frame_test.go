package diskimage

import (
	"bytes"
	"math/rand/v2"
	"os/exec"
	"testing"

	"github.com/klauspost/compress/zstd"

	"ingot/model"
	"ingot/model/must"
)

// Every frame is read by the decoder of the probe, and by zstd's own tool.
func TestFramesAreOfZstd(t *testing.T) {
	random := func(n int) []byte {
		p := make([]byte, n)
		r := rand.New(rand.NewPCG(1, uint64(n)))
		for i := range p {
			p[i] = byte(1 + r.IntN(255))
		}
		return p
	}
	// alternating has data in each second page.
	alternating := random(model.ChunkBytes)
	for at := 0; at < len(alternating); at += 2 * pageBytes {
		clear(alternating[at : at+pageBytes])
	}
	packed := must.Get(framingOf(packedXZ))(t)
	for name, c := range map[string]struct {
		frame    framing
		chunk    []byte
		min, max int // bytes of the frame
	}{
		"one sector":                      {appendFrame, random(512), 524, 524},
		"one sector of zeros":             {appendFrame, make([]byte, 512), 13, 13},
		"a page and a sector":             {appendFrame, random(pageBytes + 512), 4620, 4620},
		"data, then zeros":                {appendFrame, append(random(model.ChunkBytes/2), make([]byte, model.ChunkBytes/2)...), 2 * mib, 2*mib + 200},
		"zeros, then data":                {appendFrame, append(make([]byte, model.ChunkBytes/2), random(model.ChunkBytes/2)...), 2 * mib, 2*mib + 200},
		"data only":                       {appendFrame, random(model.ChunkBytes), model.ChunkBytes, model.MaxChunkBytes},
		"zeros in each second page":       {appendFrame, alternating, 2 * mib, 2*mib + 5000},
		"one byte, then zeros":            {appendFrame, append([]byte{7}, make([]byte, model.ChunkBytes-1)...), pageBytes, pageBytes + 200},
		"the same byte, which is no zero": {appendFrame, bytes.Repeat([]byte{7}, model.ChunkBytes), model.ChunkBytes, model.MaxChunkBytes},
		"packed":                          {packed, bytes.Repeat([]byte("ingot"), 100_000), 1, 1000},
	} {
		t.Run(name, func(t *testing.T) {
			frame := c.frame(c.chunk, []byte("before"))
			frame, ok := bytes.CutPrefix(frame, []byte("before"))
			if !ok || len(frame) < c.min || len(frame) > c.max {
				t.Errorf("a frame of %d bytes, want %d to %d; what was before it is kept: %v", len(frame), c.min, c.max, ok)
			}
			z := must.Get(zstd.NewReader(nil, zstd.WithDecoderMaxWindow(2*model.ChunkBytes), zstd.WithDecodeAllCapLimit(true)))(t)
			defer z.Close()
			got, err := z.DecodeAll(frame, make([]byte, 0, len(c.chunk)))
			if err != nil || !bytes.Equal(got, c.chunk) {
				t.Errorf("unpacked into %d bytes (%v), want %d", len(got), err, len(c.chunk))
			}
			tool := exec.CommandContext(t.Context(), "zstd", "-dc")
			tool.Stdin = bytes.NewReader(frame)
			if got, err := tool.Output(); err != nil || !bytes.Equal(got, c.chunk) {
				t.Errorf("zstd unpacks into %d bytes (%v), want %d", len(got), err, len(c.chunk))
			}
		})
	}
}

// What is packed again is what took longer to unpack.
func TestWhatTookLongToUnpackIsPackedAgain(t *testing.T) {
	text := bytes.Repeat([]byte("ingot"), 100_000)
	for compression, again := range map[string]bool{"": false, packedZstd: false, packedGzip: false, packedXZ: true, packedBzip2: true} {
		frame := must.Get(framingOf(compression))(t)
		if got := len(frame(text, nil)) < len(text); got != again {
			t.Errorf("%q: packed %v, want %v", compression, got, again)
		}
	}
}
