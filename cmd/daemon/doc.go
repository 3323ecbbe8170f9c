// Package daemon plugs the parts of Ingot together: it reads the configuration,
// binds the listeners, and runs all parts and stops them as one. It is the only
// package that knows all others.
package daemon
