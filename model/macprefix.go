package model

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// TypeBMC is the type of entries of the MAC prefix database that are acted upon.
const TypeBMC = "bmc"

// MACPrefixes is the MAC prefix database: how to reach devices that nobody wrote a
// manifest for, by how their MAC addresses begin. It is never changed once made,
// and nil is one without entries.
type MACPrefixes struct {
	byPrefix map[string]*MACPrefix
	byID     map[string]*Credential
}

// MACPrefix is one entry of the MAC prefix database.
type MACPrefix struct {
	Prefix       string // lower-case hexadecimal digits, without separators
	Manufacturer string
	Protocol     Protocol
	// Type is what the devices are. Only TypeBMC is acted upon.
	Type string
	// Credentials are to be tried in this order.
	Credentials []Credential
	Console     *ConsoleProtocol
}

// Credential is one user name and password of the MAC prefix database.
type Credential struct {
	// ID tells it from the others of the database, on the status branch too, without
	// revealing anything: the entry's prefix, the position in it from 1, and a mark
	// that changes with the password, "a0369f#1.5d41402a".
	ID       string
	Username string
	Password Sensitive
}

// Lookup returns the entry with the longest prefix that a canonical MAC address
// begins with.
func (p *MACPrefixes) Lookup(mac string) (*MACPrefix, bool) {
	if p == nil {
		return nil, false
	}
	digits, ok := bareMAC(strings.ToLower(mac))
	if !ok {
		return nil, false
	}
	for n := len(digits); n > 0; n-- {
		if e := p.byPrefix[string(digits[:n])]; e != nil {
			return e, true
		}
	}
	return nil, false
}

// Credential returns the credential with an ID.
func (p *MACPrefixes) Credential(id string) (*Credential, bool) {
	if p == nil {
		return nil, false
	}
	c := p.byID[id]
	return c, c != nil
}

// macPrefixFile is the database as it is written.
type macPrefixFile struct {
	MACPrefixes []macPrefixEntry `json:"macPrefixes"`
}

type macPrefixEntry struct {
	MACPrefix      prefixText          `json:"macPrefix"`
	Manufacturer   string              `json:"manufacturer"`
	Protocol       string              `json:"protocol"`
	ProtocolScheme string              `json:"protocolScheme"`
	Port           int32               `json:"port"`
	Type           string              `json:"type"`
	Credentials    []defaultCredential `json:"defaultCredentials"`
	Console        *macPrefixConsole   `json:"console"`
}

type defaultCredential struct {
	Username string    `json:"username"`
	Password Sensitive `json:"password"`
}

type macPrefixConsole struct {
	Type string `json:"type"`
	Port int32  `json:"port"`
}

// prefixText is a prefix that takes its text as it is written: 001122 without
// quotes is a number to YAML, and 23 too.
type prefixText string

// UnmarshalText implements encoding.TextUnmarshaler.
func (p *prefixText) UnmarshalText(text []byte) error {
	digits, ok := prefixDigits(string(text))
	if !ok {
		return fmt.Errorf("found %s, want the first 1 to 12 hexadecimal digits of MAC addresses, such as a0369f or a0:36:9f", show(string(text)))
	}
	*p = prefixText(digits)
	return nil
}

// prefixDigits returns the digits of a prefix in lower case. Separators are as in
// MAC addresses; the last group may be short.
func prefixDigits(s string) (string, bool) {
	groups, size := []string{s}, 12
	for _, way := range []struct {
		separator string
		size      int
	}{{":", 2}, {"-", 2}, {".", 4}} {
		if strings.Contains(s, way.separator) {
			groups, size = strings.Split(strings.TrimSuffix(s, way.separator), way.separator), way.size
			break
		}
	}
	for i, g := range groups {
		if len(g) == 0 || len(g) > size || len(g) < size && i < len(groups)-1 {
			return "", false
		}
	}
	digits := strings.ToLower(strings.Join(groups, ""))
	for i := range len(digits) {
		if !isHex(digits[i]) {
			return "", false
		}
	}
	return digits, len(digits) <= 12
}

