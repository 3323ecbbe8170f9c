package metadata

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"ingot/model"
)

// rack is the servers by address.
type rack map[string]Machine

func (r rack) At(a netip.Addr) (Machine, bool) {
	m, ok := r[a.String()]
	return m, ok
}

var servers = rack{
	"10.0.0.7": {
		Name: "s7", UUID: "4c4c4544-0011-2233-8044-b4c04f4d3132",
		Metadata: map[string]string{"rack": "7", "location": "Berlin", "server-name": "spoofed", "user-data": "spoofed"},
		UserData: map[string]model.Sensitive{"user-data": model.NewSensitive("#cloud-config\n"), "proxy": model.NewSensitive("http://p")},
	},
	"10.0.0.8": {Name: "s8"},
	"10.0.0.9": {Name: "s9", UserDataWrong: "Secret default/x is of type Opaque"},
	"fd00::a":  {Name: "s10"},
}

func TestAServerIsToldAboutItself(t *testing.T) {
	for name, tc := range map[string]struct {
		from, path string
		plain      bool   // without the header
		flavor     string // the header, with plain
		forged     string // headers that proxies write
		method     string
		code       int
		body       string
	}{
		"all of it": {
			from: "10.0.0.7:1", path: "/v1/", code: 200,
			body: `{"location":"Berlin","rack":"7","server-name":"s7",` +
				`"user-data":{"proxy":"http://p","user-data":"#cloud-config\n"}}` + "\n",
		},
		"all of one without user data":    {from: "10.0.0.8:1", path: "/v1", code: 200, body: `{"server-name":"s8"}` + "\n"},
		"by IPv6":                         {from: "[fd00::a]:1", path: "/v1/server-name", code: 200, body: "s10"},
		"by IPv4 within IPv6":             {from: "[::ffff:10.0.0.7]:1", path: "/v1/rack", code: 200, body: "7"},
		"a label cannot pose as its name": {from: "10.0.0.7:1", path: "/v1/server-name", code: 200, body: "s7"},
		"one field":                       {from: "10.0.0.7:1", path: "/v1/location", code: 200, body: "Berlin"},
		"no such field": {
			from: "10.0.0.7:1", path: "/v1/height", code: 404, body: "there is no such field here\n",
		},
		"nothing below a field": {
			from: "10.0.0.7:1", path: "/v1/rack/x", code: 404, body: "there is no such field here\n",
		},
		"its user data": {
			from: "10.0.0.7:1", path: "/v1/user-data", code: 200, body: `{"proxy":"http://p","user-data":"#cloud-config\n"}` + "\n",
		},
		"one key of its user data": {from: "10.0.0.7:1", path: "/v1/user-data/proxy", code: 200, body: "http://p"},
		"no such key": {
			from: "10.0.0.7:1", path: "/v1/user-data/x", code: 404, body: "there is no such user data here\n",
		},
		"no user data": {
			from: "10.0.0.8:1", path: "/v1/user-data", code: 404, body: "there is no user data here\n",
		},
		"user data of another type": {
			from: "10.0.0.9:1", path: "/v1/user-data", code: 500,
			body: "the user data of this server's claim cannot be used; its status says why\n",
		},
		"user data of another type, in all": {
			from: "10.0.0.9:1", path: "/v1/", code: 500, body: "the user data of this server's claim cannot be used; its status says why\n",
		},
		"not without the header": {
			from: "10.0.0.7:1", path: "/v1/", plain: true, code: 403, body: "missing required header: Metadata-Flavor: IronCore Metal\n",
		},
		"not to somebody else": {
			from: "10.0.0.99:1", path: "/v1/", code: 404, body: "no bound server has the address that this request came from\n",
		},
		"not to an address that is none": {
			from: "pipe", path: "/v1/", code: 400, body: "the address of the client cannot be read\n",
		},
		"nothing can be written": {
			from: "10.0.0.7:1", path: "/v1/rack", method: http.MethodPut, code: 405, body: "only GET and HEAD are served here\n",
		},
		"EC2's index": {
			from: "10.0.0.7:1", path: "/latest/meta-data/", plain: true, code: 200,
			body: "hostname\ninstance-id\nlocal-hostname\nlocation\nrack\n",
		},
		"a label cannot pose as its name in EC2's form": {
			from: "10.0.0.7:1", path: "/latest/meta-data/server-name", plain: true, code: 404, body: "there is no such field here\n",
		},
		"an address that is claimed in headers counts for nothing": {
			from: "10.0.0.99:1", path: "/v1/user-data", forged: "10.0.0.7", code: 404,
			body: "no bound server has the address that this request came from\n",
		},
		"nor does it keep a server from what is its own": {
			from: "10.0.0.8:1", path: "/v1/server-name", forged: "10.0.0.7", code: 200, body: "s8",
		},
		"user data of another type, in EC2's form": {
			from: "10.0.0.9:1", path: "/latest/user-data", plain: true, code: 500,
			body: "the user data of this server's claim cannot be used; its status says why\n",
		},
		"user data of another type hides nothing else": {from: "10.0.0.9:1", path: "/v1/server-name", code: 200, body: "s9"},
		"the header with another value": {
			from: "10.0.0.7:1", path: "/v1/rack", flavor: "Google", plain: true, code: 403,
			body: "missing required header: Metadata-Flavor: IronCore Metal\n",
		},
		"EC2's instance ID": {
			from: "10.0.0.7:1", path: "/2009-04-04/meta-data/instance-id", plain: true, code: 200,
			body: "4c4c4544-0011-2233-8044-b4c04f4d3132",
		},
		"EC2's instance ID without UUID": {
			from: "10.0.0.8:1", path: "/latest/meta-data/instance-id", plain: true, code: 200, body: "s8",
		},
		"EC2's user data": {
			from: "10.0.0.7:1", path: "/latest/user-data", plain: true, code: 200, body: "#cloud-config\n",
		},
		"EC2's user data when there is none": {
			from: "10.0.0.8:1", path: "/latest/user-data", plain: true, code: 404, body: "there is no user data here\n",
		},
		"EC2's root": {
			from: "10.0.0.8:1", path: "/latest", plain: true, code: 200, body: "meta-data\nuser-data\n",
		},
		"NoCloud's meta-data": {
			from: "10.0.0.8:1", path: "/nocloud/meta-data", plain: true, code: 200,
			body: `{"hostname":"s8","instance-id":"s8","local-hostname":"s8"}` + "\n",
		},
		"NoCloud's user-data": {
			from: "10.0.0.7:1", path: "/nocloud/user-data", plain: true, code: 200, body: "#cloud-config\n",
		},
		"NoCloud's vendor-data": {from: "10.0.0.7:1", path: "/nocloud/vendor-data", plain: true, code: 200},
		"EC2 not to somebody else": {
			from: "10.0.0.99:1", path: "/latest/user-data", plain: true, code: 404,
			body: "no bound server has the address that this request came from\n",
		},
		"another path": {
			from: "10.0.0.7:1", path: "/etc/passwd", plain: true, code: 404, body: "there is nothing here; /v1/ is where it begins\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			method := tc.method
			if method == "" {
				method = http.MethodGet
			}
			r := httptest.NewRequest(method, "http://metadata"+tc.path, nil)
			r.RemoteAddr = tc.from
			if !tc.plain {
				r.Header.Set("Metadata-Flavor", Flavor)
			}
			if tc.flavor != "" {
				r.Header.Set("Metadata-Flavor", tc.flavor)
			}
			for _, name := range []string{"X-Forwarded-For", "X-Real-Ip", "Forwarded", "True-Client-Ip"} {
				if tc.forged != "" {
					r.Header.Set(name, tc.forged)
				}
			}
			w := httptest.NewRecorder()
			NewHandler(Options{Machines: servers}).ServeHTTP(w, r)
			if w.Code != tc.code || w.Body.String() != tc.body {
				t.Errorf("answered %d %q, want %d %q", w.Code, w.Body.String(), tc.code, tc.body)
			}
		})
	}
}

