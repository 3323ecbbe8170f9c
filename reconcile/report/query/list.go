package query

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"ingot/model"
	"ingot/model/text"
)

// List is one list of a fleet, with the fields that its rows are asked for by.
type List[R any] struct {
	name   string // servers: as in addresses
	fields []field[R]
	common func(R) *Common
}

// field is one thing that rows are filtered and sorted by.
type field[R any] struct {
	name    string
	text    func(R) string
	none    func(R) bool // it has nothing there
	compare func(a, b R) int
	read    func(asked string) (string, error) // a value as rows have it; nil = as it is asked for
}

// fieldNetwork is the field of the lists whose rows are in a network that is configured.
const fieldNetwork = "network"

// The lists, by the names that they have in addresses.
var (
	Servers = list("servers", func(r *Server) *Common { return &r.Common },
		texts("power", func(r *Server) string { return r.Power }),
		texts("bmc", func(r *Server) string { return r.BMC }),
		texts("claim", func(r *Server) string { return r.Claim }),
		texts("installStage", func(r *Server) string { return r.InstallStage }),
		texts("location", func(r *Server) string { return r.Location }),
		texts("rack", func(r *Server) string { return r.Rack }),
		numbers("unit", func(r *Server) int { return r.Unit }),
		numbers("height", func(r *Server) int { return r.Height }),
		texts("uuid", func(r *Server) string { return r.UUID }),
		texts("manufacturer", func(r *Server) string { return r.Manufacturer }),
		texts("model", func(r *Server) string { return r.Model }),
		texts("serial", func(r *Server) string { return r.Serial }))
	Claims = list("claims", func(r *Claim) *Common { return &r.Common },
		texts("kind", func(r *Claim) string { return r.Kind }),
		texts("namespace", func(r *Claim) string { return r.Namespace }),
		texts("server", func(r *Claim) string { return r.Server }),
		texts("image", func(r *Claim) string { return r.Image }),
		texts("tenant", func(r *Claim) string { return r.Tenant }))
	BMCs = list("bmcs", func(r *BMC) *Common { return &r.Common },
		texts("address", func(r *BMC) string { return r.Address }),
		macs("mac", func(r *BMC) string { return r.MAC }),
		texts("endpoint", func(r *BMC) string { return r.Endpoint }),
		texts("manufacturer", func(r *BMC) string { return r.Manufacturer }),
		texts("model", func(r *BMC) string { return r.Model }),
		texts("firmware", func(r *BMC) string { return r.Firmware }),
		counts("servers", func(r *BMC) int { return r.Servers }))
	Endpoints = list("endpoints", func(r *Endpoint) *Common { return &r.Common },
		macs("mac", func(r *Endpoint) string { return r.MAC }),
		texts("address", func(r *Endpoint) string { return r.Address }),
		texts(fieldNetwork, func(r *Endpoint) string { return r.Network }),
		texts("bmc", func(r *Endpoint) string { return r.BMC }),
		texts("manufacturer", func(r *Endpoint) string { return r.Manufacturer }))
	Leases = list("leases", func(r *Lease) *Common { return &r.Common },
		texts(fieldNetwork, func(r *Lease) string { return r.Network }),
		texts("role", func(r *Lease) string { return r.Role }),
		macs("mac", func(r *Lease) string { return r.MAC }),
		texts("server", func(r *Lease) string { return r.Server }),
		texts("relay", func(r *Lease) string { return r.Relay }),
		texts("circuitID", func(r *Lease) string { return r.CircuitID }),
		texts("remoteID", func(r *Lease) string { return r.RemoteID }),
		times("renewed", func(r *Lease) time.Time { return r.Renewed }),
		times("expires", func(r *Lease) time.Time { return r.Expires }))
	Pools = list("pools", func(r *Pool) *Common { return &r.Common },
		texts(fieldNetwork, func(r *Pool) string { return r.Network }),
		counts("size", func(r *Pool) uint64 { return r.Size }),
		counts("used", func(r *Pool) uint64 { return r.Used }),
		counts("refused", func(r *Pool) uint64 { return r.Refused }))
	Images = list("images", func(r *Image) *Common { return &r.Common },
		texts("image", func(r *Image) string { return r.Image }),
		texts("part", func(r *Image) string { return r.Part }),
		counts("size", func(r *Image) int64 { return r.Size }),
		counts("fetched", func(r *Image) int64 { return r.Fetched }),
		times("used", func(r *Image) time.Time { return r.Used }),
		texts("pinned", func(r *Image) string { return strconv.FormatBool(r.Pinned) }))
	Problems = list("problems", func(r *Problem) *Common { return &r.Common },
		texts("file", func(r *Problem) string { return r.File }),
		numbers("line", func(r *Problem) int { return r.Line }),
		numbers("column", func(r *Problem) int { return r.Column }),
		texts("object", func(r *Problem) string { return r.Object }),
		texts("field", func(r *Problem) string { return r.Field }))
)

