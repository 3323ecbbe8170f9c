package store

import "fmt"

// Bucket is one kind of thing that a store keeps, by name.
type Bucket string

// The buckets. Each has one writer.
const (
	BucketFleet       Bucket = "fleet" // records: written by reconcile
	BucketServer      Bucket = "server"
	BucketBMC         Bucket = "bmc"
	BucketClaim       Bucket = "claim"
	BucketEndpoint    Bucket = "endpoint"
	BucketBMCFacts    Bucket = "bmcfacts" // observations: written by reconcile
	BucketServerFacts Bucket = "serverfacts"
	BucketProbe       Bucket = "probe" // reports: written by the endpoint
	BucketBootState   Bucket = "bootstate"
	BucketWipe        Bucket = "wipe"
	BucketProgress    Bucket = "progress"  // written by the boot service; uses by the endpoint too
	BucketPayload     Bucket = "payload"   // sealed: written by reconcile
	BucketSession     Bucket = "session"   // sealed: written by the BMC clients
	BucketPublished   Bucket = "published" // what the status branch shows; written by its publisher
	BucketSeal        Bucket = "seal"      // what tells whether a seal key is the right one

	BucketWipeProgress Bucket = "wipeprogress" // written by the endpoint, until the ticket ends

	BucketEndpointFacts Bucket = "endpointfacts" // written by DHCP, with its leases
	BucketLease         Bucket = "lease"         // DHCP's leases, which memory has no copy of
)

// Buckets are all buckets that memory has a copy of. Their order is part of the
// Redis commit script's contract only within one call: a store that was written
// before there was one of them has nothing in it.
var Buckets = []Bucket{
	BucketFleet, BucketServer, BucketBMC, BucketClaim, BucketEndpoint,
	BucketBMCFacts, BucketServerFacts, BucketEndpointFacts,
	BucketProbe, BucketBootState, BucketWipe, BucketWipeProgress,
	BucketProgress, BucketPayload, BucketSession,
	BucketPublished, BucketSeal,
}

// schemaVersion is the version of the layout and encoding of what is stored. An older
// Ingot that writes a record anew drops the fields that it does not know. So the version
// is a higher one than that of the last release once a field was added without which a
// machine is wiped, switched off or given away:
//
//	2: Release.Retain and ServerRecord.ShownOn
const schemaVersion = 2

// checkSchema refuses what a newer Ingot wrote. where is the store, for people.
func checkSchema(where string, schema uint64) error {
	if schema <= schemaVersion {
		return nil
	}
	return fmt.Errorf("%s has schema %d, this ingot knows up to %d: run the newer ingot that wrote it, or see docs/operating.md on how to downgrade",
		where, schema, schemaVersion)
}

// IsRecord reports whether the values of a bucket are records: each says when it was last
// changed. The status branch mirrors them, and so copies of a record can be compared.
func (b Bucket) IsRecord() bool { return records[b] }

var records = map[Bucket]bool{
	BucketFleet: true, BucketServer: true, BucketBMC: true, BucketClaim: true, BucketEndpoint: true,
}
