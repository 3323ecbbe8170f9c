package config

import (
	"net"
	"path"
	"slices"
	"strconv"

	"ingot/bootsvc/dhcp"
)

func (c *checks) listeners(o *Options) {
	taken := make(map[string]string)
	for _, l := range o.Listeners() {
		if l.Address == "" {
			continue
		}
		_, port, err := net.SplitHostPort(l.Address)
		n, notNumber := strconv.ParseUint(port, 10, 16)
		if err != nil || notNumber != nil {
			c.wrong(l.Key, "%q is not allowed: must be host:port or :port, such as 127.0.0.1:8080; leave it empty to turn the "+
				"listener off", l.Address)
			continue
		}
		if other, ok := taken[l.Address]; ok && n != 0 {
			c.wrong(l.Key, "%q is taken by %s; give one of them another port", l.Address, other)
		}
		taken[l.Address] = l.Key
	}
}

func (c *checks) networks(o *Options) {
	for _, p := range dhcp.Check(o.DHCP) {
		c.wrong("dhcp"+p.Path, "%s", p.Message)
	}
	if slices.ContainsFunc(o.DHCP, dhcp.Network.Boots) && o.Boot.Listen == "" {
		c.wrong("boot.listen", "is empty, though dhcp has a host network: servers there are told to boot from it; set it, such as \":8082\"")
	}
	if address := o.TFTP.Listen; address != "" {
		if _, port, err := net.SplitHostPort(address); err != nil || port == "" {
			c.wrong("tftp.listen", "%q is not allowed: must be host:port or :port, such as :69; leave it empty to turn TFTP off", address)
		}
	}
	for _, dir := range o.Boot.LoaderDirs {
		if !path.IsAbs(dir) {
			c.wrong("boot.loaderDirs", "%q is not allowed: must be the whole path of a folder, such as /usr/lib/ipxe", dir)
		}
	}
}
