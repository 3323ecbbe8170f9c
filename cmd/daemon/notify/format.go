package notify

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode"

	"ingot/model/text"
	"ingot/reconcile/report"
	"ingot/reconcile/report/notice"
)

// maxListed is how many notices of a message are listed. The message says how many more
// there are.
const maxListed = 50

// render returns a message as the webhook takes it, and its content type.
func (t *target) render(m notice.Message, now time.Time) (kind string, body []byte, err error) {
	if t.Format == FormatSlack {
		body, err = json.Marshal(map[string]string{"text": t.opts.slackText(m)})
		return "application/json", body, err
	}
	body, err = json.Marshal(t.opts.cloudEvent(m, now))
	return "application/cloudevents+json", body, err
}

// cloudEvent is a message in the structured mode of CloudEvents 1.0.
type cloudEvent struct {
	SpecVersion     string    `json:"specversion"`
	ID              string    `json:"id"`
	Source          string    `json:"source"`
	Type            string    `json:"type"`
	Subject         string    `json:"subject,omitempty"`
	Time            time.Time `json:"time"`
	DataContentType string    `json:"datacontenttype"`
	Data            eventData `json:"data"`
}

type eventData struct {
	Title   string        `json:"title,omitempty"`
	Kind    string        `json:"kind"`
	State   string        `json:"state"` // begun or ended
	Count   int           `json:"count"`
	Notices []eventNotice `json:"notices"`        // at most maxListed
	More    int           `json:"more,omitempty"` // than are listed
}

type eventNotice struct {
	report.Notice
	Link string `json:"link,omitempty"`
}

// The states of what a message is of.
const (
	stateBegun = "begun"
	stateEnded = "ended"
)

func (o *Options) cloudEvent(m notice.Message, now time.Time) cloudEvent {
	e := cloudEvent{
		SpecVersion: "1.0", ID: m.ID, Source: o.Source, Type: "ingot." + string(m.Kind), Time: now.UTC().Truncate(time.Second),
		DataContentType: "application/json",
		Data:            eventData{Title: o.Title, Kind: string(m.Kind), State: stateBegun, Count: len(m.Notices), Notices: []eventNotice{}},
	}
	if m.Ended {
		e.Type, e.Data.State = e.Type+".ended", stateEnded
	}
	if len(m.Notices) == 1 {
		e.Subject = m.Notices[0].Object + "/" + m.Notices[0].Name
		if e.Time = m.Notices[0].Since; m.Ended {
			e.Time = now.UTC().Truncate(time.Second)
		}
	}
	for _, n := range m.Notices[:min(len(m.Notices), maxListed)] {
		e.Data.Notices = append(e.Data.Notices, eventNotice{n, o.link(n)})
	}
	e.Data.More = len(m.Notices) - len(e.Data.Notices)
	return e
}

func (o *Options) link(n report.Notice) string {
	if o.Link == nil {
		return ""
	}
	return o.Link(n.Object, n.Name)
}

// headlines are what a kind of notice says of one object, and of several.
var headlines = map[report.NoticeKind]struct{ one, several, ended string }{
	report.NoticeServerError:   {"is in Error", "servers are in Error", "is in Error no more"},
	report.NoticeCleanupFailed: {"was not wiped", "servers were not wiped", "is in Error no more"},
	report.NoticeGuardHeld:     {"waits for an approval", "lists wait for an approval", "waits for no approval any more"},
	report.NoticeTicketRefused: {"was to boot what others asked for", "objects were to boot what others asked for", "is asked for by nobody else any more"},
	report.NoticeBMCLost:       {"is lost", "BMCs are lost", "is back"},
	report.NoticeClaimWaiting:  {"waits", "claims wait", "waits no more"},
	report.NoticeClaimBooted:   {"is Booted", "claims are Booted", ""},
}

// objectNames are how objects are called in a sentence.
var objectNames = map[string]string{
	"server": "Server", "claim": "Claim", "boot-configuration": "Boot configuration", "bmc": "BMC", "guard": "Guard:",
}

const (
	// maxNames is how many objects a text names, maxTold how long what it tells of one is.
	maxNames = 10
	maxTold  = 1500
)

// slackText is a message as text, in the little markup that Slack has.
func (o *Options) slackText(m notice.Message) string {
	head := ""
	if o.Title != "" {
		head = "*" + plain(o.Title) + "*: "
	}
	says := headlines[m.Kind]
	if len(m.Notices) == 1 {
		return head + o.slackNotice(m.Notices[0], m.Ended)
	}
	var names []string
	for _, n := range m.Notices[:min(len(m.Notices), maxNames)] {
		names = append(names, linked(plain(n.Name), o.link(n)))
	}
	list := strings.Join(names, ", ")
	if more := len(m.Notices) - len(names); more > 0 {
		list += fmt.Sprintf(" and %d more", more)
	}
	if m.Ended {
		return head + fmt.Sprintf("of %d objects this ended: %s (%s)", len(m.Notices), says.several, list)
	}
	return head + fmt.Sprintf("%d %s: %s", len(m.Notices), says.several, list)
}

func (o *Options) slackNotice(n report.Notice, ended bool) string {
	says := headlines[n.Kind]
	line := objectNames[n.Object] + " " + linked(plain(n.Name), o.link(n)) + " "
	switch {
	case ended:
		return line + says.ended
	case !n.Kind.IsTrouble():
		return line + says.one + " " + plain(n.Message)
	}
	line += says.one + " since " + text.Time(n.Since) + " (" + plain(n.Reason) + ")"
	if n.Message != "" {
		line += ": " + plain(text.Clip(n.Message, maxTold))
	}
	return line
}

func linked(name, link string) string {
	if link == "" {
		return name
	}
	return "<" + link + "|" + name + ">"
}

// plain is a text from outside that no chat takes for anything else: a link, a mention or a
// line of its own. An @ is followed by a character that is not seen.
func plain(s string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "@", "@\u200b").Replace(oneLine(s))
}

// oneLine is a text without line breaks and without what cannot be printed.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsPrint(r):
			return -1
		}
		return r
	}, s)
}
