// Package event says what each part of a record makes of something that happened to its server.
package event
