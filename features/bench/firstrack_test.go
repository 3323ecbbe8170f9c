package bench

import (
	"os"
	"strings"
	"testing"
	"time"

	"ingot/features/internal/firstrack"
	"ingot/features/internal/rig"
)

// The goals of a first rack: from an empty machine to a claimed server.
const (
	goalCommands = 10
	goalFirst    = 10 * time.Minute
	goalTyping   = time.Minute
)

// BenchmarkFirstRack types what docs/first-rack.md says, once, and prints a table. Machines
// have no KVM; what Go has built is not built again.
func BenchmarkFirstRack(b *testing.B) {
	need(b, rig.ToolQEMU)
	session := firstrack.Follow(b, "../..")
	t := &table{TB: b, title: "from a Debian machine to a claimed server"}
	t.number("commands", float64(len(session)), goalCommands, none)
	t.duration("time, with typing", session.Took()+session.Typing(), goalFirst, none)
	t.duration("  typing, 5 characters a second", session.Typing(), goalTyping, none)
	t.duration("  or copying, 5 s a command", time.Duration(len(session))*5*time.Second, none, none)
	for _, typed := range session {
		words := strings.Fields(typed.Line())
		t.duration("  "+strings.Join(words[:min(len(words), 4)], " "), typed.Took, none, none)
	}
	t.print(os.Stderr)
	b.ReportMetric(0, "ns/op")
}
