package access

import (
	"bytes"
	"log/slog"
	"slices"
	"sync"
	"time"

	"ingot/gitsource/smallfile"
)

const (
	// rereadEvery is how often files are read again at most.
	rereadEvery = time.Second
	// maxFile bounds a file, in bytes.
	maxFile = 1 << 20
)

// reread is what files of a setting say, read again when somebody asks. If they cannot be
// used, what they said before goes on.
type reread[T any] struct {
	setting string
	names   []string
	parse   func(content [][]byte) (T, error)
	log     *slog.Logger
	clock   func() time.Time

	mu      sync.Mutex // guards what is below
	at      time.Time
	content [][]byte // that err and, unless that is set, value are of
	value   T
	err     error
}

// open reads the files for the first time.
func (f *reread[T]) open() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.read()
	return f.err
}

// get returns what the files said when they could last be used.
func (f *reread[T]) get() T {
	value, _ := f.newest()
	return value
}

// newest returns the same, and why the files cannot be used now.
func (f *reread[T]) newest() (T, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now := f.clock(); now.Sub(f.at) < rereadEvery {
		return f.value, f.err
	}
	before := f.err
	f.read()
	switch {
	case f.err != nil && (before == nil || f.err.Error() != before.Error()):
		f.log.Warn("files cannot be used, their previous contents stay in force", "setting", f.setting, "err", f.err)
	case f.err == nil && before != nil:
		f.log.Info("files can be used again", "setting", f.setting)
	}
	return f.value, f.err
}

// read reads the files. The caller holds mu.
func (f *reread[T]) read() {
	f.at = f.clock()
	content := make([][]byte, len(f.names))
	for i, name := range f.names {
		var err error
		if content[i], err = smallfile.Read(name, maxFile); err != nil {
			f.content, f.err = nil, err
			return
		}
	}
	if slices.EqualFunc(content, f.content, bytes.Equal) {
		return
	}
	value, err := f.parse(content)
	if f.content, f.err = content, err; err == nil {
		f.value = value
	}
}
