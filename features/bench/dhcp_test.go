package bench

import (
	"fmt"
	"io"
	"os"
	"slices"
	"testing"
	"text/tabwriter"
	"time"

	"ingot/features/internal/rig"
)

// The goals, on the shipped defaults: an address is probed before it is offered, and a lease is on disk before it is
// acknowledged, which Kea's are not. The delays apply while documents are saved.
const (
	goalRate   = 500 // exchanges per second, of four packets each
	goalKnown  = 100 * time.Millisecond
	goalProbed = 500 * time.Millisecond
	goalCPU    = 1.5 // CPU time of a lease, compared with Kea in the same round
)

const (
	// maxDrops is the maximum share of requests without an answer.
	maxDrops = 0.01
	// answerWait is how long the benchmark waits for the last answers.
	answerWait = 700 * time.Millisecond
	roundFor   = 4 * time.Second
	rounds     = 3
	// savedDocuments are committed to Git in groups, one group each saveEvery.
	savedDocuments = 5000
	saveGroup      = 100
	saveEvery      = 250 * time.Millisecond
)

// BenchmarkDHCP leases addresses to new and to known clients, once, whatever -benchtime is, and prints a table.
func BenchmarkDHCP(b *testing.B) {
	need(b, rig.ToolPerfdhcp, rig.ToolKea4, rig.ToolKea6)
	program := build(b)
	for _, family := range []string{"4", "6"} {
		b.Run("IPv"+family, func(b *testing.B) { measureDHCP(b, family, ingotDHCP(b, program), keaDHCP(b, family)) })
	}
}

// dhcpFigures are the loads of one server, by round.
type dhcpFigures struct{ fresh, known []load }

// measure adds a round with clients that have no address yet, and one in which they come back.
func (f *dhcpFigures) measure(s *dhcpServer, family string) {
	base := s.nextClients()
	f.fresh = append(f.fresh, s.exchange(family, base))
	f.known = append(f.known, s.exchange(family, base))
}

// worst returns the largest share of drops.
func (f *dhcpFigures) worst() (drops float64) {
	for _, l := range slices.Concat(f.fresh, f.known) {
		drops = max(drops, l.drops)
	}
	return drops
}

func measureDHCP(b *testing.B, family string, ingot, kea *dhcpServer) {
	var ours, theirs, saving dhcpFigures
	for range rounds {
		ours.measure(ingot, family)
		theirs.measure(kea, family)
	}
	var syncs []time.Duration
	for saved := ingot.saveDocuments(); !saved(); {
		syncs = append(syncs, ingot.link.syncing(func() { saving.measure(ingot, family) }))
	}
	printDHCP(b, os.Stderr, family, &ours, &saving, &theirs)
	fmt.Fprintf(os.Stderr, "p99 of two plain writes, each with fdatasync, while documents are saved: %s\n", short(median(syncs)))
}

func (l load) firstDelay() time.Duration  { return l.first }
func (l load) secondDelay() time.Duration { return l.second }
func (l load) longer() time.Duration      { return max(l.first, l.second) }
func (l load) typical() time.Duration     { return l.middle }

func middle(of []load, what func(load) time.Duration) time.Duration {
	all := make([]time.Duration, len(of))
	for i, l := range of {
		all[i] = what(l)
	}
	return median(all)
}

// ratio is the median, over the rounds, of a figure divided by that of the other server in the same round: what
// disturbs one disturbs the other.
func ratio(of, to []load, what func(load) time.Duration) float64 {
	all := make([]float64, len(of))
	for i := range of {
		all[i] = float64(what(of[i])) / float64(max(1, what(to[i])))
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// printDHCP prints all figures, and those of Ingot against their goals.
func printDHCP(b *testing.B, to io.Writer, family string, ours, saving, theirs *dhcpFigures) {
	out := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintf(out, "\nDHCPv%s, %d/s\tclients\tCPU per lease\tp50 of 1st answer\tp99 of 1st\tp99 of 2nd\tdrops\n", family, goalRate)
	for _, f := range []struct {
		name string
		of   *dhcpFigures
	}{{"Ingot", ours}, {"Ingot, while documents are saved", saving}, {"Kea", theirs}} {
		for _, c := range []struct {
			name string
			of   []load
		}{{"new", f.of.fresh}, {"known", f.of.known}} {
			fmt.Fprintf(out, "%s\t%s\t%s\t%s\t%s\t%s\t%.1f %%\n", f.name, c.name, short(middle(c.of, load.perLease)), short(middle(c.of, load.typical)),
				short(middle(c.of, load.firstDelay)), short(middle(c.of, load.secondDelay)), 100*f.of.worst())
		}
	}
	fmt.Fprint(out, "Ingot\t\tgoal\n")
	row := func(what, got, goal string, isMet bool) {
		fmt.Fprintf(out, "%s\t%s\t≤ %s\t%s\n", what, got, goal, map[bool]string{false: "MISSED"}[isMet])
	}
	delay := func(what, unit string, got, goal time.Duration) {
		row(what, short(got), short(goal), got <= goal)
		b.ReportMetric(float64(got)/float64(time.Millisecond), unit)
	}
	delay("p99 of new clients", "ms-new", middle(saving.fresh, load.longer), goalProbed)
	delay("p99 of known clients", "ms-known", middle(saving.known, load.longer), goalKnown)
	row("drops", fmt.Sprintf("%.3f", saving.worst()), fmt.Sprint(maxDrops), saving.worst() <= maxDrops)
	for _, c := range []struct {
		name         string
		ours, theirs []load
	}{{"new", ours.fresh, theirs.fresh}, {"known", ours.known, theirs.known}} {
		cpu := ratio(c.ours, c.theirs, load.perLease)
		row("CPU per lease of "+c.name+" clients, to Kea's", fmt.Sprintf("%.2f", cpu), fmt.Sprint(goalCPU), cpu <= goalCPU)
		b.ReportMetric(cpu, "CPU/Kea-"+c.name)
	}
	if err := out.Flush(); err != nil {
		b.Error(err)
	}
}
