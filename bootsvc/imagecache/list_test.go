package imagecache

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ingot/model/must"
)

func TestContentsAreWhatIsThereAndWhatIsOnItsWay(t *testing.T) {
	c := newCache(t, t.TempDir())
	used := time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)
	c.clock = func() time.Time { return used }
	whole := &upstreamFake{blob: content(1000, 1)}
	must.Get(read(t, c, keyOf(whole.blob), whole.fetch))(t)
	landed(t, c)
	want := Content{Digest: keyOf(whole.blob).Digest, Size: 1000, Fetched: 1000, Used: used}
	if diff := cmp.Diff([]Content{want}, c.Contents()); diff != "" {
		t.Errorf("with one blob (-want +got):\n%s", diff)
	}
	coming := &upstreamFake{blob: content(1<<20, 2), gate: make(chan struct{}, 1), piece: 64 << 10}
	coming.gate <- struct{}{}
	get(t, c, keyOf(coming.blob), coming.fetch)
	key := keyOf(coming.blob)
	var got Content
	until(t, "64 KiB have come", func() bool {
		for _, b := range c.Contents() {
			if b.Digest == key.Digest {
				got = b
			}
		}
		return got.Fetched == 64<<10
	})
	if diff := cmp.Diff(Content{Digest: key.Digest, Size: 1 << 20, Fetched: 64 << 10, From: key.From}, got); diff != "" {
		t.Errorf("what is on its way (-want +got):\n%s", diff)
	}
	close(coming.gate)
	landed(t, c)
}
