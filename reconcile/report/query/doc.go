// Package query has the lists of a fleet - servers, claims, BMCs, endpoints, leases, pools,
// cached images and problems - as rows, and answers what is asked of them by an address:
// which rows, in which order, and which page of them. The API and the web page ask alike.
package query
