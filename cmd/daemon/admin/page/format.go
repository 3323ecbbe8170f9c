package page

import (
	"fmt"
	"html/template"
	"net/url"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"ingot/model"
	"ingot/model/text"
	"ingot/reconcile/report"
)

// titleOf is the title of a page, with the number of objects that need action.
func titleOf(act int, title string) string {
	if title = strings.TrimPrefix(title+" · Ingot", " · "); act > 0 {
		title = fmt.Sprintf("(%d) %s", act, title)
	}
	return title
}

// age is the time since t, with t itself, and empty for no time.
func age(t, now time.Time) template.HTML {
	if t.IsZero() {
		return ""
	}
	return template.HTML(fmt.Sprintf(`<time datetime="%[1]s" title="%[1]s">%[2]s</time>`, text.Time(t), lasting(now.Sub(t))))
}

func lasting(d time.Duration) string {
	if d < 0 {
		return "in " + lasting(-d)
	}
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", d/time.Second)
	case d < 10*time.Minute && d%time.Minute >= time.Second:
		return fmt.Sprintf("%d min %d s", d/time.Minute, d%time.Minute/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%d min", d/time.Minute)
	case d < 24*time.Hour:
		return fmt.Sprintf("%d h %d min", d/time.Hour, d%time.Hour/time.Minute)
	}
	return fmt.Sprintf("%d d %d h", d/(24*time.Hour), d%(24*time.Hour)/time.Hour)
}

// quantity is a Kubernetes quantity of bytes, such as 937692504Ki. Other texts stay unchanged.
func quantity(s string) string {
	q, err := resource.ParseQuantity(s)
	if err != nil {
		return s
	}
	return text.Bytes(uint64(q.Value()))
}

// stateClass is the class of a state in the stylesheet, such as s-reserved.
func stateClass(state any) string { return "s-" + strings.ToLower(fmt.Sprint(state)) }

// approval is the command that makes the commit with a line that approves.
func approval(line string) string {
	return fmt.Sprintf("git commit --allow-empty -m %q -m %q", "Approve", line)
}

// place is the position of a problem, FILE:LINE:COLUMN.
func place(p model.Problem) string {
	switch {
	case p.Line == 0:
		return p.File
	case p.Column == 0:
		return fmt.Sprintf("%s:%d", p.File, p.Line)
	}
	return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column)
}

type link struct{ Text, URL string }

// paths are where the objects of a folder have their pages.
var paths = map[report.Folder]string{
	report.Servers: "/servers/", report.Claims: "/claims/", report.BootConfigurations: "/boot-configurations/", report.BMCs: "/bmcs/", report.Endpoints: "/endpoints/",
}

// to is the link to an object, only its name if its folder has no pages.
func to(folder report.Folder, name any) link {
	l := link{Text: fmt.Sprint(name)}
	if path := paths[folder]; path != "" && l.Text != "" {
		l.URL = path + escaped(l.Text)
	}
	return l
}

func toDocument(d *report.Document) link { return to(d.Folder(), d.Name()) }

// toClaim is the link to a claim, or to a ServerBootConfiguration, by the name in records.
func toClaim(name model.ClaimName) link {
	folder, path, _ := strings.Cut(strings.TrimSuffix(report.ClaimPath(name), ".yaml"), "/")
	if name == "" {
		return link{}
	}
	return link{string(name), to(report.Folder(folder), path).URL}
}

func escaped(name string) string {
	elements := strings.Split(name, "/")
	for i, e := range elements {
		elements[i] = url.PathEscape(e)
	}
	return strings.Join(elements, "/")
}
