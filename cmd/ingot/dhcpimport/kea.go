package dhcpimport

import (
	"bytes"
	"encoding/csv"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// kea reads the configuration of Kea, its leases, or answers to its commands.
func (r *reader) kea(data []byte) error {
	if bytes.HasPrefix(data, []byte("address,")) {
		return r.keaLeases(data)
	}
	plain, err := withoutComments(data)
	if err != nil {
		return err
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(plain, &doc); err != nil {
		return fmt.Errorf("it is neither Kea's configuration nor its leases: %w", err)
	}
	if len(doc.Content) == 0 {
		return nil
	}
	documents := []*yaml.Node{doc.Content[0]}
	if doc.Content[0].Kind == yaml.SequenceNode { // the control agent answers with a list
		documents = doc.Content[0].Content
	}
	found := false
	for _, n := range documents {
		is, err := r.keaDocument(n)
		if err != nil {
			return err
		}
		found = found || is
	}
	if !found {
		return errors.New("it has neither Dhcp4 nor Dhcp6: is it a configuration of kea-dhcp4, its kea-leases4.csv, " +
			"or an answer to config-get, reservation-get-all, lease4-get-all or lease6-get-all?")
	}
	return nil
}

// keaEmpty is the result of a command that found nothing.
const keaEmpty = "3"

// keaDocument reads a configuration, or the answer to config-get, reservation-get-all, or a command that gets
// leases. It reports whether it is one.
func (r *reader) keaDocument(n *yaml.Node) (found bool, err error) {
	switch result := valueOf(n, "result"); result {
	case "", "0":
	case keaEmpty:
		return true, r.skip(r.at(n.Line), "answer", fmt.Sprintf("Kea found nothing: %q", clip(valueOf(n, "text"))))
	default:
		return false, fmt.Errorf("line %d: it is an answer with result %s: %q", n.Line, clip(result), clip(valueOf(n, "text")))
	}
	if arguments := field(n, "arguments"); arguments != nil {
		n = arguments
	}
	for _, family := range []string{"Dhcp4", "Dhcp6"} {
		if c := field(n, family); c != nil {
			found = true
			if err := r.keaConfig(c, family == "Dhcp6"); err != nil {
				return false, err
			}
		}
	}
	for _, host := range items(n, "hosts") {
		if err := r.keaReservation(host, field(host, "ip-addresses") != nil); err != nil {
			return false, err
		}
	}
	for i, lease := range items(n, "leases") {
		if err := r.keaAnswered(lease, i); err != nil {
			return false, err
		}
	}
	return found || field(n, "hosts") != nil || field(n, "leases") != nil, nil
}

// withoutComments returns JSON as Kea takes it without what no JSON has: comments (#, // and /* */),
// and a tab where a blank does. Lines stay where they are.
func withoutComments(data []byte) ([]byte, error) {
	out := make([]byte, 0, len(data))
	for i, depth := 0, 0; i < len(data); i++ {
		rest := data[i:]
		switch c := data[i]; {
		case c == '"':
			end := stringEnd(rest)
			out = append(out, rest[:end]...)
			i += end - 1
		case c == '#', bytes.HasPrefix(rest, []byte("//")):
			i += lineEnd(rest) - 1
		case bytes.HasPrefix(rest, []byte("/*")):
			end := bytes.Index(rest, []byte("*/"))
			if end < 0 {
				return nil, errors.New("unterminated comment")
			}
			out = append(out, bytes.Repeat([]byte("\n"), bytes.Count(rest[:end], []byte("\n")))...)
			i += end + 1
		case bytes.HasPrefix(rest, []byte("<?include")):
			return nil, errors.New("it includes another file, which is not opened: give what Kea answers to config-get")
		case c == '&', c == '*', c == '!', c == '|', c == '>', c == '%', c == '@', c == '`', c == '\'', c == '?':
			return nil, fmt.Errorf("line %d: found %q outside a string: this is not JSON", bytes.Count(data[:i], []byte("\n"))+1, c)
		default:
			if c == '{' || c == '[' {
				depth++
			} else if c == '}' || c == ']' {
				depth--
			}
			if depth > maxDepth {
				return nil, fmt.Errorf("blocks are nested more than %d deep", maxDepth)
			}
			if c == '\t' || c == '\r' {
				c = ' '
			}
			if out = append(out, c); c == ':' {
				out = append(out, ' ')
			}
		}
	}
	return out, nil
}

// stringEnd is how long the string is that a text begins with, with its quotes.
func stringEnd(text []byte) int {
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(text)
}

// lineEnd is how long the line is that a text begins with.
func lineEnd(text []byte) int {
	if end := bytes.IndexByte(text, '\n'); end >= 0 {
		return end
	}
	return len(text)
}

// field returns the value of a field of a mapping, nil if there is none.
func field(n *yaml.Node, name string) *yaml.Node {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == name {
			return n.Content[i+1]
		}
	}
	return nil
}

// items are the entries of the list in a field.
func items(n *yaml.Node, name string) []*yaml.Node {
	if list := field(n, name); list != nil && list.Kind == yaml.SequenceNode {
		return list.Content
	}
	return nil
}

// valueOf is the text, number or boolean in a field, "" if there is none.
func valueOf(n *yaml.Node, name string) string {
	if v := field(n, name); v != nil && v.Kind == yaml.ScalarNode && v.Tag != "!!null" {
		return v.Value
	}
	return ""
}

// keaConfig reads the reservations of a family: global ones, of subnets and of shared networks.
func (r *reader) keaConfig(c *yaml.Node, v6 bool) error {
	for _, name := range []string{"hosts-database", "hosts-databases"} {
		if n := field(c, name); n != nil {
			if err := r.skip(r.at(n.Line), name, "reservations in a database are not read: give what reservation-get-all answers"); err != nil {
				return err
			}
		}
	}
	subnets := map[bool]string{false: "subnet4", true: "subnet6"}[v6]
	scopes := append([]*yaml.Node{c}, items(c, subnets)...)
	for _, shared := range items(c, "shared-networks") {
		scopes = append(append(scopes, shared), items(shared, subnets)...)
	}
	for _, scope := range scopes {
		for _, reservation := range items(scope, "reservations") {
			if err := r.keaReservation(reservation, v6); err != nil {
				return err
			}
		}
	}
	return nil
}

// keaReservation reads one reservation.
func (r *reader) keaReservation(n *yaml.Node, v6 bool) error {
	where := r.at(n.Line)
	e := entry{where: where, hostname: valueOf(n, "hostname")}
	if err := keaIdentifiers(n, &e); err != nil {
		return r.skip(where, keaName(n), err.Error())
	}
	addresses := []string{valueOf(n, "ip-address")}
	if v6 {
		addresses = nil
		for _, a := range items(n, "ip-addresses") {
			addresses = append(addresses, a.Value)
		}
		if prefixes := items(n, "prefixes"); len(prefixes) > 0 {
			if err := r.skip(where, keaName(n), noPrefixes); err != nil {
				return err
			}
		}
	}
	if !v6 {
		if e.hostname != "" {
			if err := r.option(&e, where, "host-name", e.hostname); err != nil {
				return err
			}
		}
		for _, o := range items(n, "option-data") {
			if err := r.keaOption(&e, o); err != nil {
				return err
			}
		}
	}
	if len(addresses) == 0 || addresses[0] == "" {
		return r.skip(where, keaName(n), "it reserves no address")
	}
	for _, text := range addresses {
		address, ok := parseAddress(text)
		if !ok {
			if err := r.skip(where, keaName(n), fmt.Sprintf("%q is no address of a device", clip(text))); err != nil {
				return err
			}
			continue
		}
		e.address = address
		if err := r.add(e); err != nil {
			return err
		}
	}
	return nil
}

// keaName is what a reservation is called.
func keaName(n *yaml.Node) string {
	for _, name := range []string{"ip-address", "hostname", "hw-address", "duid", "client-id", "circuit-id", "flex-id"} {
		if v := valueOf(n, name); v != "" {
			return "reservation of " + v
		}
	}
	return "reservation"
}

// keaIdentifiers reads who a reservation is for.
func keaIdentifiers(n *yaml.Node, e *entry) (err error) {
	if hw := valueOf(n, "hw-address"); hw != "" {
		if e.mac = parseMAC(hw); e.mac == "" {
			return fmt.Errorf("%q is no MAC address", clip(hw))
		}
	}
	for name, id := range map[string]*[]byte{"client-id": &e.clientID, "duid": &e.clientID, "circuit-id": &e.circuitID} {
		text := valueOf(n, name)
		if text == "" {
			continue
		}
		if *id, err = keaIdentifier(text); err != nil {
			return fmt.Errorf("%s %q: %w", name, clip(text), err)
		}
	}
	if valueOf(n, "flex-id") != "" {
		return errors.New("a flex-id is made by an expression, and no field of a request is it: name what it is made of")
	}
	return nil
}

// keaIdentifier reads bytes in hexadecimal, with colons, after 0x or bare, or 'text'.
func keaIdentifier(s string) ([]byte, error) {
	if len(s) > 2 && s[0] == '\'' && s[len(s)-1] == '\'' {
		return []byte(s[1 : len(s)-1]), nil
	}
	digits := strings.TrimPrefix(s, "0x")
	if strings.ContainsAny(digits, ": ") {
		pairs := strings.FieldsFunc(digits, func(c rune) bool { return c == ':' || c == ' ' })
		for i, p := range pairs {
			if len(p) == 1 {
				pairs[i] = "0" + p
			}
		}
		digits = strings.Join(pairs, "")
	}
	id, err := hex.DecodeString(digits)
	if err != nil || len(id) == 0 {
		return nil, errors.New("it is neither pairs of hexadecimal digits nor text in single quotes")
	}
	return id, nil
}

// keaRoute is a route as Kea writes it.
var keaRoute = regexp.MustCompile(`\s+-\s+`)

// keaOption reads one option of a reservation.
func (r *reader) keaOption(e *entry, n *yaml.Node) error {
	where := r.at(n.Line)
	name, known := optionNames[valueOf(n, "name")]
	if code := valueOf(n, "code"); !known && code != "" {
		name, known = code, true
	}
	if space := valueOf(n, "space"); !known || space != "" && space != "dhcp4" {
		return r.skip(where, "option "+valueOf(n, "name")+valueOf(n, "code"), "Ingot has no name for it: write its number")
	}
	value := strings.ReplaceAll(valueOf(n, "data"), `\,`, ",")
	if valueOf(n, "csv-format") == "false" {
		value = "hex:" + strings.NewReplacer(" ", "", ":", "", "0x", "").Replace(value)
		if code := valueOf(n, "code"); code != "" {
			name = code
		}
	}
	if name == "routes" {
		value = keaRoute.ReplaceAllString(value, " via ")
	}
	return r.option(e, where, name, value)
}

// keaLeases reads a lease file of memfile: of an address the last line counts.
func (r *reader) keaLeases(data []byte) error {
	if end := bytes.LastIndexByte(data, '\n') + 1; end < len(data) {
		if err := r.skipUnfinished(bytes.Count(data, []byte("\n"))+1, string(data[end:])); err != nil {
			return err
		}
		data = data[:end]
	}
	in := csv.NewReader(bytes.NewReader(data))
	in.FieldsPerRecord, in.LazyQuotes, in.ReuseRecord = -1, true, true
	header, err := in.Read()
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	columns := make(map[string]int)
	for i, name := range header {
		columns[name] = i
	}
	for {
		record, err := in.Read()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		line, _ := in.FieldPos(0)
		column := func(name string) string {
			if i, ok := columns[name]; ok && i < len(record) {
				return record[i]
			}
			return ""
		}
		if err := r.keaLease(column, r.at(line)); err != nil {
			return err
		}
	}
}

// keaFields are the fields of a lease in an answer that say what a column of a lease file says.
var keaFields = map[string]string{
	"address": "ip-address", "hwaddr": "hw-address", "client_id": "client-id", "duid": "duid", "hostname": "hostname",
	"valid_lifetime": "valid-lft", "state": "state",
}

// keaAnswered reads one lease of an answer: all of it may stand in one line.
func (r *reader) keaAnswered(n *yaml.Node, i int) error {
	return r.keaLease(func(column string) string {
		switch column {
		case "lease_type":
			return map[string]string{"IA_PD": keaPrefix}[valueOf(n, "type")]
		case "expire":
			return keaEnd(valueOf(n, "cltt"), valueOf(n, "valid-lft"))
		}
		return valueOf(n, keaFields[column])
	}, fmt.Sprintf("%s, leases[%d]", r.at(n.Line), i))
}

// keaEnd is when a lease ends by when its client was last heard and how long it is valid since, "" if they
// are no numbers.
func keaEnd(heard, valid string) string {
	from, bad := strconv.ParseInt(heard, 10, 64)
	lasts, worse := strconv.ParseUint(valid, 10, 32)
	if bad != nil || worse != nil {
		return ""
	}
	return strconv.FormatInt(from+int64(lasts), 10)
}

// keaPrefix is the type of a lease that is of a prefix.
const keaPrefix = "2"

// keaLease reads one lease, whose columns are those of a lease file.
func (r *reader) keaLease(column func(string) string, where string) error {
	l := leased{entry: entry{where: where, mac: parseMAC(column("hwaddr")), hostname: keaUnescaped(strings.Clone(column("hostname")))}}
	address, ok := parseAddress(column("address"))
	if !ok {
		return r.skip(l.where, "lease of "+strconv.Quote(column("address")), "it is not a device address")
	}
	l.address = address
	id := column("client_id") + column("duid") // one of them is a column
	if id != "" {
		l.clientID, _ = keaIdentifier(id)
	}
	expire, bad := strconv.ParseInt(column("expire"), 10, 64)
	valid, worse := strconv.ParseInt(column("valid_lifetime"), 10, 64)
	switch state := column("state"); {
	case bad != nil || worse != nil:
		return r.skip(l.where, "lease of "+address.String(), "it has no end time")
	case column("lease_type") == keaPrefix:
		l.over = noPrefixes
	case valid == 0:
		l.over = "the lease was released"
	case state == "1":
		l.over = "it is declined: another device was found to use it"
	case state == "2", state == "3":
		l.over = "the lease has ended"
	case state != "" && state != "0":
		l.over = "it is not active: its state is " + clip(state)
	case valid < 1<<32-1: // else it never ends
		r.until(&l, time.Unix(expire, 0))
	}
	return r.note(l)
}

// keaUnescaped undoes what Kea does to commas.
func keaUnescaped(s string) string {
	return strings.NewReplacer("&#x2c", ",", "&#x2C", ",").Replace(s)
}
