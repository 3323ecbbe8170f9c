// Package truth decides, at a start and whenever the status branch is not what this process
// pushed last, where the decisions are: on the branch, in the store, or nowhere that can be
// trusted. Nothing is merged record by record.
package truth
