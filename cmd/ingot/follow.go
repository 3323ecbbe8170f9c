package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// news is what is heard of a daemon that is followed.
type news int

// The news of a daemon.
const (
	newsFollowing news = iota // it tells what changes from now on
	newsChanged               // something changed
	newsLost                  // it does not tell any more, and is asked to again and again
	newsRestarted             // it is another one that goes on telling
)

// What --watch says of news.
var (
	errLost      = errors.New("the connection to the daemon was lost: connecting again")
	errRestarted = errors.New("the daemon was started anew")
)

// Limits of following.
const (
	followSilence = 45 * time.Second // of a daemon that says something every 15 s
	followRetry   = time.Second      // between two attempts to connect
	maxEventLine  = 1 << 20
)

// errNoEvents is returned if no event stream can be read, for example because a proxy is in between.
var errNoEvents = errors.New("there is no event stream")

// follow tells of what changes at a daemon until ctx is done. The channel is closed when the
// first stream cannot be read, and the daemon has to be polled.
func (a *adminClient) follow(ctx context.Context) <-chan news {
	f := &follower{client: a, news: make(chan news)}
	go func() {
		defer close(f.news)
		f.run(ctx)
	}()
	return f.news
}

// follower reads the events of a daemon.
type follower struct {
	client *adminClient
	news   chan news
	last   string // id of the event that was read last
}

// run reads one stream after another. A stream that ends and goes on at once is no news.
func (f *follower) run(ctx context.Context) {
	lost := false
	tell := func(n news) bool {
		select {
		case f.news <- n:
			return true
		case <-ctx.Done():
			return false
		}
	}
	for first := true; ; first = false {
		begun := time.Now()
		err := f.read(ctx, func(n news) bool {
			if lost && n == newsRestarted {
				n = newsChanged // it was said already that it was lost
			}
			lost = lost && n != newsFollowing
			return tell(n)
		}, first || lost)
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, errNoEvents) && first:
			return
		case err == nil: // it had begun: try at once, unless it has just
			if !sleepFor(ctx, followRetry-time.Since(begun)) {
				return
			}
			continue
		}
		if !lost && !tell(newsLost) {
			return
		}
		lost = true
		if !sleepFor(ctx, followRetry) {
			return
		}
	}
}

// read reads one stream to its end. It returns nil when there was one. Fresh is set when it
// is news that there is one.
func (f *follower) read(ctx context.Context, tell func(news) bool, fresh bool) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	silence := time.AfterFunc(followSilence, cancel)
	defer silence.Stop()
	resp, err := f.open(ctx)
	if err != nil {
		return err
	}
	defer resp.Body.Close() // read only: nothing is lost
	if fresh && !tell(newsFollowing) {
		return nil
	}
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, maxEventLine)
	kind := ""
	for lines.Scan() {
		silence.Reset(followSilence)
		field, value, _ := strings.Cut(lines.Text(), ": ")
		switch field {
		case "id":
			f.last = value
		case "event":
			kind = value
		case "":
			if n, is := newsOf(kind, fresh); is && value == "" && !tell(n) {
				return nil
			}
			kind = ""
		}
	}
	return nil
}

// newsOf is what an event says.
func newsOf(kind string, fresh bool) (n news, is bool) {
	switch {
	case kind == "reload" && !fresh:
		return newsRestarted, true
	case kind == "change", kind == "reload":
		return newsChanged, true
	}
	return 0, false
}

// open asks for the events after the last that was read.
func (f *follower) open(ctx context.Context) (*http.Response, error) {
	req, err := f.client.request(ctx, "/api/v1/events")
	if err != nil {
		return nil, err
	}
	if f.last != "" {
		req.Header.Set("Last-Event-ID", f.last)
	}
	stream := *f.client.http
	stream.Timeout = 0 // of an answer to its end, which this one has not
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

// sleepFor pauses and reports whether ctx still goes on.
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
