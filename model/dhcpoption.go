package model

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// DHCPOptions are options of DHCPv4 as they are sent, by code.
type DHCPOptions map[byte][]byte

// DHCPOptionPrefix is what annotations of an Endpoint begin with that are options for its
// device: dhcp.ingot/mtu, or dhcp.ingot/252.
const DHCPOptionPrefix = "dhcp.ingot/"

const (
	maxDHCPOption  = 255 // bytes: longer ones would have to be split, which not all clients take
	maxDHCPRoutes  = 16
	maxDHCPDomains = 8
	maxDHCPServers = 8
	minDHCPMTU     = 68  // RFC 2132 §5.1
	minV6OnlyWait  = 300 // seconds, RFC 8925 §3.4
)

// dhcpOption is an option that has a name. Its form is that of the standard.
type dhcpOption struct {
	codes  []byte
	encode func(text string) ([]byte, error)
	want   string // the form, for people
}

var dhcpOptions = map[string]dhcpOption{
	"host-name":      {[]byte{12}, encodeName, "a host name, as rack1-07"},                                             // RFC 2132 §3.14
	"mtu":            {[]byte{26}, encodeMTU, "a number from 68 to 65535, as 9000"},                                    // RFC 2132 §5.1
	"ntp-servers":    {[]byte{42}, encodeAddresses, wantAddresses},                                                     // RFC 2132 §8.3
	"vendor":         {[]byte{43}, encodeBytes, wantBytes},                                                             // RFC 2132 §8.4
	"tftp-server":    {[]byte{66}, encodeText, "a host name or an address"},                                            // RFC 2132 §9.4
	"boot-file":      {[]byte{67}, encodeText, "the name of a file"},                                                   // RFC 2132 §9.5
	"ipv6-only":      {[]byte{108}, encodeWait, "a number of seconds from 300 on, as 1800"},                            // RFC 8925
	"captive-portal": {[]byte{114}, encodeURL, wantURL},                                                                // RFC 8910
	"domain-search":  {[]byte{119}, encodeDomains, "1 to 8 domain names with commas between, as a.example, b.example"}, // RFC 3397
	"routes":         {[]byte{121, 249}, encodeRoutes, wantRoutes},                                                     // RFC 3442, and Microsoft's code
	"capwap":         {[]byte{138}, encodeAddresses, wantAddresses},                                                    // RFC 5417
	"tftp-servers":   {[]byte{150}, encodeAddresses, wantAddresses},                                                    // RFC 5859
	"wpad":           {[]byte{252}, encodeURL, wantURL},
}

const (
	wantAddresses = "1 to 8 IPv4 addresses with commas between, as 192.0.2.1, 192.0.2.2"
	wantBytes     = "bytes in hexadecimal, as hex:0104c0000201, or text"
	wantURL       = "a URL, as http://192.0.2.1/x"
	wantRoutes    = "1 to 16 routes with commas between, as 10.0.0.0/8 via 192.0.2.1, 0.0.0.0/0 via 192.0.2.2"
)

// numberedDHCPOptions are those that have a name, by their number.
var numberedDHCPOptions = func() map[byte]dhcpOption {
	all := make(map[byte]dhcpOption)
	for _, o := range dhcpOptions {
		for _, code := range o.codes {
			all[code] = dhcpOption{[]byte{code}, o.encode, o.want}
		}
	}
	return all
}()

// ownDHCPOptions are those that are sent as the answer or other settings have them.
var ownDHCPOptions = map[byte]string{
	0: "it is no option", 255: "it is no option",
	1: "it is made of cidr", 3: "write gateway", 6: "write dns", 15: "write domain", 51: "write leaseTime",
	58: "it is made of leaseTime", 59: "it is made of leaseTime",
	50: "", 52: "", 53: "", 54: "", 55: "", 56: "", 57: "", 60: "", 61: "", 77: "", 80: "", 82: "", 90: "", 93: "", 94: "", 97: "", 118: "", 175: "",
}

// Set adds the option of a name, or number, with the value that a text says.
func (o DHCPOptions) Set(name, text string) error {
	option, known := dhcpOptions[name]
	if !known {
		code, err := strconv.ParseUint(name, 10, 8)
		if err != nil {
			return fmt.Errorf("%s is no option: %s; all others by their number, from 1 to 254", show(name), guess(name, slices.Sorted(maps.Keys(dhcpOptions))))
		}
		if written := strconv.FormatUint(code, 10); name != written {
			return fmt.Errorf("%s has leading zeros: write %s", show(name), written)
		}
		if why, own := ownDHCPOptions[byte(code)]; own {
			if why == "" {
				why = "it is part of how DHCP works"
			}
			return fmt.Errorf("option %d cannot be set: %s", code, why)
		}
		if option, known = numberedDHCPOptions[byte(code)]; !known {
			option = dhcpOption{[]byte{byte(code)}, encodeBytes, wantBytes}
		}
	}
	value, err := option.encode(strings.TrimSpace(text))
	if err == nil && len(value) > maxDHCPOption {
		err = fmt.Errorf("it takes %d bytes, at most %d are allowed", len(value), maxDHCPOption)
	}
	if err != nil {
		return fmt.Errorf("found %s, want %s: %w", show(text), option.want, err)
	}
	for _, code := range option.codes {
		o[code] = value
	}
	return nil
}