// DecodeMACPrefixes reads a MAC prefix database as metal-operator has it. It is as
// strict as Decode and returns nil with an error among the problems. The key marks
// credentials, see Credential.ID.
func DecodeMACPrefixes(file string, data []byte, key TokenKey) (*MACPrefixes, []Problem) {
	d, problems := onlyDocument(file, data)
	if d == nil {
		if HasErrors(problems) {
			return nil, problems
		}
		return newMACPrefixes(nil, key), problems
	}
	var read macPrefixFile
	v := reflect.ValueOf(&read).Elem()
	decodeFuncOf(v.Type())(d, d.root, v)
	if child(d.root, "macPrefixes") == nil && d.errors == 0 {
		d.bad("macPrefixes", "is required: the list of prefixes")
	}
	c := &fieldChecker{nodeDecoder: d}
	each(d, "macPrefixes", read.MACPrefixes, func(e *macPrefixEntry) { checkMACPrefix(c, e) })
	uniquePrefixes(c, read.MACPrefixes)
	SortProblems(d.problems)
	if d.errors > 0 {
		return nil, d.problems
	}
	return newMACPrefixes(read.MACPrefixes, key), d.problems
}

// otherProtocols are those that an entry may have which is not of a BMC, as upstream has
// them: nothing is done with it.
var otherProtocols = append(slices.Clip(protocolNames), "IPMI", "SSH")

func checkMACPrefix(d *fieldChecker, e *macPrefixEntry) {
	d.required("macPrefix", string(e.MACPrefix))
	if d.required("type", e.Type) && e.Type != TypeBMC && Nearest(e.Type, []string{TypeBMC}) != "" {
		d.odd("type", "found "+show(e.Type)+", which is not acted upon, did you mean "+show(TypeBMC)+"?")
	}
	d.oneOf("protocolScheme", e.ProtocolScheme, protocolSchemes)
	if e.Type == TypeBMC {
		d.requiredOneOf("protocol", e.Protocol, protocolNames)
		d.port("port", e.Port)
	} else {
		d.oneOf("protocol", e.Protocol, otherProtocols)
		if e.Port != 0 {
			d.port("port", e.Port)
		}
	}
	each(d.nodeDecoder, "defaultCredentials", e.Credentials, func(c *defaultCredential) {
		d.required("username", c.Username)
	})
	if c := e.Console; c != nil {
		d.in("console", func() {
			d.requiredOneOf("type", c.Type, consoleNames)
			d.port("port", c.Port)
		})
	}
}

// uniquePrefixes reports prefixes that are given twice, however they are spelt.
func uniquePrefixes(d *fieldChecker, entries []macPrefixEntry) {
	lines := make(map[prefixText]int, len(entries))
	list := child(d.root, "macPrefixes")
	d.push("macPrefixes")
	defer d.pop()
	for i, e := range entries {
		if e.MACPrefix == "" {
			continue
		}
		at := child(list.Content[i], "macPrefix")
		if first, twice := lines[e.MACPrefix]; twice {
			d.pushIndex(i)
			d.bad("macPrefix", "found "+show(string(e.MACPrefix))+" again, first in line "+strconv.Itoa(first)+": keep one of them")
			d.pop()
			continue
		}
		lines[e.MACPrefix] = at.Line + d.offset
	}
}

func newMACPrefixes(entries []macPrefixEntry, key TokenKey) *MACPrefixes {
	p := &MACPrefixes{byPrefix: make(map[string]*MACPrefix, len(entries)), byID: make(map[string]*Credential)}
	for _, e := range entries {
		m := &MACPrefix{
			Prefix: string(e.MACPrefix), Manufacturer: e.Manufacturer, Type: e.Type,
			Protocol: Protocol{Name: e.Protocol, Port: e.Port, Scheme: cmp.Or(e.ProtocolScheme, protocolSchemes[0])},
		}
		if e.Console != nil {
			m.Console = &ConsoleProtocol{Name: e.Console.Type, Port: e.Console.Port}
		}
		for i, c := range e.Credentials {
			m.Credentials = append(m.Credentials, Credential{
				ID: m.Prefix + "#" + strconv.Itoa(i+1) + key.mark(c.Username, c.Password), Username: c.Username, Password: c.Password,
			})
		}
		for i := range m.Credentials {
			p.byID[m.Credentials[i].ID] = &m.Credentials[i]
		}
		p.byPrefix[m.Prefix] = m
	}
	return p
}

// mark tells a password from those that stood in its place before, "" without a
// key. A hash without one could be guessed from: these passwords are on lists.
func (k TokenKey) mark(username string, password Sensitive) string {
	if k.key.IsZero() {
		return ""
	}
	mac := hmac.New(sha256.New, []byte(k.key.Reveal()))
	mac.Write([]byte("mac prefix credential\x00" + username + "\x00" + password.Reveal()))
	return "." + hex.EncodeToString(mac.Sum(nil)[:4])
}
