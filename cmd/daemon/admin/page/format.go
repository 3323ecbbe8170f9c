package page

import (
	"fmt"
	"net/url"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"ingot/model"
	"ingot/model/text"
)

// stamp is a time as people read it.
type stamp struct {
	At  string // in UTC; empty for none
	Age string // how long ago that is, or how far away
}

func (v *view) stamp(at time.Time) stamp {
	if at.IsZero() {
		return stamp{}
	}
	return stamp{text.Time(at), lasting(v.now.Sub(at))}
}

// lasting is a duration in its two largest units at most.
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

// size is an amount of bytes.
func size[N int64 | uint64](n N) string {
	const units = "KMGTPE"
	if n < 1<<10 {
		return fmt.Sprintf("%d B", n)
	}
	f, unit := float64(n)/(1<<10), 0
	for f >= 1000 && unit < len(units)-1 {
		f, unit = f/(1<<10), unit+1
	}
	return fmt.Sprintf("%.1f %ciB", f, units[unit])
}

// quantity is an amount of bytes that is written as Kubernetes does, such as 937692504Ki; any
// other text stays as it is.
func quantity(text string) string {
	q, err := resource.ParseQuantity(text)
	if err != nil {
		return text
	}
	return size(q.Value())
}

// shortHash is as much of a commit's hash as people use.
func shortHash(hash string) string { return hash[:min(len(hash), 10)] }

// stateClass is the class of a state in the stylesheet, such as s-reserved.
func stateClass(state string) string {
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return -1
	}, state)
	return "s-" + strings.ToLower(name)
}

// link is a text that leads somewhere, or merely a text if it has no address.
type link struct{ Text, URL string }

// Path is the address of the page of an object, "" for a kind that has none.
func Path(kind, name string) string {
	folder := map[string]string{
		"server": "/servers/", "claim": "/claims/", "boot-configuration": "/boot-configurations/", "bmc": "/bmcs/", "endpoint": "/endpoints/",
	}[kind]
	if folder == "" || name == "" {
		return ""
	}
	return folder + escaped(name)
}

// escaped is a name, with its namespace if it has one, as a part of a path.
func escaped(name string) string {
	elements := strings.Split(name, "/")
	for i, e := range elements {
		elements[i] = url.PathEscape(e)
	}
	return strings.Join(elements, "/")
}

// to is the link to the page of an object.
func to(kind, name string) link { return link{name, Path(kind, name)} }

// toClaim is the link to the page of a claim, or of a ServerBootConfiguration, by the name
// that records have for it.
func toClaim(name string) link {
	ns, n := model.SplitName(model.ClaimName(name))
	l := link{Text: name}
	switch {
	case name == "":
	case model.ClaimName(name).IsBootConfiguration():
		l.URL = Path("boot-configuration", ns+"/"+n)
	default:
		l.URL = Path("claim", ns+"/"+n)
	}
	return l
}
