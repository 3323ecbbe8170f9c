package bench

import (
	"fmt"
	"io"
	"slices"
	"testing"
	"text/tabwriter"
	"time"
)

// table is what one case measured.
type table struct {
	testing.TB
	title string
	rows  []row
}

// none is the goal or yardstick of a figure that has none.
const none = -1

// row is one figure. One above its goal is marked, and fails nothing: the machine
// may be busy.
type row struct {
	what                 string
	got, goal, yardstick float64
	format               func(float64) string
}

func (t *table) duration(what string, got, goal, yardstick time.Duration) {
	t.rows = append(t.rows, row{what, float64(got), float64(goal), float64(yardstick), func(n float64) string {
		return short(time.Duration(n))
	}})
}

func (t *table) number(what string, got, goal, yardstick float64) {
	t.rows = append(t.rows, row{what, got, goal, yardstick, func(n float64) string { return fmt.Sprintf("%.4g", n) }})
}

func (t *table) memory(m memory, goal float64) {
	t.number("resident, MiB", mebibytes(m.now), goal, none)
	t.number("  of it pages of files", mebibytes(m.files), none, none)
	t.number("  at its highest", mebibytes(m.peak), none, none)
}

func (t *table) print(to io.Writer) {
	out := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintf(out, "\n%s\tfigure\tgoal\tyardstick\tratio\t\n", t.title)
	for _, r := range t.rows {
		fmt.Fprintf(out, "%s\t%s\t%s\t%s\t%s\t%s\n", r.what, r.format(r.got), r.limit(), r.standard(), r.ratio(), r.verdict())
	}
	if err := out.Flush(); err != nil {
		t.Error(err)
	}
}

func (r row) limit() string {
	if r.goal < 0 {
		return "-"
	}
	return "≤ " + r.format(r.goal)
}

func (r row) standard() string {
	if r.yardstick < 0 {
		return "-"
	}
	return r.format(r.yardstick)
}

func (r row) ratio() string {
	if r.yardstick <= 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", r.got/r.yardstick)
}

func (r row) verdict() string {
	if r.goal >= 0 && r.got > r.goal {
		return "MISSED"
	}
	return ""
}

func short(d time.Duration) string {
	for unit := time.Duration(1); ; unit *= 10 {
		if d < 1000*unit {
			return d.Round(unit).String()
		}
	}
}

func median(of []time.Duration) time.Duration { return slices.Sorted(slices.Values(of))[len(of)/2] }

func longest(of []time.Duration) time.Duration { return slices.Max(of) }