// list is a list whose rows have what all have, and fields of their own.
func list[R any](name string, common func(R) *Common, own ...field[R]) List[R] {
	return List[R]{name: name, common: common, fields: append([]field[R]{
		texts("name", func(r R) string { return common(r).Name }),
		texts("state", func(r R) string { return common(r).State }),
		times("since", func(r R) time.Time { return common(r).Since }),
		texts("why", func(r R) string { return common(r).Why }),
		texts("actor", func(r R) string { return common(r).Actor }),
		times("whySince", func(r R) time.Time { return common(r).WhySince }),
		texts("manifest", func(r R) string { return common(r).Manifest }),
	}, own...)}
}

// texts is a field whose values are texts, in which digits count as numbers.
func texts[R any](name string, of func(R) string) field[R] {
	return field[R]{name, of, func(r R) bool { return of(r) == "" }, func(a, b R) int { return text.CompareNatural(of(a), of(b)) }, nil}
}

// macs is a field whose values are MAC addresses, which are asked for in any of their forms.
func macs[R any](name string, of func(R) string) field[R] {
	f := texts(name, of)
	f.read = func(asked string) (string, error) {
		mac, ok := model.ParseMAC(asked)
		if !ok {
			return "", errors.New("must be a MAC address, such as 02:00:00:00:00:0a")
		}
		return mac.String(), nil
	}
	return f
}

// integer is what is counted or numbered.
type integer interface{ int | int64 | uint64 }

// counts is a field whose values are numbers, of which 0 is one.
func counts[R any, N integer](name string, of func(R) N) field[R] {
	return field[R]{
		name, func(r R) string { return strconv.FormatInt(int64(of(r)), 10) },
		func(R) bool { return false }, func(a, b R) int { return cmp.Compare(of(a), of(b)) }, nil,
	}
}

// numbers is a field whose values are numbers from 1.
func numbers[R any](name string, of func(R) int) field[R] {
	f := counts(name, of)
	f.none = func(r R) bool { return of(r) == 0 }
	return f.emptyAsNothing()
}

// times is a field whose values are times, of which the zero one is none.
func times[R any](name string, of func(R) time.Time) field[R] {
	return field[R]{
		name, func(r R) string { return text.Time(of(r)) },
		func(r R) bool { return of(r).IsZero() }, func(a, b R) int { return of(a).Compare(of(b)) }, nil,
	}.emptyAsNothing()
}

// emptyAsNothing is the field with an empty text for nothing.
func (f field[R]) emptyAsNothing() field[R] {
	text := f.text
	f.text = func(r R) string {
		if f.none(r) {
			return ""
		}
		return text(r)
	}
	return f
}

// Name is the list's name in addresses.
func (l List[R]) Name() string { return l.name }

// Common is what every row has, of one row.
func (l List[R]) Common(row R) *Common { return l.common(row) }

// Fields are the names of what rows are filtered and sorted by, in the order of the columns.
func (l List[R]) Fields() []string {
	names := make([]string, len(l.fields))
	for i := range l.fields {
		names[i] = l.fields[i].name
	}
	return names
}

// Value is what a row has of a field, as filters compare it; "" for nothing.
func (l List[R]) Value(row R, name string) string {
	if f := l.field(name); f != nil {
		return f.text(row)
	}
	return ""
}

func (l List[R]) field(name string) *field[R] {
	at := slices.IndexFunc(l.fields, func(f field[R]) bool { return f.name == name })
	if at < 0 {
		return nil
	}
	return &l.fields[at]
}

// Sorted sorts rows by their names, as a list without a wish for another order has them.
func (l List[R]) Sorted(rows []R) []R {
	slices.SortFunc(rows, func(a, b R) int { return text.CompareNatural(l.common(a).Name, l.common(b).Name) })
	return rows
}

// Find returns the row of a name among rows that are sorted by name.
func (l List[R]) Find(rows []R, name string) (row R, found bool) {
	at, found := slices.BinarySearchFunc(rows, name, func(r R, name string) int { return text.CompareNatural(l.common(r).Name, name) })
	if !found {
		return row, false
	}
	return rows[at], true
}

// Ready makes a row fit for being searched. It is called once, by whoever made the row.
func (l List[R]) Ready(row R) R {
	c := l.common(row)
	var b strings.Builder
	for i := range l.fields {
		if value := l.fields[i].text(row); value != "" {
			b.WriteString(strings.ToLower(value))
			b.WriteByte('\n')
		}
	}
	for _, key := range slices.Sorted(maps.Keys(c.Labels)) {
		b.WriteString(strings.ToLower(key + "=" + c.Labels[key]))
		b.WriteByte('\n')
	}
	c.text = b.String()
	return row
}

// Count is how many rows have a value.
type Count struct {
	Value string `json:"value"`
	Rows  int    `json:"rows"`
}

// maxCounts is how many values of a field are counted.
const maxCounts = 200

// Counts says how many rows have which value of a field, in the order of values: what a menu
// of a filter offers. Of a field with very many values it has those that are met first.
func (l List[R]) Counts(rows []R, name string) []Count {
	f := l.field(name)
	if f == nil {
		return nil
	}
	have := make(map[string]int)
	for _, row := range rows {
		value := f.text(row)
		if _, met := have[value]; met || len(have) < maxCounts {
			have[value]++
		}
	}
	all := make([]Count, 0, len(have))
	for _, value := range slices.SortedFunc(maps.Keys(have), text.CompareNatural) {
		all = append(all, Count{value, have[value]})
	}
	return all
}
