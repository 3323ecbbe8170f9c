package model

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Nearest returns the known name that somebody who wrote name most likely meant,
// or "" when none is near.
func Nearest(name string, known []string) string {
	const tooLong = 64 // no known name is as long, and distance is quadratic
	if len(name) > tooLong {
		return ""
	}
	best, bestDistance := "", max(1, min(3, len(name)/3))+1
	for _, k := range known {
		if strings.EqualFold(k, name) {
			return k
		}
		if len(name) >= 4 && strings.HasPrefix(k, name) {
			best, bestDistance = k, 0
		}
		if max(len(k)-len(name), len(name)-len(k)) >= bestDistance {
			continue // so many letters at least are to be added or dropped
		}
		if d := editDistance(name, k); d < bestDistance {
			best, bestDistance = k, d
		}
	}
	return best
}

// editDistance counts the letters to insert, drop, replace or swap with their
// neighbour to turn a into b.
func editDistance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(row[j-1]+1, last[j]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}

// guess is the end of a message about an unknown name: the nearest known one, or
// all that are known.
func guess(name string, known []string) string {
	if near := Nearest(name, known); near != "" {
		return "did you mean " + strconv.Quote(near) + "?"
	}
	if len(known) == 0 {
		return "no field is known here"
	}
	sorted := slices.Sorted(slices.Values(known))
	return "known here: " + strings.Join(sorted, ", ")
}

// oneOf writes alternatives as a sentence does: a, b or c.
func oneOf(names []string) string { return listed(names, "or") }

func listed(names []string, before string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " " + before + " " + names[last]
}

// show quotes text from a manifest for a message, shortened.
func show(s string) string { return strconv.Quote(shorten(s)) }

// shorten cuts text that would swamp a message.
func shorten(s string) string {
	const limit = 48
	if len(s) <= limit {
		return s
	}
	cut := limit
	for cut > limit-utf8.UTFMax && !utf8.RuneStart(s[cut]) { // text that is no UTF-8 may have no such byte
		cut--
	}
	return s[:cut] + "…"
}
