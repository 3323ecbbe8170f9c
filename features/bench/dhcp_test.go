package bench

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"
	"testing"
	"text/tabwriter"
	"time"

	"ingot/features/internal/rig"
)

// The goals. Ratios compare with Kea in the same run. Kea's leases are not on disk when it answers, and Ingot's are. So
// goalSynced compares with Kea on PostgreSQL, whose leases are.
const (
	goalRate   = 500 // leases per second at least, with goalDelay as the 99th percentile of the second answer
	goalDelay  = 100 * time.Millisecond
	goalCPU    = 1.5 // of a lease
	goalSynced = 1.5 // 99th percentile, at syncedRate
)

const (
	// maxDrops is the share of requests that may stay without an answer.
	maxDrops = 0.01
	// answerWait is how long the last answers are waited for.
	answerWait = 500 * time.Millisecond
	// stepFor is how long each rate is tried, roundFor how long CPU time and delays
	// are measured in each of the rounds.
	stepFor  = 2 * time.Second
	roundFor = 2 * time.Second
	rounds   = 3
	// syncedRate is a rate that Kea on PostgreSQL keeps up with.
	syncedRate = 150
)

var ladder = []int{500, 1000, 2000, 4000, 8000, 16000}

// BenchmarkDHCP leases addresses to new and to known clients by exchanges of four
// packets, once, however long the benchmark is to take, and prints a table.
func BenchmarkDHCP(b *testing.B) {
	need(b, rig.ToolPerfdhcp, rig.ToolKea4, rig.ToolKea6, rig.ToolDnsmasq, rig.ToolRedis)
	program := build(b)
	b.Run("IPv4", func(b *testing.B) {
		measureDHCP(b, "4", ingotDHCP(b, program), keaDHCP(b, "4"), ingotRedisDHCP(b, program), dnsmasqDHCP(b))
		if synced := keaSyncedDHCP(b); synced != nil {
			measureSynced(b, ingotDHCP(b, program), synced)
		}
	})
	b.Run("IPv6", func(b *testing.B) {
		measureDHCP(b, "6", ingotDHCP(b, program), keaDHCP(b, "6"))
	})
}

// dhcpFigures is what one server was measured at.
type dhcpFigures struct {
	name    string
	highest load   // the highest rate that it kept up with
	low     []load // at goalRate
	half    []load // at half of Kea's highest rate, or of its own where that is lower
}

func measureDHCP(b *testing.B, family string, servers ...*dhcpServer) {
	all := make([]dhcpFigures, len(servers))
	for i, s := range servers {
		all[i] = dhcpFigures{name: s.name, highest: s.climb(family)}
	}
	half := max(all[1].highest.rate, ladder[0]) / 2
	for range rounds {
		for i, s := range servers {
			f := &all[i]
			f.low = append(f.low, s.exchange(family, goalRate, roundFor))
			f.half = append(f.half, s.exchange(family, min(half, max(f.highest.rate, ladder[0])/2), roundFor))
		}
	}
	printDHCP(b, os.Stderr, "DHCPv"+family, all)
	ingot, kea := all[0], all[1]
	b.ReportMetric(ingot.highest.completed, "exchanges/s")
	b.ReportMetric(ingot.highest.completed/kea.highest.completed, "rate/Kea")
	b.ReportMetric(ratio(ingot.half, kea.half, load.perLease), "CPU/Kea")
	b.ReportMetric(ratio(ingot.half, kea.half, load.lastDelay), "p99/Kea")
}

func measureSynced(b *testing.B, ingot, other *dhcpServer) {
	var ours, theirs []load
	for range rounds {
		ours, theirs = append(ours, ingot.exchange("4", syncedRate, roundFor)), append(theirs, other.exchange("4", syncedRate, roundFor))
	}
	got := ratio(ours, theirs, load.lastDelay)
	fmt.Fprintf(os.Stderr, "p99 of the 2nd answer at %d/s: %s %s, %s %s, ratio %.2f, goal ≤ %.2g\n", syncedRate,
		ingot.name, short(middle(ours, load.lastDelay)), other.name, short(middle(theirs, load.lastDelay)), got, goalSynced)
	b.ReportMetric(got, "p99/synced-Kea")
}

// climb returns the highest load of the ladder that the server keeps up with. A
// rate that it does not is tried twice: others may have disturbed it.
func (s *dhcpServer) climb(family string) (best load) {
	for _, rate := range ladder {
		l := s.exchange(family, rate, stepFor)
		if !l.sustained() {
			l = s.exchange(family, rate, stepFor)
		}
		if !l.sustained() {
			break
		}
		best = l
	}
	return best
}

func (l load) firstDelay() time.Duration { return l.first }
func (l load) lastDelay() time.Duration  { return l.second }

func middle(of []load, what func(load) time.Duration) time.Duration {
	all := make([]time.Duration, len(of))
	for i, l := range of {
		all[i] = what(l)
	}
	return median(all)
}

// ratio is the median, over the rounds, of a figure divided by that of the other
// server in the same round: what disturbs one disturbs the other.
func ratio(of, to []load, what func(load) time.Duration) float64 {
	all := make([]float64, len(of))
	for i := range of {
		all[i] = float64(what(of[i])) / float64(max(1, what(to[i])))
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// printDHCP prints all figures, and those of the first server against their goals.
func printDHCP(b *testing.B, to io.Writer, title string, all []dhcpFigures) {
	out := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintf(out, "\n%s\thighest rate, /s\tCPU per lease\tat\tCPU per lease\tp99 of 1st\tp99 of 2nd answer\tdrops\tat\n", title)
	for _, f := range all {
		drops := slices.MaxFunc(f.half, func(a, b load) int { return cmp.Compare(a.drops, b.drops) }).drops
		fmt.Fprintf(out, "%s\t%.0f\t%s\t%d/s\t%s\t%s\t%s\t%.1f %%\t%d/s\n", f.name, f.highest.completed,
			short(middle(f.low, load.perLease)), f.low[0].rate, short(middle(f.half, load.perLease)),
			short(middle(f.half, load.firstDelay)), short(middle(f.half, load.lastDelay)), 100*drops, f.half[0].rate)
	}
	a, k := all[0], all[1]
	fmt.Fprintf(out, "%s, ratios to %s\t\tgoal\n", a.name, k.name)
	row := func(what, got, goal string, isMet bool) {
		fmt.Fprintf(out, "%s\t%s\t%s\t%s\n", what, got, goal, map[bool]string{false: "MISSED"}[isMet])
	}
	row("highest rate, /s", fmt.Sprintf("%.0f", a.highest.completed), fmt.Sprint("≥ ", goalRate), a.highest.rate >= goalRate)
	delay := middle(a.low, load.lastDelay)
	row(fmt.Sprintf("p99 of 2nd answer at %d/s", goalRate), short(delay), fmt.Sprint("≤ ", short(goalDelay)), delay <= goalDelay)
	for _, at := range [][2][]load{{a.low, k.low}, {a.half, k.half}} {
		cpu := ratio(at[0], at[1], load.perLease)
		row(fmt.Sprintf("CPU per lease at %d/s", at[1][0].rate), fmt.Sprintf("%.2f", cpu), fmt.Sprint("≤ ", goalCPU), cpu <= goalCPU)
	}
	if err := out.Flush(); err != nil {
		b.Error(err)
	}
}
