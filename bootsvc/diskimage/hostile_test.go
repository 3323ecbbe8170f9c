package diskimage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"ingot/bootsvc/diskimage/diskimagetest"
	"ingot/model"
	"ingot/model/must"
)

// drops is a body that gives a byte now and then, without end.
type drops struct{ ctx context.Context }

func (d drops) Read(p []byte) (int, error) {
	select {
	case <-d.ctx.Done():
		return 0, context.Cause(d.ctx)
	case <-time.After(time.Millisecond):
	}
	p[0] = 'x'
	return 1, nil
}

func (drops) Close() error { return nil }

// A server that gives drop by drop would keep a place that others wait for.
func TestServerThatGivesDropByDropIsLeft(t *testing.T) {
	store := storeFor(t, func(o *settings) { o.Stall = 10 * time.Millisecond })
	store.pause = func(int) time.Duration { return 0 }
	src := sourceOf(tiny(1))
	src.Fetch = func(ctx context.Context, _ int64) (io.ReadCloser, error) { return drops{ctx}, nil }
	src.Bytes = 0
	if _, err := store.Prepare(t.Context(), src); !errors.Is(err, errStalled) {
		t.Errorf("got %v", err)
	}
}

// What one server, or one way of reading a file, makes of a digest is nothing that others are
// refused for.
func TestDigestIsRefusedWhereItIsWrongAlone(t *testing.T) {
	raw := tiny(1)
	packing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "br")
		_, _ = w.Write(raw)
	}))
	defer packing.Close()
	layer := tarOf(map[string][]byte{"disk/os.raw": raw})
	inContainer := sourceOf(layer)
	inContainer.Container = true
	for name, tc := range map[string]struct {
		bad, good Source
		reason    model.Reason
	}{
		"by a server that packs it for the way": {urlSource(t, packing.URL, raw, true), sourceOf(raw), model.ReasonRegistryUnreachable},
		"read as a bare file":                   {sourceOf(layer), inContainer, model.ReasonImageFormat},
	} {
		t.Run(name, func(t *testing.T) {
			store := storeFor(t, nil)
			store.pause = func(int) time.Duration { return 0 }
			if _, err := store.Prepare(t.Context(), tc.bad); reasonOf(err) != tc.reason {
				t.Errorf("got %s (%v), want %s", reasonOf(err), err, tc.reason)
			}
			if _, err := store.Prepare(t.Context(), tc.good); err != nil {
				t.Errorf("another's is refused: %v", err)
			}
		})
	}
}

// A layer may unpack to far more than it has bytes.
func TestContainerLayerIsUnpackedWithinBounds(t *testing.T) {
	var packed bytes.Buffer
	w, err := zstd.NewWriter(&packed)
	if err != nil {
		t.Fatal(err)
	}
	const beside = maxContainerRest + 64<<20
	header := tarOf(map[string][]byte{"etc/large": nil})[:512]
	copy(header[124:], fmt.Sprintf("%011o\x00", int64(beside)))
	copy(header[148:], "        ")
	sum := 0
	for _, b := range header {
		sum += int(b)
	}
	copy(header[148:], fmt.Sprintf("%06o\x00 ", sum))
	_, err = io.Copy(w, io.MultiReader(bytes.NewReader(header), io.LimitReader(endless{}, beside), bytes.NewReader(tarOf(map[string][]byte{"disk/os.raw": tiny(1)}))))
	must.Do(t, errors.Join(err, w.Close()))
	src := sourceOf(packed.Bytes())
	src.Container = true
	store := storeFor(t, nil)
	store.maxImage = 16 * mib
	if _, err := store.Prepare(t.Context(), src); reasonOf(err) != model.ReasonImageTooLarge {
		t.Errorf("got %s: %v", reasonOf(err), err)
	}
}

// endless are zeros without end.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// A look that took too long may be this machine's fault: it is not held against the image for
// good, as what is wrong with its bytes is.
func TestSlowLookIsForgotten(t *testing.T) {
	now := time.Now()
	store := storeFor(t, func(o *settings) { o.Clock = func() time.Time { return now } })
	src := sourceOf(tiny(1))
	for _, tc := range []struct {
		err  *Error
		keep bool
	}{
		{&Error{Reason: model.ReasonImageFormat, Message: "too slow", Err: context.DeadlineExceeded}, false},
		{refuse(model.ReasonImageFormat, "it is a cat picture"), true},
	} {
		store.remember(src, tc.err)
		if got := store.remembered(src); got == nil {
			t.Errorf("%s: forgotten at once", tc.err.Message)
		}
		now = now.Add(rememberSlow)
		if got := store.remembered(src); (got != nil) != tc.keep {
			t.Errorf("%s: remembered an hour later: %v", tc.err.Message, got)
		}
	}
}

// An image that is smaller than a partition table needs is refused before it comes to a machine.
func TestImageWithoutRoomForASystemIsRefused(t *testing.T) {
	raw := diskimagetest.Disk(diskimagetest.Options{BootCode: true, Bytes: 8 * mib})[:1024]
	_, err := storeFor(t, nil).Prepare(t.Context(), sourceOf(raw))
	if reasonOf(err) != model.ReasonImageNoPartitions || !strings.Contains(err.Error(), "less than a disk with a system has") {
		t.Errorf("got %s: %v", reasonOf(err), err)
	}
}
