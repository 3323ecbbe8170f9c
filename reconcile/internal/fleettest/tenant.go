package fleettest

import (
	"net/netip"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ingot/model"
)

// Tenants are four, of which alpha and beta share the namespace default.
var Tenants = model.Tenants{
	{
		Path: "ops", Kinds: []model.Kind{"*"}, Namespaces: []string{"*"},
		BMCNetworks: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")},
	},
	{
		Path: "alpha", Namespaces: []string{"default"},
		Servers: &metav1.LabelSelector{MatchLabels: map[string]string{"rack": "b"}},
	},
	{Path: "beta", Kinds: []model.Kind{"*"}, Namespaces: []string{"default"}},
	{
		Path: "gamma", Namespaces: []string{"default"},
		Kinds: []model.Kind{model.KindServerClaim, model.KindServerMaintenance, model.KindBMCSecret},
	},
}
