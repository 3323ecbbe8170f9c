package listen

import (
	"net"
	"testing"

	"ingot/model/must"
)

func TestPublicURL(t *testing.T) {
	host := func(cidrs ...string) func() ([]net.Addr, error) {
		return func() ([]net.Addr, error) {
			var all []net.Addr
			for _, c := range cidrs {
				ip, n, err := net.ParseCIDR(c)
				if err != nil {
					return nil, err
				}
				all = append(all, &net.IPNet{IP: ip, Mask: n.Mask})
			}
			return all, nil
		}
	}
	tcp := func(s string) net.Addr {
		return must.Get(net.ResolveTCPAddr("tcp", s))(t)
	}
	for name, tc := range map[string]struct {
		configured string
		listener   net.Addr
		host       func() ([]net.Addr, error)
		want       string
	}{
		"what is configured counts": {
			configured: "https://boot.example.com/", listener: tcp(":8082"), host: host(),
			want: "https://boot.example.com",
		},
		"loopback stays loopback": {
			listener: tcp("127.0.0.1:8082"), host: host("10.0.0.5/24"), want: "http://127.0.0.1:8082",
		},
		"an address of its own is taken": {
			listener: tcp("10.0.0.9:8082"), host: host("10.0.0.5/24"), want: "http://10.0.0.9:8082",
		},
		"the first address that is not loopback": {
			listener: tcp(":8082"), host: host("127.0.0.1/8", "10.0.0.5/24", "10.1.0.5/24"), want: "http://10.0.0.5:8082",
		},
		"IPv4 before IPv6": {
			listener: tcp(":8082"), host: host("fe80::1/64", "2001:db8::5/64", "10.0.0.5/24"), want: "http://10.0.0.5:8082",
		},
		"IPv6 when there is nothing else": {
			listener: tcp("[::]:8082"), host: host("::1/128", "fe80::1/64", "2001:db8::5/64"), want: "http://[2001:db8::5]:8082",
		},
		"loopback when the machine has nothing else": {
			listener: tcp(":8082"), host: host("127.0.0.1/8"), want: "http://127.0.0.1:8082",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := PublicURL(tc.configured, tc.listener, tc.host)
			if err != nil || got != tc.want {
				t.Errorf("got %s, %v; want %s", got, err, tc.want)
			}
		})
	}
}
