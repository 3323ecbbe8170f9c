package registry

// The names of the one value in store.BucketFleet, store.BucketSequence, store.BucketMarks and
// store.BucketSeal.
const (
	fleetKey    = "fleet"
	sequenceKey = "sequence"
	marksKey    = "marks"
	sealKey     = "check"
)
