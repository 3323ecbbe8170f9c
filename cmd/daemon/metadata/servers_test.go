package metadata

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ingot/bootsvc/metadata"
	"ingot/model"
)

// fleet is a bound server s1, with labels, user data and a probe's report, and
// beside it s2, which is Available.
func fleet() (*model.Desired, *model.Observed) {
	d, o := model.NewDesired(), model.NewObserved()
	d.BMCs["b1"] = &model.BMC{Meta: model.Meta{Name: "b1", Labels: map[string]string{
		keyPrefix + "rack": "7", keyPrefix + "shelf": "1", "rack": "not handed on",
	}}}
	d.Servers["s1"] = &model.Server{Meta: model.Meta{
		Name:        "s1",
		Annotations: map[string]string{keyPrefix + "shelf": "2", keyPrefix + "height": "4"},
		Labels:      map[string]string{keyPrefix + "height": "5"},
	}}
	d.Claims["default/web"] = &model.ServerClaim{
		Meta: model.Meta{Namespace: "default", Name: "web"},
		Spec: model.ServerClaimSpec{UserDataRef: &model.LocalRef{Name: "web"}},
	}
	d.Secrets["default/web"] = &model.Secret{
		Meta: model.Meta{Namespace: "default", Name: "web"}, Type: userDataType,
		Values: map[string]model.Sensitive{"user-data": model.NewSensitive("#cloud-config")},
	}
	o.Servers["s1"] = &model.ServerRecord{RecordIdentity: model.RecordIdentity{Name: "s1", BMC: "b1", UUID: "u1"}, Life: model.RecordLife{State: model.StateReserved}, Claim: model.RecordClaim{Name: "default/web"}}
	o.Servers["s2"] = &model.ServerRecord{RecordIdentity: model.RecordIdentity{Name: "s2", BMC: "b2"}, Life: model.RecordLife{State: model.StateAvailable}}
	report := func(ips ...string) *model.ProbeReport {
		return &model.ProbeReport{Data: model.ProbeData{NetworkInterfaces: []model.ProbeNetworkInterface{{IPAddresses: ips}}}}
	}
	o.Probes["s1"] = report("127.0.0.1", "10.0.0.1", "fe80::1", "10.0.0.3", "10.0.0.9")
	o.Probes["s2"] = report("10.0.0.2", "10.0.0.3")
	return d, o
}

func serversOf(d *model.Desired, o *model.Observed, leases map[string]model.ServerName) *Servers {
	return &Servers{
		Desired: func() *model.Desired { return d }, Observed: func() *model.Observed { return o },
		TrustProbes: leases == nil,
		Holder: func(a netip.Addr) (model.TicketHolder, bool) {
			name, ok := leases[a.String()]
			return model.TicketHolder{Server: name}, ok
		},
	}
}

func TestABoundServerIsKnownByItsAddress(t *testing.T) {
	leases := map[string]model.ServerName{"10.0.0.1": "s1", "10.0.0.2": "s2", "10.0.0.8": "s1"}
	for name, tc := range map[string]struct {
		leases map[string]model.ServerName
		from   string
		want   string
	}{
		"that Ingot leased to it":                             {leases: leases, from: "10.0.0.8", want: "s1"},
		"not one that Ingot leased to a server without claim": {leases: leases, from: "10.0.0.2", want: ""},
		"not one that Ingot leased to an unknown machine":     {leases: leases, from: "10.0.0.5", want: ""},
		"not one that only its probe reported":                {leases: leases, from: "10.0.0.9", want: ""},
		"that its probe reported, where Ingot leases none":    {leases: nil, from: "10.0.0.9", want: "s1"},
		"not one that two probes reported":                    {leases: nil, from: "10.0.0.3", want: ""},
		"not loopback, which every machine has":               {leases: nil, from: "127.0.0.1", want: ""},
		"not a link-local address":                            {leases: nil, from: "fe80::1", want: ""},
		"not that of a server without claim":                  {leases: nil, from: "10.0.0.2", want: ""},
	} {
		t.Run(name, func(t *testing.T) {
			d, o := fleet()
			m, ok := serversOf(d, o, tc.leases).At(netip.MustParseAddr(tc.from))
			if m.Name != tc.want || ok != (tc.want != "") {
				t.Errorf("%s is %q, %t; want %q", tc.from, m.Name, ok, tc.want)
			}
		})
	}
}

func TestAServerIsToldItsLabelsAndUserData(t *testing.T) {
	d, o := fleet()
	got, _ := serversOf(d, o, nil).At(netip.MustParseAddr("10.0.0.1"))
	want := metadata.Machine{
		Name: "s1", UUID: "u1", Metadata: map[string]string{"rack": "7", "shelf": "2", "height": "5"},
		UserData: map[string]model.Sensitive{"user-data": model.NewSensitive("#cloud-config")},
	}
	if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b model.Sensitive) bool { return a.Reveal() == b.Reveal() })); diff != "" {
		t.Errorf("the server is told otherwise (-want +got):\n%s", diff)
	}
}

func TestUserDataThatCannotBeUsedIsNamed(t *testing.T) {
	d, o := fleet()
	d.Secrets["default/web"].Type = "Opaque"
	if _, wrong := userData(d, o.Servers["s1"]); wrong != "Secret default/web is of type Opaque, not metal.ironcore.dev/user-data" {
		t.Errorf("a Secret of another type: %q", wrong)
	}
	delete(d.Secrets, "default/web")
	if _, wrong := userData(d, o.Servers["s1"]); wrong != "Secret default/web is not in Git" {
		t.Errorf("a Secret that is missing: %q", wrong)
	}
}

func TestUserDataIsTheClaimsOwnTenants(t *testing.T) {
	d, o := fleet()
	d.Claims["default/web"].Tenant, d.Secrets["default/web"].Tenant = "alpha", "beta"
	foreign := "Secret default/web is not the claim's own: it stands below another path of git.tenants"
	if data, wrong := userData(d, o.Servers["s1"]); data != nil || wrong != foreign {
		t.Errorf("another tenant's Secret: %q", wrong)
	}
	d.Secrets["default/web"].Tenant = "alpha"
	if data, wrong := userData(d, o.Servers["s1"]); data == nil {
		t.Errorf("its own Secret: %q", wrong)
	}
	o.Servers["s1"].Claim.Tenant = "beta"
	if data, wrong := userData(d, o.Servers["s1"]); data != nil || wrong != "" {
		t.Errorf("a claim of the same name that is another tenant's: %q", wrong)
	}
}
