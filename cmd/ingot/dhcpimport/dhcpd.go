package dhcpimport

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// statement is what ISC dhcpd's files consist of: words, and what stands in braces behind them.
type statement struct {
	line  int
	words []string // of a string its bytes, behind a quote
	block []statement
}

// dhcpd reads dhcpd.conf or dhcpd.leases, which are written alike.
func (r *reader) dhcpd(data []byte) error {
	l := &lexer{text: string(data), line: 1}
	all, err := l.statements(0)
	if errors.Is(err, errUnterminated) {
		if last := all[len(all)-1]; slices.Contains([]string{"lease", "ia-na", "ia-ta", "ia-pd"}, last.word(0)) { // dhcpd writes it
			all, err = all[:len(all)-1], r.skipUnfinished(last.line, last.word(0)+" "+last.text(1))
		}
	}
	if err != nil {
		return fmt.Errorf("line %d: %w", l.line, err)
	}
	return r.dhcpdBlock(all, nil)
}

// errUnterminated is returned, with what was read, where a file ends within a block or a string.
var errUnterminated = errors.New("unterminated block or string")

// dhcpdBlock reads the statements of a block; inherited are the options of the groups around it.
func (r *reader) dhcpdBlock(all []statement, inherited map[string]statement) error {
	for _, s := range all {
		var err error
		switch first := s.word(0); {
		case first == "host":
			err = r.dhcpdHost(s, inherited)
		case first == "lease" && s.block != nil:
			err = r.dhcpdLease(s, leased{})
		case first == "ia-na", first == "ia-ta", first == "ia-pd":
			err = r.dhcpdIA(s)
		case first == "include":
			err = r.skip(r.at(s.line), "include "+s.text(1), "the file that it includes is not read: name it as well")
		case first == "group":
			err = r.dhcpdBlock(s.block, withOptions(inherited, s.block))
		case s.block != nil:
			err = r.dhcpdBlock(s.block, inherited)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// withOptions are the options of a block beside those around it.
func withOptions(inherited map[string]statement, block []statement) map[string]statement {
	all := maps.Clone(inherited)
	for _, s := range block {
		if s.word(0) == "option" && len(s.words) > 2 {
			if all == nil {
				all = make(map[string]statement)
			}
			all[s.word(1)] = s
		}
	}
	return all
}

// dhcpdHost reads a host block.
func (r *reader) dhcpdHost(s statement, inherited map[string]statement) error {
	e := entry{where: r.at(s.line), hostname: s.text(1)}
	what := "host " + s.text(1)
	var addresses []string
	prefixes := false
	for _, d := range s.block {
		var bad error
		switch strings.Join(d.words[:min(2, len(d.words))], " ") {
		case "hardware ethernet":
			if e.mac = parseMAC(d.word(2)); e.mac == "" {
				bad = fmt.Errorf("%q is no MAC address", clip(d.word(2)))
			}
		case "option dhcp-client-identifier":
			e.clientID, bad = d.bytes(2)
		case "host-identifier option":
			switch d.word(2) {
			case "agent.circuit-id":
				e.circuitID, bad = d.bytes(3)
			case "agent.remote-id":
				e.remoteID, bad = d.bytes(3)
			case "dhcp6.client-id", "dhcp-client-identifier":
				e.clientID, bad = d.bytes(3)
			default:
				bad = fmt.Errorf("no device is told by option %s", clip(d.word(2)))
			}
		}
		switch d.word(0) {
		case "hardware":
			if d.word(1) != "ethernet" {
				bad = fmt.Errorf("%s is no Ethernet: only devices that have an Ethernet address are told by it", clip(d.word(1)))
			}
		case "deleted":
			return nil
		case "fixed-address", "fixed-address6":
			addresses = append(addresses, d.words[1:]...)
		case "fixed-prefix6":
			prefixes = true
		}
		if bad != nil {
			return r.skip(r.at(d.line), what, bad.Error())
		}
	}
	if prefixes {
		if err := r.skip(e.where, what, noPrefixes); err != nil || len(addresses) == 0 {
			return err
		}
	}
	options := withOptions(inherited, s.block)
	return r.dhcpdReserve(e, what, addresses, options)
}

// dhcpdReserve adds the reservations of a host.
func (r *reader) dhcpdReserve(e entry, what string, addresses []string, options map[string]statement) error {
	switch {
	case len(addresses) == 0:
		return r.skip(e.where, what, "it reserves no address")
	case len(e.mac)+len(e.clientID)+len(e.circuitID)+len(e.remoteID) == 0:
		return r.skip(e.where, what, "it does not say which device it is for")
	}
	for _, name := range slices.Sorted(maps.Keys(options)) {
		o := options[name]
		known := optionNames[name]
		switch {
		case name == "dhcp-client-identifier":
		case o.word(2) == "=":
			if err := r.skip(r.at(o.line), what+", option "+name, "it is an expression, which is not evaluated"); err != nil {
				return err
			}
		case known == "":
			if err := r.skip(r.at(o.line), what+", option "+name, "Ingot has no name for it: write its number as an annotation dhcp.ingot/…"); err != nil {
				return err
			}
		default:
			if err := r.option(&e, r.at(o.line), known, o.list(2)); err != nil {
				return err
			}
		}
	}
	for _, text := range addresses {
		address, ok := parseAddress(strings.TrimPrefix(text, quote))
		if !ok {
			if err := r.skip(e.where, what, fmt.Sprintf("%q is no address: a name is not looked up", clip(strings.TrimPrefix(text, quote)))); err != nil {
				return err
			}
			continue
		}
		e.address = address
		if address.Is6() {
			e.options = nil
		}
		if err := r.add(e); err != nil {
			return err
		}
	}
	return nil
}

// dhcpdIA reads the leases of an identity association of DHCPv6, whose identifier is the IAID, of 4 bytes, and
// the DUID behind it.
func (r *reader) dhcpdIA(s statement) error {
	id, err := s.bytes(1)
	if err != nil || len(id) <= 4 {
		return r.skip(r.at(s.line), s.word(0), "its identifier is not an IAID of 4 bytes with a DUID behind it")
	}
	over := map[string]string{"ia-ta": "temporary addresses are not reserved for devices", "ia-pd": noPrefixes}[s.word(0)]
	for _, a := range s.block {
		if a.word(0) != "iaaddr" && a.word(0) != "iaprefix" {
			continue
		}
		if err := r.dhcpdLease(a, leased{entry: entry{clientID: id[4:]}, over: over}); err != nil {
			return err
		}
	}
	return nil
}

// dhcpdLease reads what a lease, iaaddr or iaprefix says beside l: of an address the last one counts.
func (r *reader) dhcpdLease(s statement, l leased) error {
	l.where = r.at(s.line)
	text, _, _ := strings.Cut(s.text(1), "/")
	address, ok := parseAddress(text)
	if !ok {
		return r.skip(l.where, "lease "+s.text(1), "it is not a device address")
	}
	l.address = address
	for _, d := range s.block {
		switch {
		case d.word(0) == "hardware":
			l.mac = parseMAC(d.word(2))
		case d.word(0) == "client-hostname":
			l.hostname = d.text(1)
		case d.word(0) == "uid":
			l.clientID, _ = d.bytes(1)
		case d.word(0) == "binding" && d.word(1) == "state" && d.word(2) != "active":
			l.over = "the lease is " + clip(d.word(2))
		case d.word(0) == "ends" && d.word(1) != "never" && l.over == "":
			end, err := dhcpdTime(d.words[1:])
			if err != nil {
				return r.skip(r.at(d.line), "lease "+s.text(1), err.Error())
			}
			r.until(&l, end)
		}
	}
	return r.note(l)
}

// dhcpdTime reads "4 2026/11/26 10:00:00", or "epoch 1795687200".
func dhcpdTime(words []string) (time.Time, error) {
	if len(words) == 2 && words[0] == "epoch" {
		if n, err := strconv.ParseInt(words[1], 10, 64); err == nil {
			return time.Unix(n, 0), nil
		}
	}
	if len(words) == 3 {
		if t, err := time.Parse("2006/01/02 15:04:05", words[1]+" "+words[2]); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("%q is no time at which it ends", clip(strings.Join(words, " ")))
}

// quote stands before the bytes of a word that was a string.
const quote = `"`

func (s *statement) word(i int) string {
	if i < len(s.words) {
		return s.words[i]
	}
	return ""
}

// text is a word, without what tells that it is a string.
func (s *statement) text(i int) string { return strings.TrimPrefix(s.word(i), quote) }

// list are the words from the i-th on, as Ingot writes lists.
func (s *statement) list(i int) string {
	var all []string
	for ; i < len(s.words); i++ {
		all = append(all, s.text(i))
	}
	return strings.Join(all, ", ")
}

// bytes are those of a string, or of 01:a0:b1, which dhcpd takes without leading zeros.
func (s *statement) bytes(i int) ([]byte, error) {
	w := s.word(i)
	switch {
	case len(s.words) != i+1:
		return nil, errors.New("it is an expression, which is not evaluated")
	case strings.HasPrefix(w, quote):
		return []byte(w[1:]), nil
	}
	return keaIdentifier(w)
}

// lexer reads statements.
type lexer struct {
	text  string
	line  int
	words int
}

// maxWords bounds the words of a file, each of which costs more memory than it has bytes.
const maxWords = 4_000_000

// statements reads up to the end of a block.
func (l *lexer) statements(depth int) (all []statement, err error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("blocks are nested more than %d deep", maxDepth)
	}
	all = []statement{}
	s := statement{}
	for {
		word, ok, err := l.next()
		switch {
		case err != nil:
			return append(all, s), err
		case !ok && depth > 0:
			return append(all, s), errUnterminated
		case !ok:
			return append(all, s), nil
		case word == "}" && depth == 0:
			return nil, errors.New("unmatched closing brace")
		case word == "}":
			return append(all, s), nil
		case word == ";":
			all, s = append(all, s), statement{}
		case word == "{":
			if s.block, err = l.statements(depth + 1); err != nil {
				return append(all, s), err
			}
			all, s = append(all, s), statement{}
		case word == ",":
		default:
			if len(s.words) == 0 {
				s.line = l.line
			}
			if l.words++; l.words > maxWords {
				return nil, errTooMany
			}
			s.words = append(s.words, word)
		}
	}
}

// next returns the next word: a string with a quote in front, a bracket, a comma, a semicolon, or what stands
// between those.
func (l *lexer) next() (word string, ok bool, err error) {
	for l.text != "" {
		switch c := l.text[0]; c {
		case '\n':
			l.line++
			l.text = l.text[1:]
		case ' ', '\t', '\r':
			l.text = l.text[1:]
		case '#':
			_, l.text, _ = strings.Cut(l.text, "\n")
			l.line++
		case '{', '}', ';', ',':
			word, l.text = l.text[:1], l.text[1:]
			return word, true, nil
		case '"':
			word, err = l.quoted()
			return word, true, err
		default:
			end := strings.IndexAny(l.text, " \t\r\n{};,\"#")
			if end < 0 {
				end = len(l.text)
			}
			word, l.text = l.text[:end], l.text[end:]
			return word, true, nil
		}
	}
	return "", false, nil
}

// quoted reads a string, in which \001 is a byte in octal digits.
func (l *lexer) quoted() (string, error) {
	var b strings.Builder
	b.WriteString(quote)
	for i := 1; i < len(l.text); i++ {
		switch c := l.text[i]; {
		case c == '"':
			l.text = l.text[i+1:]
			return b.String(), nil
		case c == '\n':
			return "", errors.New("a string does not end in its line")
		case c == '\\' && i+3 < len(l.text) && isOctal(l.text[i+1:i+4]):
			n, _ := strconv.ParseUint(l.text[i+1:i+4], 8, 8)
			b.WriteByte(byte(n))
			i += 3
		case c == '\\' && i+1 < len(l.text):
			i++
			b.WriteByte(l.text[i])
		default:
			b.WriteByte(c)
		}
	}
	return "", errUnterminated
}

// isOctal reports whether three digits are a byte's.
func isOctal(s string) bool {
	_, err := strconv.ParseUint(s, 8, 8)
	return err == nil
}
