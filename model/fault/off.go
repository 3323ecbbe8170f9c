//go:build !faultpoints

package fault

// Point does nothing in a program that is not built for it.
func Point(string) {}
