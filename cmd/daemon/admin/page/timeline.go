package page

import (
	"fmt"
	"html"
	"html/template"
	"strings"
	"time"

	"ingot/model"
	"ingot/reconcile/report"
)

type boot struct {
	Next    string // the next stage, empty at the end
	Hint    string // where to look
	Purpose model.TicketPurpose
	Picture template.HTML
}

// bootOf returns the newest boot of a server, nil if there was none.
func (p *page) bootOf(server *report.Document) *boot {
	st, _ := server.Status.(report.ServerStatus)
	if len(st.BootTimeline) == 0 {
		return nil
	}
	b := &boot{Hint: server.BootHint()}
	if rec, _ := server.Decided.(*model.ServerRecord); rec != nil && rec.Boot.Ticket != nil {
		b.Purpose = rec.Boot.Ticket.Purpose
		trace, last := model.BootTrace{Ticket: rec.Boot.Ticket}, st.BootTimeline[len(st.BootTimeline)-1]
		if rec.Boot.Ticket.Open() && last.Stage != trace.Outcome() {
			b.Next = trace.Upcoming(last.Stage)
		}
	}
	b.Picture = timeline(st.BootTimeline, b.Next, p.Clock())
	return b
}

// Sizes of a timeline in pixels. It fits on a phone.
const (
	timelineWidth = 330
	stepHeight    = 46
	axisX         = 78
	barX          = 190
	barWidth      = timelineWidth - barX - 6
)

// timeline draws the stages of a boot from top to bottom, each with its time and with the duration since
// the previous one, and the next stage if the boot has not reached its end.
func timeline(steps []model.BootStep, next string, now time.Time) template.HTML {
	var b strings.Builder
	longest := time.Second
	for i := 1; i < len(steps); i++ {
		longest = max(longest, steps[i].At.Sub(steps[i-1].At))
	}
	last := steps[len(steps)-1]
	if next != "" {
		longest = max(longest, now.Sub(last.At))
	}
	rows := len(steps)
	if next != "" {
		rows++
	}
	y := 16
	fmt.Fprintf(&b, `<line class="axis" x1="%[1]d" y1="%[2]d" x2="%[1]d" y2="%[3]d"/>`+"\n", axisX, y, y+(len(steps)-1)*stepHeight)
	words := make([]string, 0, rows)
	for i, s := range steps {
		if i > 0 {
			took := s.At.Sub(steps[i-1].At)
			between(&b, y-stepHeight/2, took, longest, "bar")
			words = append(words, fmt.Sprintf("%s after %s", s.Stage, lasting(took)))
		} else {
			words = append(words, fmt.Sprintf("%s at %s", s.Stage, s.At.UTC().Format(time.TimeOnly)))
		}
		fmt.Fprintf(&b, `<circle class="seen" cx="%d" cy="%d" r="6"/><text class="time" x="%d" y="%d" text-anchor="end">%s</text><text class="stage" x="%d" y="%d">%s</text>`+"\n",
			axisX, y, axisX-14, y+4, s.At.UTC().Format(time.TimeOnly), axisX+14, y+5, html.EscapeString(string(s.Stage)))
		y += stepHeight
	}
	if next != "" {
		waited := now.Sub(last.At)
		fmt.Fprintf(&b, `<line class="axis hangs" x1="%[1]d" y1="%[2]d" x2="%[1]d" y2="%[3]d"/>`, axisX, y-stepHeight+6, y-6)
		between(&b, y-stepHeight/2, waited, longest, "bar hangs")
		fmt.Fprintf(&b, `<circle class="hangs" cx="%d" cy="%d" r="6"/><text class="stage hangs" x="%d" y="%d">%s</text>`+"\n",
			axisX, y, axisX+14, y+5, html.EscapeString("waiting for: "+next))
		words = append(words, fmt.Sprintf("waiting for %s since %s", next, lasting(waited)))
	}
	summary := strings.Join(words, ", ")
	svg := fmt.Sprintf(`<svg class="timeline" width="%[1]d" height="%[2]d" viewBox="0 0 %[1]d %[2]d" role="img" aria-label="%[3]s">`+"\n%[4]s</svg>",
		timelineWidth, 32+(rows-1)*stepHeight, html.EscapeString(summary), b.String())
	return template.HTML(svg) // all texts are escaped above
}

func between(b *strings.Builder, y int, took, longest time.Duration, class string) {
	width := max(2, int(float64(barWidth)*float64(max(took, 0))/float64(longest)))
	fmt.Fprintf(b, `<text class="took" x="%d" y="%d">+%s</text><rect class="%s" x="%d" y="%d" width="%d" height="6" rx="3"/>`+"\n",
		axisX+14, y+4, html.EscapeString(lasting(took)), class, barX, y-3, width)
}
