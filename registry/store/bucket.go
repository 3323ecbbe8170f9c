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
	BucketProgress    Bucket = "progress" // written by the boot service; uses by the endpoint too
	BucketPayload     Bucket = "payload"  // sealed: written by reconcile
	BucketSession     Bucket = "session"  // sealed: written by the BMC clients
	BucketSequence    Bucket = "sequence" // number of the newest commit that changed a record
	BucketMarks       Bucket = "marks"    // of the status branch; written by its publisher
	BucketSeal        Bucket = "seal"     // proof that a seal key is the right one

	BucketWipeProgress Bucket = "wipeprogress" // written by the endpoint, until the ticket ends

	BucketEndpointFacts Bucket = "endpointfacts" // written by DHCP, with its leases
	BucketLease         Bucket = "lease"         // DHCP's leases, which memory has no copy of
)

// Buckets are all buckets that memory has a copy of. Their order is part of the
// Redis commit script's contract only within one call.
var Buckets = []Bucket{
	BucketFleet, BucketServer, BucketBMC, BucketClaim, BucketEndpoint,
	BucketBMCFacts, BucketServerFacts, BucketEndpointFacts,
	BucketProbe, BucketBootState, BucketWipe, BucketWipeProgress,
	BucketProgress, BucketPayload, BucketSession,
	BucketSequence, BucketMarks, BucketSeal,
}

// format is the number of the format of the stored data. It changes with every change of
// the format, and no other format is read.
const format = "1"

// checkFormat refuses a store with another format. A new store has none.
func checkFormat(where, stored string) error {
	if stored == "" || stored == format {
		return nil
	}
	return fmt.Errorf("%s has store format %.20q, and this version of ingot reads format %s only: start the version that wrote it, "+
		"or move the store away (docs/operating.md, Upgrades) so that the records are read from the status branch", where, stored, format)
}

// IsRecord reports whether the values of a bucket are records, which the status branch has, too.
func (b Bucket) IsRecord() bool { return records[b] }

var records = map[Bucket]bool{
	BucketFleet: true, BucketServer: true, BucketBMC: true, BucketClaim: true, BucketEndpoint: true,
}
