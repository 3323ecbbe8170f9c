package store

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func testLog(t *testing.T) *slog.Logger {
	return slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug}))
}

func loseFiles(t *testing.T, dir string) {
	t.Helper()
	if err := os.Remove(filepath.Join(dir, FileName)); err != nil {
		t.Fatal(err)
	}
}

func uuidOf(i int) string { return fmt.Sprintf("00000000-0000-4000-8000-%012x", i+1) }

func set(b Bucket, name, value string) Change { return Change{Key{b, name}, []byte(value)} }
func del(b Bucket, name string) Change        { return Change{Key: Key{b, name}} }

func with(changes ...Change) Contents {
	c := NewContents()
	for _, ch := range changes {
		c.Set(ch)
	}
	return c
}

func mustLoad(t *testing.T, s Store) (Contents, bool) {
	t.Helper()
	l, err := s.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return l.Contents, l.Fresh
}

func wantErr(t *testing.T, got, want error) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Errorf("got error %v, want %v", got, want)
	}
}
