package sim

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// query is what a request asks for beyond the resource (DSP0266 §7.3).
type query struct {
	only        bool
	skip, top   int // top is -1 for all
	levels      int // 0 = no $expand
	links       bool
	subordinate bool
}

// queryProblem is why a query cannot be answered.
type queryProblem struct {
	status  int
	message *message
}

// parseQuery reads the query parameters. Unknown ones that begin with $ are
// errors, others are ignored.
func parseQuery(raw string, can rootForm) (query, *queryProblem) {
	q := query{top: -1}
	if raw == "" {
		return q, nil
	}
	values, err := url.ParseQuery(raw)
	if err != nil {
		return q, &queryProblem{http.StatusBadRequest, newMessage(msgQueryUnsupported)}
	}
	for name := range values {
		if p := q.set(name, values.Get(name), can); p != nil {
			return q, p
		}
	}
	return q, nil
}

func (q *query) set(name, value string, can rootForm) *queryProblem {
	var p *queryProblem
	switch name {
	case "only":
		if !can.only {
			return nil // as a parameter that is not known
		}
		if value != "" {
			return &queryProblem{http.StatusBadRequest, newMessage(msgQueryValue, value, name)}
		}
		q.only = true
	case "$skip":
		q.skip, p = number(name, value)
	case "$top":
		q.top, p = number(name, value)
	case "$expand":
		return q.setExpand(value, can.expand)
	default:
		if strings.HasPrefix(name, "$") {
			return &queryProblem{http.StatusNotImplemented, newMessage(msgQueryUnsupported)}
		}
	}
	return p
}

func number(name, value string) (int, *queryProblem) {
	n, err := strconv.Atoi(value)
	if err != nil {
		return 0, &queryProblem{http.StatusBadRequest, newMessage(msgQueryValue, value, name)}
	}
	if n < 0 {
		return 0, &queryProblem{http.StatusBadRequest, newMessage(msgQueryRange, value, name, "0 and more")}
	}
	return n, nil
}

// setExpand reads ".", "~" or "*", with "($levels=N)" or without.
func (q *query) setExpand(value string, can expansion) *queryProblem {
	bad := &queryProblem{http.StatusBadRequest, newMessage(msgQueryValue, value, "$expand")}
	switch {
	case can.levels == 0:
		return &queryProblem{http.StatusNotImplemented, newMessage(msgQueryUnsupported)}
	case value == "", value[0] != '.' && !can.all:
		return bad
	}
	switch value[0] {
	case '.':
		q.subordinate = true
	case '~':
		q.links = true
	case '*':
		q.subordinate, q.links = true, true
	default:
		return bad
	}
	q.levels = 1
	if value[1:] == "" {
		return nil
	}
	levels, opened := strings.CutPrefix(value[1:], "($levels=")
	levels, closed := strings.CutSuffix(levels, ")")
	n, err := strconv.Atoi(levels)
	switch {
	case !opened || !closed || err != nil:
		return bad
	case n < 1 || n > can.levels:
		return &queryProblem{http.StatusBadRequest, newMessage(msgQueryRange, levels, "$levels", "1 to "+strconv.Itoa(can.levels))}
	}
	q.levels = n
	return nil
}

// page cuts the members of a collection down to those that were asked for.
func (q query) page(v view, o object) {
	members, ok := o["Members"].([]object)
	if !ok || q.skip == 0 && q.top < 0 {
		return
	}
	end := len(members)
	if q.top >= 0 {
		end = min(end, q.skip+q.top)
	}
	start := min(q.skip, len(members))
	o["Members"] = members[start:max(start, end)]
	if end < len(members) {
		o["Members@odata.nextLink"] = v.path + "?$skip=" + strconv.Itoa(end)
		if q.top > 0 {
			o["Members@odata.nextLink"] = v.path + "?$skip=" + strconv.Itoa(end) + "&$top=" + strconv.Itoa(q.top)
		}
	}
}

// only returns the one member of a collection that has exactly one, in its place.
func (b service) only(v view, o object) (view, object) {
	members, ok := o["Members"].([]object)
	if !ok || len(members) != 1 {
		return v, o
	}
	member, ok := b.resolve(linkOf(members[0]))
	if !ok {
		return v, o
	}
	return member, member.render()
}

// expand puts resources in the place of the links to them.
func (b service) expand(o object, q query, levels int) {
	for key, value := range o {
		if key == "Links" && q.links {
			if links, ok := value.(object); ok {
				b.expandValues(links, q, levels)
			}
		}
	}
	if q.subordinate {
		b.expandValues(o, q, levels)
	}
}

func (b service) expandValues(o object, q query, levels int) {
	for key, value := range o {
		switch value := value.(type) {
		case object:
			o[key] = b.expanded(value, q, levels)
		case []object:
			for i := range value {
				value[i] = b.expanded(value[i], q, levels)
			}
		}
	}
}

func (b service) expanded(link object, q query, levels int) object {
	path := linkOf(link)
	if path == "" {
		return link
	}
	v, ok := b.resolve(path)
	if !ok {
		return link
	}
	o := v.render()
	if levels > 1 {
		b.expand(o, q, levels-1)
	}
	return o
}

// linkOf returns the path that o is a link to, "" when it is none.
func linkOf(o object) string {
	if len(o) != 1 {
		return ""
	}
	path, _ := o["@odata.id"].(string)
	return path
}
