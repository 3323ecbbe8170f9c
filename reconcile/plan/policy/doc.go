// Package policy has what the configuration says about how servers are treated.
package policy