// DHCPOptionName returns the name of the option with a number, "" if it has none, or for what is no number.
func DHCPOptionName(number string) string {
	code, err := strconv.ParseUint(number, 10, 8)
	if err != nil {
		return ""
	}
	for name, o := range dhcpOptions {
		if slices.Contains(o.codes, byte(code)) {
			return name
		}
	}
	return ""
}

// DHCPOptions returns the options that annotations give the device of an Endpoint. Those that are
// wrong are left out, which Decode has said.
func (o *Endpoint) DHCPOptions() DHCPOptions {
	var all DHCPOptions
	for key, value := range o.Annotations {
		if name, ok := strings.CutPrefix(key, DHCPOptionPrefix); ok {
			if all == nil {
				all = make(DHCPOptions)
			}
			_ = all.Set(name, value)
		}
	}
	return all
}

var errEmptyOption = errors.New("it is empty")

func encodeText(text string) ([]byte, error) {
	if text == "" {
		return nil, errEmptyOption
	}
	if i := strings.IndexFunc(text, func(r rune) bool { return r < ' ' || r > '~' }); i >= 0 {
		return nil, fmt.Errorf("character %d cannot be printed in ASCII", i+1)
	}
	return []byte(text), nil
}

func encodeBytes(text string) ([]byte, error) {
	digits, ok := strings.CutPrefix(text, "hex:")
	if !ok {
		return encodeText(text)
	}
	b, err := hex.DecodeString(digits)
	if err == nil && len(b) == 0 {
		err = errEmptyOption
	}
	return b, err
}

func encodeName(text string) ([]byte, error) {
	if _, err := encodeDomain(text); err != nil {
		return nil, err
	}
	return []byte(text), nil
}

func encodeURL(text string) ([]byte, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme == "" || u.Host == "" {
		return nil, errors.New("it has no scheme, or no host")
	}
	return encodeText(text)
}

// encodeNumber encodes a number of so many bytes that is least at least.
func encodeNumber(text string, bytes int, least uint64) ([]byte, error) {
	n, err := strconv.ParseUint(text, 10, 8*bytes)
	if err != nil || n < least {
		return nil, errors.New("it is not a whole number in these bounds")
	}
	return binary.BigEndian.AppendUint64(nil, n)[8-bytes:], nil
}

func encodeMTU(text string) ([]byte, error)  { return encodeNumber(text, 2, minDHCPMTU) }
func encodeWait(text string) ([]byte, error) { return encodeNumber(text, 4, minV6OnlyWait) }

func elements(text string, most int) ([]string, error) {
	all := strings.Split(text, ",")
	if len(all) > most {
		return nil, fmt.Errorf("there are %d, at most %d are allowed", len(all), most)
	}
	for i, s := range all {
		if all[i] = strings.TrimSpace(s); all[i] == "" {
			return nil, errEmptyOption
		}
	}
	return all, nil
}

// ipv4 reads the address of a device.
func ipv4(text string) (netip.Addr, error) {
	a, err := netip.ParseAddr(text)
	if err != nil || !a.Is4() || a.IsUnspecified() || a.IsMulticast() {
		return netip.Addr{}, fmt.Errorf("%s is not the IPv4 address of a device", show(text))
	}
	return a, nil
}

func encodeAddresses(text string) (b []byte, err error) {
	all, err := elements(text, maxDHCPServers)
	for _, s := range all {
		a, err := ipv4(s)
		if err != nil {
			return nil, err
		}
		b = append(b, a.AsSlice()...)
	}
	return b, err
}

// encodeDomain encodes a domain name (RFC 1035 §3.1).
func encodeDomain(name string) (b []byte, err error) {
	for label := range strings.SplitSeq(strings.TrimSuffix(name, "."), ".") {
		odd := strings.ContainsFunc(label, func(r rune) bool {
			return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_'
		})
		if odd || label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' {
			return nil, fmt.Errorf("%s is no domain name", show(name))
		}
		b = append(append(b, byte(len(label))), label...)
	}
	if b = append(b, 0); len(b) > 255 {
		return nil, fmt.Errorf("%s is longer than a domain name may be", show(name))
	}
	return b, nil
}

func encodeDomains(text string) (b []byte, err error) {
	all, err := elements(text, maxDHCPDomains)
	for _, s := range all {
		name, err := encodeDomain(s)
		if err != nil {
			return nil, err
		}
		b = append(b, name...)
	}
	return b, err
}

// encodeRoutes encodes routes: the length of a prefix, as many of its bytes as that covers, and
// the router (RFC 3442).
func encodeRoutes(text string) (b []byte, err error) {
	all, err := elements(text, maxDHCPRoutes)
	for _, s := range all {
		to, via, ok := strings.Cut(s, " via ")
		prefix, bad := netip.ParsePrefix(strings.TrimSpace(to))
		switch {
		case !ok || bad != nil || !prefix.Addr().Is4():
			return nil, fmt.Errorf("%s is no route", show(s))
		case prefix.Masked() != prefix:
			return nil, fmt.Errorf("%s has bits set behind its length: write %s", prefix, prefix.Masked())
		}
		router, err := netip.ParseAddr(strings.TrimSpace(via))
		if err != nil || !router.Is4() || router.IsMulticast() { // 0.0.0.0 is the link itself
			return nil, fmt.Errorf("%s is not the IPv4 address of a router", show(via))
		}
		b = append(append(b, byte(prefix.Bits())), prefix.Addr().AsSlice()[:(prefix.Bits()+7)/8]...)
		b = append(b, router.AsSlice()...)
	}
	return b, err
}
