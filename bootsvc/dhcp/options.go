package dhcp

import (
	"maps"
	"slices"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"ingot/bootsvc/dhcp/lease"
	"ingot/model"
)

// OptionText is the value of an option as it is written in the configuration, where 9000 and
// "9000" are the same.
type OptionText string

// UnmarshalText implements encoding.TextUnmarshaler.
func (o *OptionText) UnmarshalText(text []byte) error {
	*o = OptionText(text)
	return nil
}

// ClientOptions are the options of DHCPv4 that clients who ask for them are told, by name or number.
type ClientOptions map[string]OptionText

func (o ClientOptions) encoded() model.DHCPOptions {
	all := make(model.DHCPOptions, len(o))
	for name, value := range o {
		_ = all.Set(name, string(value))
	}
	return all
}

// bootOptions lead a client to a boot file. Clients that boot are told those that belong to
// their ticket, and no others.
var bootOptions = []byte{
	dhcpv4.OptionVendorSpecificInformation.Code(), dhcpv4.OptionTFTPServerName.Code(), dhcpv4.OptionBootfileName.Code(),
	dhcpv4.OptionTFTPServerAddress.Code(),
	dhcpv4.OptionRootPath.Code(), // a disk in the network, from which iPXE boots
	optionConfigFile, optionPathPrefix,
}

// Options of boot loaders (RFC 5071 §4, §5) that the library has no name for.
const (
	optionConfigFile = 209
	optionPathPrefix = 210
)

// options4 returns the options that p's client is told on a subnet, by code.
func (n service4) options4(p packet4, s *lease.Subnet, boots bool) model.DHCPOptions {
	told, own := n.told[s.Index], n.server.table.Options(lease.Query{Subnets: []*lease.Subnet{s}, MAC: p.mac, ClientID: p.clientID(), Port: n.portOf(p)})
	if len(told)+len(own) == 0 {
		return nil
	}
	all := maps.Clone(told)
	maps.Copy(all, own)
	asked := p.Options.Get(dhcpv4.OptionParameterRequestList)
	maps.DeleteFunc(all, func(code byte, _ []byte) bool {
		return len(asked) > 0 && !slices.Contains(asked, code) || boots && slices.Contains(bootOptions, code)
	})
	return all
}

// configured adds options, and leaves out those that r has.
func (r *reply4) configured(all model.DHCPOptions) {
	for _, code := range slices.Sorted(maps.Keys(all)) {
		if !slices.ContainsFunc(r.options, func(o option4) bool { return o.code == code }) {
			r.add(code, all[code])
		}
	}
	if file := all[dhcpv4.OptionBootfileName.Code()]; r.file == "" && len(file) <= maxFile4 {
		r.file = string(file) // where old devices look
	}
	if servers := all[dhcpv4.OptionTFTPServerAddress.Code()]; !r.siaddr.IsValid() && len(servers) >= 4 {
		r.siaddr = address4(servers[:4])
	}
}
