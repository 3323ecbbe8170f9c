package firstrack

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"ingot/cmd/probeimage/image"
	"ingot/features/internal/rig"
)

// What the page makes: these names stand in it.
const (
	fleet   = "/srv/fleet"
	claim   = "default/web-1"
	logFile = "/srv/log"
)

// commandLimit is how long one command may take, when other tests use the computer, too.
const commandLimit = 5 * time.Minute

// Typed is a command that was typed.
type Typed struct {
	Command string
	Took    time.Duration
}

// Line is the command's first line.
func (t Typed) Line() string {
	line, _, _ := strings.Cut(t.Command, "\n")
	return line
}

// Session is what became of the page's commands.
type Session []Typed

// Took is how long all commands took.
func (s Session) Took() (all time.Duration) {
	for _, t := range s {
		all += t.Took
	}
	return all
}

// charactersPerSecond is how fast a person types who is used to it: 60 words a minute.
const charactersPerSecond = 5

// Typing is how long a person types, who copies nothing.
func (s Session) Typing() time.Duration {
	characters := 0
	for _, t := range s {
		characters += utf8.RuneCountInString(t.Command) + len("\n")
	}
	return time.Duration(characters) * time.Second / charactersPerSecond
}

// Follow does what the page says, in a clone of Ingot's repository, and checks whether there is
// a claimed server then. What is missing here ends t.
func Follow(t testing.TB, repository string) Session {
	t.Helper()
	rig.NeedMachines(t)
	rig.NeedFile(t, "/usr/bin/make", "make")
	repository, err := filepath.Abs(repository)
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(repository, "docs", "first-rack.md"))
	if err != nil {
		t.Fatal(err)
	}
	commands, err := Commands(string(page))
	if err != nil {
		t.Fatalf("docs/first-rack.md: %v", err)
	}
	if err := image.Fetch(t.Context(), image.Options{}); err != nil {
		rig.Missing(t, "what the probe's image is made of cannot be fetched: "+err.Error())
	}
	m := newMachine(t, repository)
	var done Session
	for _, command := range commands {
		began := time.Now()
		if err := m.run(command, commandLimit); err != nil {
			t.Fatalf("command %d of docs/first-rack.md: %v", len(done)+1, err)
		}
		done = append(done, Typed{command, time.Since(began)})
	}
	if err := m.served(); err != nil {
		t.Fatalf("what docs/first-rack.md says was done, and there is no claimed server: %v", err)
	}
	return done
}

// served checks whether the claim has a server that runs, which was Available before.
func (m *machine) served() error {
	object, err := m.ask("git -C " + fleet + " show status:serverclaims/" + claim + ".yaml")
	if err != nil {
		return err
	}
	if err := says(object, "phase: Bound", "reason: Booted"); err != nil {
		return err
	}
	server, err := m.ask("git -C " + fleet + " ls-tree --name-only status servers/") // there is one
	if err != nil {
		return err
	}
	server = strings.TrimSpace(server)
	object, err = m.ask("git -C " + fleet + " show status:" + server)
	if err != nil {
		return err
	}
	if err := says(object, "state: Reserved", `powerState: "On"`); err != nil {
		return err
	}
	log, err := m.ask("cat " + logFile)
	if err != nil {
		return err
	}
	return says(log, "from=Discovery to=Available", "from=Available to=Reserved claim="+claim)
}

func says(text string, words ...string) error {
	for _, w := range words {
		if !strings.Contains(text, w) {
			return fmt.Errorf("it is not said %q:\n%s", w, text)
		}
	}
	return nil
}
