// Package fleettest has the manifests and the records that the tests of reconcile and of
// the packages below it begin with, in the model's words: settled fleets, claims, servers,
// network cards, disks and tenants. It imports no package whose tests it serves, so that
// each of them can use it from within; what a plan is made of is in plantest.
package fleettest
