package main

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// copyProgress shows on a terminal how far a copy is.
type copyProgress struct {
	copied atomic.Int64

	c    *console
	stop chan struct{}
	done sync.WaitGroup

	mu    sync.Mutex
	now   string // what is being copied
	total int64  // bytes of what was begun
}

func newCopyProgress(c *console) *copyProgress {
	p := &copyProgress{c: c, stop: make(chan struct{})}
	if c.terminal && !c.json() {
		p.done.Go(p.show)
	}
	return p
}

func (p *copyProgress) began(d ocispec.Descriptor) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now = layerName(d.MediaType)
	p.total += d.Size
}

func layerName(mediaType string) string {
	if at := strings.LastIndex(mediaType, "image."); at >= 0 {
		mediaType = mediaType[at+len("image."):]
	}
	name, _, _ := strings.Cut(mediaType, ".v1")
	return name
}

// show draws one line anew until it is stopped, and takes it away then.
func (p *copyProgress) show() {
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-p.stop:
			fmt.Fprint(p.c.err, "\r\x1b[K")
			return
		case <-tick.C:
			fmt.Fprintf(p.c.err, "\r\x1b[K%s", p.line())
		}
	}
}

func (p *copyProgress) line() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return fmt.Sprintf("%s of %s, %s", sizeText(p.copied.Load()), sizeText(p.total), p.now)
}

func (p *copyProgress) end() {
	close(p.stop)
	p.done.Wait()
}
