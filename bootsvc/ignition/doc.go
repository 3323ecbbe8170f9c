// Package ignition makes what servers are configured with when they boot: the Ignition
// that starts a probe, and that of a claim with what reports the server up; or, where a
// claim brings them, cloud-init's documents and an iPXE script of its own.
//
// A source (source.go) is Butane or Ignition JSON of a person. It is translated once into
// a document with holes (document.go), which is filled in per ticket. All that a ticket
// hands out beside its image is one Payload, sealed by whoever keeps it. What is wrong
// with a source is a SourceError, which names lines and quotes no value.
package ignition
