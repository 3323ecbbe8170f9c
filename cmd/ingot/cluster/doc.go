// Package cluster makes manifests for Ingot of what kubectl prints of a cluster in which
// metal-operator runs.
//
// Read takes in what kubectl printed, Convert makes files of it. What Kubernetes and
// metal-operator note for themselves is left out, and bindings are kept, so that Ingot adopts
// servers as they run: a claim that has a server names it, and the server names the claim.
// Nothing is dropped without being listed.
package cluster
