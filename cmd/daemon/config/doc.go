// Package config is the configuration of the daemon: its settings and their defaults, how
// they are read from a file and from the environment, and what is wrong with them.
//
// A setting is a field of Options, or of a struct in it. Its JSON name is its key in the
// file, and with INGOT_ and underscores its environment variable. Secrets are no settings:
// a setting names the file that holds one.
package config
