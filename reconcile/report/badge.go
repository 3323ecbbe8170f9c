package report

import (
	"fmt"
	"unicode/utf8"

	"ingot/model"
)

// badges are the small pictures at the top of the page, each of which leads to what it
// counts.
var badges = []struct {
	path, alt, leads string
	draw             func(*page) (value, colour string)
}{
	{"badges/servers.svg", "servers", serverFolder, serverBadge},
	{"badges/claims.svg", "claims", claimFolder, claimBadge},
	{"badges/problems.svg", "problems", model.ReportProblems, problemBadge},
	{"badges/guard.svg", "guard", model.ReportRevision, guardBadge},
}

// The colours of a badge's value, on which white letters are readable.
const (
	badgeGood = "#15803d"
	badgeLook = "#b45309" // somebody has to act
	badgeBad  = "#b91c1c"
	badgeIdle = "#57606a"
)

func serverBadge(p *page) (value, colour string) {
	if act := needing(p.servers); act > 0 {
		colour = badgeLook
		if p.states()[model.StateError] > 0 {
			colour = badgeBad
		}
		return fmt.Sprintf("%d, %d need somebody", len(p.Servers), act), colour
	}
	return fmt.Sprint(len(p.Servers)), badgeGood
}

func claimBadge(p *page) (value, colour string) {
	value = fmt.Sprintf("%d bound of %d", p.bound(), len(p.Claims))
	switch {
	case needing(p.claims) > 0:
		return value, badgeLook
	case len(p.Claims) == 0:
		return "none", badgeIdle
	}
	return value, badgeGood
}

func problemBadge(p *page) (value, colour string) {
	switch all := p.problems(); {
	case len(all) == 0:
		return "none", badgeGood
	case model.HasErrors(all):
		return fmt.Sprint(len(all)), badgeBad
	default:
		return fmt.Sprint(len(all)), badgeLook
	}
}

func guardBadge(p *page) (value, colour string) {
	n := 0
	for _, h := range p.in.Observed.Fleet.Holds {
		n += len(h.Steps)
	}
	if n == 0 {
		return "holds nothing", badgeGood
	}
	return fmt.Sprintf("holds %d", n), badgeLook
}

// needing counts the rows of which somebody has to act.
func needing(rows []row) (n int) {
	for _, r := range rows {
		if r.urgency == needsSomebody {
			n++
		}
	}
	return n
}

// badgeSVG draws a badge.
func badgeSVG(label, value, colour string) string {
	left, right := badgeWidth(label), badgeWidth(value)
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="20" role="img" aria-labelledby="t d">
<title id="t">%s: %s</title>
<desc id="d">%s of the fleet that this branch shows the status of</desc>
<style>text{font:11px Verdana,sans-serif;fill:#fff}</style>
<rect width="%d" height="20" fill="#444d56"/><rect x="%d" width="%d" height="20" fill="%s"/>
<text x="6" y="14" textLength="%d">%s</text><text x="%d" y="14" textLength="%d">%s</text>
</svg>
`, left+right, escaped(label), escaped(value), escaped(label), left, left, right, colour,
		left-12, escaped(label), left+6, right-12, escaped(value))
}

// badgeWidth is about how wide a text is, with room around it.
func badgeWidth(text string) int { return 12 + 7*utf8.RuneCountInString(text) }
