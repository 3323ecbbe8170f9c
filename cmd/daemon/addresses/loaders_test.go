package addresses

import (
	"slices"
	"testing"

	"ingot/bootsvc/netboot"
	"ingot/model"
)

func TestWhichLoaderGitGives(t *testing.T) {
	with := func(kind string) model.Meta {
		return model.Meta{Annotations: map[string]string{model.AnnotationBootLoader: kind}}
	}
	var d *model.Desired
	l := Loaders{Desired: func() *model.Desired { return d }}
	if got := l.Kind("s1", "02:00:00:00:00:01"); got != "" {
		t.Errorf("before Git was read: %q", got)
	}
	d = &model.Desired{
		Servers: map[model.ServerName]*model.Server{"s1": {Meta: with("snponly")}, "s2": {}},
		Endpoints: map[string]*model.Endpoint{
			"e1":        {Meta: with("ipxe"), Spec: model.EndpointSpec{MACAddress: "02:00:00:00:00:01"}},
			"of a port": {Meta: with("shim")},
			"e2":        {Spec: model.EndpointSpec{MACAddress: "02:00:00:00:00:02"}},
		},
	}
	for title, tc := range map[string]struct {
		server model.ServerName
		mac    string
		want   netboot.LoaderKind
	}{
		"its server's counts before its card's": {"s1", "02:00:00:00:00:01", netboot.LoaderSNPOnly},
		"its card's":                            {"s2", "02:00:00:00:00:01", netboot.LoaderIPXE},
		"that of a card of no server":           {"", "02:00:00:00:00:01", netboot.LoaderIPXE},
		"none":                                  {"s2", "02:00:00:00:00:02", ""},
		"none, as no card is known":             {"s2", "", ""},
	} {
		if got := l.Kind(tc.server, tc.mac); got != tc.want {
			t.Errorf("%s: got %q, want %q", title, got, tc.want)
		}
	}
	d = &model.Desired{}
	if got := l.Kind("s1", "02:00:00:00:00:01"); got != "" {
		t.Errorf("after a commit took it away: %q", got)
	}
}

// TestTheKindsOfLoadersAreThoseOfManifests holds what a manifest may say to what there is.
func TestTheKindsOfLoadersAreThoseOfManifests(t *testing.T) {
	values := model.BootLoaders()
	for _, kind := range netboot.LoaderKinds {
		if !slices.Contains(values, string(kind)) {
			t.Errorf("%s is not among %v", kind, values)
		}
	}
	if len(values) != len(netboot.LoaderKinds) {
		t.Errorf("manifests may say %v, and there are %v", values, netboot.LoaderKinds)
	}
}