// machinesOnLinks are machines by their addresses, those that are link-local by link.
type machinesOnLinks map[netip.Addr]Machine

func (m machinesOnLinks) At(a netip.Addr) (Machine, bool) {
	found, ok := m[a]
	return found, ok
}

// A link-local address is one machine's on one link, and may be another's on the next.
func TestALinkLocalAddressIsThatOfItsLink(t *testing.T) {
	handler := NewHandler(Options{Machines: machinesOnLinks{
		netip.MustParseAddr("fe80::7%rack1"): {Name: "s7"}, netip.MustParseAddr("10.0.0.7"): {Name: "s7"},
	}})
	for from, want := range map[string]int{
		"[fe80::7%rack1]:1": 200, "[fe80::7%rack2]:1": 404, "[fe80::7]:1": 404, "[::ffff:10.0.0.7]:1": 200,
	} {
		r := httptest.NewRequest(http.MethodGet, "http://metadata/latest/meta-data/hostname", nil)
		r.RemoteAddr = from
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		if w.Code != want {
			t.Errorf("%s: answered %d, want %d", from, w.Code, want)
		}
	}
}

func TestAHeadHasNoBodyButItsLength(t *testing.T) {
	r := httptest.NewRequest(http.MethodHead, "http://metadata/latest/user-data", nil)
	r.RemoteAddr = "10.0.0.7:1"
	w := httptest.NewRecorder()
	NewHandler(Options{Machines: servers}).ServeHTTP(w, r)
	if got := w.Header().Get("Content-Length"); w.Body.Len() != 0 || got != "14" {
		t.Errorf("body %q with length %s, want none and 14", w.Body.String(), got)
	}
}

func FuzzPath(f *testing.F) {
	f.Add("/v1/user-data/proxy")
	f.Add("//latest//meta-data/")
	f.Fuzz(func(t *testing.T, path string) {
		form, rest := formOf(path)
		m := servers["10.0.0.8"]
		for _, a := range []answer{m.v1(rest), m.ec2(rest), m.noCloud(rest)} {
			if strings.Contains(a.body, "cloud-config") || a.code == 0 || form == "" {
				t.Errorf("%q is answered %+v", path, a)
			}
		}
	})
}
