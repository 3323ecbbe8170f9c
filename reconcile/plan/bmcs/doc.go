// Package bmcs decides about BMCs and the devices on their networks: where each is, why it cannot be
// used, which credentials are tried, when it is read next, and what the result of a reading means.
package bmcs
