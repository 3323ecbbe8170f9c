package model

import "strings"

// Names that must not be mixed have types of their own.
type (
	// ServerName names a Server; Servers have no namespace.
	ServerName string
	// BMCName names a BMC; BMCs have no namespace.
	BMCName string
	// ClaimName names a ServerClaim as "namespace/name".
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

// SplitName is the inverse of Named.
func SplitName[N ~string](n N) (namespace, name string) {
	namespace, name, _ = strings.Cut(string(n), "/")
	return namespace, name
}

// Identity is the identity of a Server's manifest.
func (n ServerName) Identity() Identity { return Identity{Kind: KindServer, Name: string(n)} }

// Identity is the identity of a ServerClaim's manifest.
func (n ClaimName) Identity() Identity {
	namespace, name := SplitName(n)
	return Identity{Kind: KindServerClaim, Namespace: namespace, Name: name}
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
