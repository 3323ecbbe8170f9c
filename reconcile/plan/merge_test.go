package plan

import (
	"ingot/model"
	"time"
)

var mergeNow = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// at makes a version.
func at(fence, seq uint64) model.Version { return model.Version{Fence: fence, Seq: seq} }

// copyOf is a copy of server s1's record.
func copyOf(v model.Version, state model.ServerState, claim model.ClaimName, edit ...func(*model.ServerRecord)) *model.ServerRecord {
	r := &model.ServerRecord{Version: v, Name: "s1", State: state, Claim: claim}
	for _, e := range edit {
		e(r)
	}
	return r
}
