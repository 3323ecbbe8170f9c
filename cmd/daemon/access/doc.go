// Package access decides who may look at the admin listener, and under which names it
// answers: users with passwords, a proxy that knows its users, TLS, and the Host header. It
// sets the headers that keep browsers from doing anything else with what they are shown.
package access
