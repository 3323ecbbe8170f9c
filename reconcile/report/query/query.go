package query

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"ingot/model"
)

// Limits of a query. What is longer is refused, for it is read for each of many rows.
const (
	DefaultLimit = 100
	MaxLimit     = 1000
	maxQuery     = 4 << 10 // bytes of all that is asked
	maxOrders    = 4
	maxPage      = 1_000_000
)

// What is asked beside fields.
const (
	paramSearch = "q"
	paramLabel  = "label"
	paramSort   = "sort"
	paramPage   = "page"
	paramLimit  = "limit"
)

// params are all of them, in the order in which people are told of them.
var params = []string{paramSearch, paramLabel, paramSort, paramPage, paramLimit}

// None is the value of a filter that takes rows which have nothing in a field: as tables
// show it.
const None = "-"

// Filter takes the rows that have one of some values in a field, or none of them. Upper and
// lower case are the same.
type Filter struct {
	Field  string
	Not    bool
	Values []string // None = nothing
}

// Order is a field to sort by.
type Order struct {
	Field string
	Down  bool // the largest first
}

// Query is what is asked of a list.
type Query struct {
	Filters []Filter // all have to take a row
	Search  string   // a part of any field or label; upper and lower case are the same
	Labels  model.LabelSelector
	Orders  []Order // the first counts most; rows that it does not tell apart are in the order of names
	Page    int     // from 1
	Limit   int     // rows of a page
}

// Parse reads a query of a list: FIELD=VALUE and FIELD!=VALUE, of which those of one field
// together are its values, q, label, sort (FIELD or -FIELD, several with commas), page and
// limit. What has no value asks for nothing, as forms send it.
func (l List[R]) Parse(values url.Values) (Query, error) {
	q := Query{Page: 1, Limit: DefaultLimit}
	if n := sizeOf(values); n > maxQuery {
		return q, fmt.Errorf("the query has %d bytes, and at most %d are read: ask for less", n, maxQuery)
	}
	for _, key := range sortedKeys(values) {
		given := slices.DeleteFunc(slices.Clone(values[key]), func(v string) bool { return v == "" })
		if err := l.parse(&q, key, given); err != nil {
			return Query{Page: 1, Limit: DefaultLimit}, err
		}
	}
	return q, nil
}

// ParseText reads a query as an address has it. Nothing that cannot be read is passed over: more
// rows would be shown than were asked for.
func (l List[R]) ParseText(text string) (Query, error) {
	values, err := url.ParseQuery(text)
	if err != nil {
		return Query{Page: 1, Limit: DefaultLimit}, fmt.Errorf("the query cannot be read: %w; write it as state=Error&sort=-since", err)
	}
	return l.Parse(values)
}

// parse takes in one parameter.
func (l List[R]) parse(q *Query, key string, given []string) (err error) {
	if !slices.Contains(params, key) {
		return l.parseFilter(q, key, given)
	}
	if len(given) == 0 {
		return nil
	}
	if key != paramLabel && key != paramSort && len(given) > 1 {
		return fmt.Errorf("%s is given %d times: give it once", key, len(given))
	}
	switch key {
	case paramSearch:
		q.Search = given[0]
	case paramLabel:
		q.Labels, err = model.ParseLabelSelector(strings.Join(given, ","))
	case paramSort:
		err = l.parseSort(q, strings.Join(given, ","))
	case paramPage:
		q.Page, err = number(key, given[0], maxPage)
	case paramLimit:
		q.Limit, err = number(key, given[0], MaxLimit)
	}
	return err
}

func (l List[R]) parseFilter(q *Query, key string, given []string) error {
	name, not := strings.CutSuffix(key, "!")
	field := l.field(name)
	if field == nil {
		return l.unknown(name)
	}
	for i, asked := range given {
		if field.read == nil || asked == None {
			continue
		}
		value, err := field.read(asked)
		if err != nil {
			return fmt.Errorf("%s=%q: %w", name, clip(asked), err)
		}
		given[i] = value
	}
	if len(given) > 0 {
		q.Filters = append(q.Filters, Filter{name, not, given})
	}
	return nil
}

