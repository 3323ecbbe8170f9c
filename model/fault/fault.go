// Package fault marks the points at which a process may be killed: before and after
// each effect and each save. A test builds the program with the tag faultpoints and
// has it stop at the n-th of them; without the tag a Point is nothing.
package fault

// The kinds of points.
const (
	BeforeCommit    = "before-commit"    // a commit to the store
	AfterCommit     = "after-commit"     //
	BeforeBMC       = "before-bmc"       // a request to a BMC that changes something
	AfterBMC        = "after-bmc"        //
	BeforePush      = "before-push"      // a push of the status branch
	AfterPush       = "after-push"       //
	BeforePublished = "before-published" // noting in the store what was pushed
	AfterPublished  = "after-published"  //
	BeforeState     = "before-state"     // writing the state file of the Git source
	AfterState      = "after-state"      //
)
