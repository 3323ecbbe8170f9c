// Package world puts together all that one plan knows: it decides nothing about servers.
package world
