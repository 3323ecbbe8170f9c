package model

import "time"

// Mark identifies one state of all decisions. The IDs of commits do not matter: a status commit
// that was squashed or signed again keeps its mark.
type Mark struct {
	// Line is made for the first commit of a status branch, and kept by all that take over.
	// Within a line the sequences of all writers are comparable.
	Line       string `json:"line,omitempty"`
	Deployment string `json:"deployment,omitempty"` // of the store
	Process    string `json:"process,omitempty"`    // the writer; copies of one store differ by it
	Sequence   uint64 `json:"sequence,omitempty"`   // of the store's commit that noted the push
	Push       string `json:"push,omitempty"`       // random: a copy of the process makes other pushes
}

// Marks are what the store knows about the status branch. They are kept in the store alone.
type Marks struct {
	Deployment string `json:"deployment"` // random, made with the store
	Line       string `json:"line"`       // of the branch; made before the first push
	// Base is the mark of the commit that was pushed or adopted last, zero = none. Later
	// decisions are in the store alone.
	Base Mark `json:"base,omitzero"`
	// Pushing are all pushes since Base, each noted before it is sent: its answer may be lost.
	Pushing []Mark `json:"pushing,omitempty"`
	// Continues is the newest sequence of the branch that was known when the process started, or
	// when it last overwrote a head.
	Continues uint64 `json:"continues,omitempty"`
	// Ended is set if the last process ended because of another one's head.
	Ended bool `json:"ended,omitempty"`
	// Opened is the time of the last opening commit. Alive is a recent time at which a process
	// that used the store was alive.
	Opened time.Time `json:"opened,omitzero"`
	Alive  time.Time `json:"alive,omitzero"`
}

// HeadKind is what the status branch holds.
type HeadKind int

// The kinds of heads.
const (
	HeadAbsent  HeadKind = iota // no branch, or an empty repository
	HeadForeign                 // a branch without any commit of an Ingot
	HeadOurs                    // the mark is of the newest commit of an Ingot
)

// BranchHead is the newest commit of an Ingot on the status branch. Commits of people on top of
// it do not count.
type BranchHead struct {
	Kind HeadKind
	Mark
	Continues uint64 // as Marks.Continues of its writer
	Intact    bool   // its files are those that its writer pushed, and all can be read
	Clean     bool   // its writer stopped, and nothing was decided after it
	Fence     uint64
	Writer    Holder
	At        time.Time // when it was made, by its writer's clock
}
