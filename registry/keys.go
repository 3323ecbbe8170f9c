package registry

// The names of the one value in store.BucketFleet, store.BucketPublished and store.BucketSeal.
const (
	fleetKey     = "fleet"
	publishedKey = "published"
	sealKey      = "check"
)
