// Package bind gives free servers to claims, says why a claim has no server, and applies
// ServerReadinessRules. It also warns of manifests that name unknown servers or labels.
package bind
