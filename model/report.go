package model

// Report is what the status branch shows: one document a path. Documents are
// shared between reports: an unchanged one is the same pointer, so that only
// changed ones are written out again.
type Report struct {
	Revision Revision // for the trailer
	Fence    uint64   // for the trailer: the writer's fencing number
	Holder   Holder   // for the trailer: the writer
	// Mark is of the decisions in it, Continues and Clean as in BranchHead: for the trailers.
	Mark      Mark
	Continues uint64
	Clean     bool
	// Subject says what happened, in at most 72 characters; Body has a line for
	// each change.
	Subject   string
	Body      []string
	Documents map[string]*Document // by slash-separated path: servers/s1.yaml
}

// Document is one file of the status branch: either Object, written as YAML with
// its JSON field names, or Text as it stands.
type Document struct {
	Object any
	Text   string
}

// The paths of the status branch.
const (
	ReportReadme = "README.md"
	ReportFleet  = "fleet.yaml"
	ReportRacks  = "racks/" // pictures, with the names that people gave to locations and racks
)
