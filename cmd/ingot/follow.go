package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// change is an event of a daemon that is followed.
type change struct {
	kind changeKind
	// paths are those of the changed documents on the status branch; nil: any document may have changed.
	paths []string
}

type changeKind int

const (
	documentsChanged changeKind = iota
	connectionLost              // the connection is lost, and a new one is tried repeatedly
	daemonRestarted             // the daemon is another process
)

var (
	errLost      = errors.New("the connection to the daemon was lost: connecting again")
	errRestarted = errors.New("the daemon was restarted")
)

const (
	followSilence = 45 * time.Second // a daemon sends something every 15 s
	followRetry   = time.Second      // between two attempts to connect
	maxEventLine  = 1 << 20
	maxPaths      = 100 // for more changed documents, loading everything costs less
)

// errNoEvents is returned if no event stream can be read, for example because a proxy is in between.
var errNoEvents = errors.New("there is no event stream")

// follow sends the changes of a daemon until ctx is done. The channel is closed if the first
// stream cannot be read, and the daemon has to be polled.
func (a *adminClient) follow(ctx context.Context) <-chan change {
	f := &follower{client: a, changes: make(chan change)}
	go func() {
		defer close(f.changes)
		f.run(ctx)
	}()
	return f.changes
}

// follower reads the events of a daemon.
type follower struct {
	client  *adminClient
	changes chan change
	last    string // id of the event that was read last
}

// run reads one stream after another. A stream that ends and continues at once is not a change.
func (f *follower) run(ctx context.Context) {
	isLost := false
	for first := true; ; first = false {
		begun := time.Now()
		err := f.read(ctx, first, isLost)
		switch {
		case ctx.Err() != nil, errors.Is(err, errNoEvents) && first:
			return
		case err == nil: // it had begun: connect at once, unless it was short
			isLost = false
			if !sleepFor(ctx, followRetry-time.Since(begun)) {
				return
			}
			continue
		}
		if !isLost && !f.send(ctx, change{kind: connectionLost}) {
			return
		}
		isLost = true
		if !sleepFor(ctx, followRetry) {
			return
		}
	}
}

func (f *follower) send(ctx context.Context, c change) bool {
	select {
	case f.changes <- c:
		return true
	case <-ctx.Done():
		return false
	}
}

// read reads one stream to its end. It returns nil if there was one. After a loss, any document may
// have changed.
func (f *follower) read(ctx context.Context, first, afterLoss bool) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	silence := time.AfterFunc(followSilence, cancel)
	defer silence.Stop()
	resp, err := f.open(ctx)
	if err != nil {
		return err
	}
	defer resp.Body.Close() // read only: nothing is lost
	if afterLoss && !f.send(ctx, change{}) {
		return nil
	}
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, maxEventLine)
	var e event
	for lines.Scan() {
		silence.Reset(followSilence)
		field, value, _ := strings.Cut(lines.Text(), ": ")
		switch field {
		case "id":
			e.id = value
		case "event":
			e.kind = value
		case "data":
			e.data = value
		case "":
			if value != "" { // a comment
				continue
			}
			if e.kind != "" && !f.send(ctx, e.change(!first && !afterLoss && !e.isAfter(f.last))) {
				return nil
			}
			if e.id != "" {
				f.last = e.id
			}
			e = event{}
		}
	}
	return nil
}

// event is a server-sent event: hello, change or reload.
type event struct{ id, kind, data string }

// isAfter reports whether the event is of the process that sent the event with an id.
func (e event) isAfter(id string) bool {
	process, _, _ := strings.Cut(id, "-")
	return strings.HasPrefix(e.id, process+"-")
}

func (e event) change(other bool) change {
	if other {
		return change{kind: daemonRestarted}
	}
	var data struct {
		Changes []struct {
			Path string `json:"path"`
		} `json:"changes"`
	}
	if err := json.Unmarshal([]byte(e.data), &data); err != nil || e.kind != "change" || len(data.Changes) > maxPaths {
		return change{}
	}
	paths := []string{}
	for _, c := range data.Changes {
		paths = append(paths, c.Path)
	}
	return change{paths: paths}
}

// open requests the events after the last one that was read.
func (f *follower) open(ctx context.Context) (*http.Response, error) {
	req, err := f.client.request(ctx, "/api/v1/events")
	if err != nil {
		return nil, err
	}
	if f.last != "" {
		req.Header.Set("Last-Event-ID", f.last)
	}
	stream := *f.client.http
	stream.Timeout = 0 // the response has no end
	resp, err := stream.Do(req)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNoEvents, err)
	}
	if resp.StatusCode != http.StatusOK || !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		resp.Body.Close()
		return nil, fmt.Errorf("%w: %s", errNoEvents, resp.Status)
	}
	return resp, nil
}

// sleepFor pauses, and reports whether ctx is not done.
func sleepFor(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
