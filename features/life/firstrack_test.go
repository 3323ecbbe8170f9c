package life

import (
	"testing"
	"time"

	"ingot/features/internal/firstrack"
)

// maxCommands is how many commands a first claimed server may take.
const maxCommands = 10

func TestWhatTheFirstPageSaysMakesAClaimedServer(t *testing.T) {
	session := firstrack.Follow(t, "../..")
	for i, typed := range session {
		t.Logf("%2d. %6s  %s", i+1, typed.Took.Round(100*time.Millisecond), typed.Line())
	}
	t.Logf("%d commands, %s, of them typing %s, without copying", len(session),
		(session.Took() + session.Typing()).Round(time.Second), session.Typing().Round(time.Second))
	if len(session) > maxCommands {
		t.Errorf("%d commands, want at most %d", len(session), maxCommands)
	}
}
