package main

import (
	"fmt"
	"strings"
	"time"

	"ingot/model"
	"ingot/reconcile/report"
)

var resultColours = map[model.CardResult]colour{
	model.CardServed: green, model.CardRefused: red, model.CardFailed: red, model.CardLimited: yellow, model.CardUnanswered: yellow,
}

// printCard prints the log of a network card, oldest first.
func printCard(c *console, card *report.Card, now time.Time) {
	if card == nil {
		return
	}
	for _, f := range [][2]string{{"network card of server", card.Server}, {"limited", card.Limited}} {
		if f[1] != "" {
			c.printf("  %s: %s\n", f[0], printable(f[1]))
		}
	}
	switch {
	case len(card.Events) == 0:
		c.printf("  no DHCP, TFTP or HTTP requests since the daemon started %s ago\n", age(card.Since, now))
		return
	}
	c.printf("  network card log since the daemon started %s ago (older entries are dropped):\n", age(card.Since, now))
	rows := make([][]cell, len(card.Events))
	for i, e := range card.Events {
		rows[i] = []cell{
			{text: "    " + eventTime(e.At, now)}, textCell(string(e.Protocol)), textCell(e.Asked),
			{text: string(e.Result), in: resultColours[e.Result]}, textCell(eventText(e)),
		}
	}
	c.printTable([]string{"    TIME", "BY", "ASKED", "RESULT", "ANSWER"}, rows)
}

// eventTime is when something was asked: with its day, if that is not today.
func eventTime(at, now time.Time) string {
	at = at.UTC()
	if at.Format(time.DateOnly) == now.UTC().Format(time.DateOnly) {
		return at.Format(time.TimeOnly + "Z")
	}
	return at.Format("2006-01-02T15:04:05Z")
}

// eventText says how a network card was answered, how long that took, from where it asked and how
// often.
func eventText(e model.CardEvent) string {
	var parts []string
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	if e.Answer != "" {
		add("%s", e.Answer)
	}
	if e.Bytes > 0 {
		add("%s in %s", bytesText(e.Bytes), time.Duration(e.Seconds*float64(time.Second)).Round(time.Millisecond))
	}
	if e.From != "" {
		add("from %s", e.From)
	}
	if e.Times > 1 {
		add("×%d until %s", e.Times, e.Last.UTC().Format(time.TimeOnly+"Z"))
	}
	return strings.Join(parts, "; ")
}

// bytesText is a number of bytes in its largest unit.
func bytesText(n int64) string {
	size, unit := float64(n), 0
	units := []string{"B", "KiB", "MiB", "GiB"}
	for size >= 1024 && unit < len(units)-1 {
		size, unit = size/1024, unit+1
	}
	if unit == 0 || size >= 10 {
		return fmt.Sprintf("%.0f %s", size, units[unit])
	}
	return fmt.Sprintf("%.1f %s", size, units[unit])
}
