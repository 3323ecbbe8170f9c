// Package booting says what a claim has its server boot, and identifies it.
package booting
