package model

import "strings"

// Names that must not be mixed have types of their own.
type (
	// ServerName names a Server; Servers have no namespace.
	ServerName string
	// BMCName names a BMC; BMCs have no namespace.
	BMCName string
	// ClaimName names a ServerClaim as "namespace/name", or a ServerBootConfiguration, which
	// has a server as a claim has one, as "ServerBootConfiguration namespace/name".
	ClaimName string
	// ObjectName names an object of any other namespaced kind as "namespace/name".
	ObjectName string
)

// DefaultNamespace is where namespaced objects are that name no namespace.
const DefaultNamespace = "default"

// Named joins a namespace and a name, with DefaultNamespace for none.
func Named[N ~string](namespace, name string) N {
	if namespace == "" {
		namespace = DefaultNamespace
	}
	return N(namespace + "/" + name)
}

// SplitName is the inverse of Named. Of a ClaimName that is not of a ServerClaim it leaves
// out the kind.
func SplitName[N ~string](n N) (namespace, name string) {
	namespace, name, _ = strings.Cut(strings.TrimPrefix(string(n), bootConfigurationPrefix), "/")
	return namespace, name
}

// bootConfigurationPrefix begins the ClaimNames of ServerBootConfigurations: no namespace
// holds a space.
const bootConfigurationPrefix = string(KindServerBootConfiguration) + " "

// BootConfigurationName is the ClaimName of a ServerBootConfiguration.
func BootConfigurationName(namespace, name string) ClaimName {
	return ClaimName(bootConfigurationPrefix + Named[string](namespace, name))
}

// IsBootConfiguration reports whether the name is of a ServerBootConfiguration.
func (n ClaimName) IsBootConfiguration() bool {
	return strings.HasPrefix(string(n), bootConfigurationPrefix)
}

// Identity is the identity of a Server's manifest.
func (n ServerName) Identity() Identity { return Identity{Kind: KindServer, Name: string(n)} }

// Identity is the identity of a BMC's manifest.
func (n BMCName) Identity() Identity { return Identity{Kind: KindBMC, Name: string(n)} }

// Identity is the identity of the manifest of a ServerClaim or ServerBootConfiguration.
func (n ClaimName) Identity() Identity {
	namespace, name := SplitName(n)
	if n.IsBootConfiguration() {
		return Identity{Kind: KindServerBootConfiguration, Namespace: namespace, Name: name}
	}
	return Identity{Kind: KindServerClaim, Namespace: namespace, Name: name}
}

// ClaimName is the inverse of ClaimName.Identity.
func (i Identity) ClaimName() ClaimName {
	if i.Kind == KindServerBootConfiguration {
		return BootConfigurationName(i.Namespace, i.Name)
	}
	return Named[ClaimName](i.Namespace, i.Name)
}

// MaintenanceIdentity is the identity of a ServerMaintenance's manifest.
func MaintenanceIdentity(name string) Identity {
	return Identity{Kind: KindServerMaintenance, Name: name}
}

// ReadinessRuleIdentity is the identity of a ServerReadinessRule's manifest.
func ReadinessRuleIdentity(name string) Identity {
	return Identity{Kind: KindServerReadinessRule, Name: name}
}

// Identity is what makes an object in Git that object and no other. Namespace
// is empty for kinds that have none.
type Identity struct {
	Kind      Kind   `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// String returns "Kind namespace/name", as people write it in errors.
func (i Identity) String() string {
	if i.Namespace == "" {
		return string(i.Kind) + " " + i.Name
	}
	return string(i.Kind) + " " + i.Namespace + "/" + i.Name
}
