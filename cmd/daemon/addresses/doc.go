// Package addresses says which object has an IP address, by the manifests in Git and by the
// records: the evidence for telling machines apart that is neither a lease nor seen on a
// link.
package addresses
