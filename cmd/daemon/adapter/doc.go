// Package adapter has the parts of the daemon in the shape that one another's interfaces
// ask for: the store, the BMCs and what machines boot as reconcile knows them, and the
// errors of BMCs and images with their reasons. It knows no daemon.
package adapter