func (l List[R]) parseSort(q *Query, text string) error {
	fields := strings.Split(text, ",")
	if len(fields) > maxOrders {
		return fmt.Errorf("sort names %d fields: at most %d count", len(fields), maxOrders)
	}
	for _, name := range fields {
		name, down := strings.CutPrefix(name, "-")
		if l.field(name) == nil {
			return fmt.Errorf("sort: %w", l.unknown(name))
		}
		q.Orders = append(q.Orders, Order{name, down})
	}
	return nil
}

// unknown says that the list has no field of a name, and which it has.
func (l List[R]) unknown(name string) error {
	fields := l.Fields()
	meant := ""
	if near := model.Nearest(name, slices.Concat(fields, params)); near != "" {
		meant = fmt.Sprintf(", did you mean %s?", near)
	}
	shown := name
	if len(shown) > 64 {
		shown = strings.ToValidUTF8(shown[:64], "") + "…"
	}
	slices.Sort(fields)
	return fmt.Errorf("%s have no field %q%s They have %s; beside these there are %s", l.name, shown, cmp.Or(meant, "."), strings.Join(fields, ", "), strings.Join(params, ", "))
}

func number(name, text string, most int) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > most {
		return 0, fmt.Errorf("%s=%q: must be a number from 1 to %d", name, clip(text), most)
	}
	return n, nil
}

// clip cuts a value that is shown in an error.
func clip(value string) string {
	if len(value) > 20 {
		return strings.ToValidUTF8(value[:20], "") + "…"
	}
	return value
}

// sizeOf is how much is asked, in bytes.
func sizeOf(values url.Values) (n int) {
	for key, all := range values {
		for _, v := range all {
			n += len(key) + len(v) + 2
		}
	}
	return n
}

func sortedKeys(values url.Values) []string {
	keys := make([]string, 0, len(values))
	for key := range values {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// Values is the query as an address has it: the inverse of Parse. What is asked by default
// is left out.
func (q Query) Values() url.Values {
	v := url.Values{}
	for _, f := range q.Filters {
		key := f.Field
		if f.Not {
			key += "!"
		}
		v[key] = slices.Clone(f.Values)
	}
	set := func(key, value string) {
		if value != "" {
			v.Set(key, value)
		}
	}
	set(paramSearch, q.Search)
	set(paramLabel, q.Labels.String())
	set(paramSort, orders(q.Orders))
	if q.Page > 1 {
		v.Set(paramPage, strconv.Itoa(q.Page))
	}
	if q.Limit != DefaultLimit && q.Limit != 0 {
		v.Set(paramLimit, strconv.Itoa(q.Limit))
	}
	return v
}

func orders(all []Order) string {
	names := make([]string, len(all))
	for i, o := range all {
		names[i] = o.Field
		if o.Down {
			names[i] = "-" + o.Field
		}
	}
	return strings.Join(names, ",")
}

// CheckNetworks refuses a query that asks for a network of which there is neither the name among those that
// are configured nor a row: a name that is misspelled would look like a network where nothing is.
func (l List[R]) CheckNetworks(q Query, rows []R, configured []string) error {
	for _, name := range slices.Concat(q.Filter(fieldNetwork, false), q.Filter(fieldNetwork, true)) {
		is := func(network string) bool { return strings.EqualFold(network, name) }
		if name == None || slices.ContainsFunc(configured, is) || slices.ContainsFunc(rows, func(r R) bool { return is(l.Value(r, fieldNetwork)) }) {
			continue
		}
		if len(configured) == 0 {
			return fmt.Errorf("%s=%q: no network is configured", fieldNetwork, clip(name))
		}
		return fmt.Errorf("%s=%q: no network has that name; there are %s", fieldNetwork, clip(name), strings.Join(configured, ", "))
	}
	return nil
}

// AtPage is the same query for another page.
func (q Query) AtPage(page int) Query {
	q.Page = page
	return q
}

// SortedBy is the same query in the order of a field, from the first page: the other way
// round if that is its order already.
func (q Query) SortedBy(field string) Query {
	down := len(q.Orders) > 0 && q.Orders[0].Field == field && !q.Orders[0].Down
	q.Orders, q.Page = []Order{{field, down}}, 1
	return q
}

// Filter returns what a field is filtered by, nil for nothing.
func (q Query) Filter(field string, not bool) []string {
	for _, f := range q.Filters {
		if f.Field == field && f.Not == not {
			return f.Values
		}
	}
	return nil
}
