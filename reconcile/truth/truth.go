package truth

import (
	"slices"

	"ingot/model"
)

// Head is the newest commit of an Ingot on the status branch, and whether its writer may live.
type Head struct {
	model.BranchHead
	MayLive bool // its writer may be running; only asked about another deployment
}

// Store is what the store says about decisions.
type Store struct {
	model.Marks
	Last  uint64 // sequence of its newest commit, 0 = there is none
	Whole bool   // no document is missing or damaged
}

// From is where the documents come from.
type From string

// Where documents may come from.
const (
	Nothing   From = ""
	FromHead  From = "status branch"
	FromStore From = "store"
)

// Verdict is what to do.
type Verdict struct {
	Case Case
	From From
	// Fill has what the store lost filled in from the head.
	Fill bool
	// Recover: decisions after the head were lost. Their effects that do not wait for the branch
	// may have happened, see the function Recover. With Fill this is about the filled records only.
	Recover bool
	// Choose: observe only until a commit names the token.
	Choose bool
	// Refuse: end with exit code 4; --take-over overrules it.
	Refuse bool
}

// Case names a verdict in logs, metrics and tests.
type Case string

// The cases.
const (
	NewFleet       Case = "NewFleet"
	UpToDate       Case = "UpToDate"
	HalfPushed     Case = "HalfPushed" // pushed, and killed before that was noted
	StoreOutdated  Case = "StoreOutdated"
	StoreLost      Case = "StoreLost"
	StoreDamaged   Case = "StoreDamaged"
	BranchLost     Case = "BranchLost"
	BranchReset    Case = "BranchReset"
	BranchEdited   Case = "BranchEdited"
	BranchForeign  Case = "BranchForeign" // no commit on it is an Ingot's
	Forked         Case = "Forked"        // a copy of this store pushed
	AnotherIngot   Case = "AnotherIngot"
	AnotherFleet   Case = "AnotherFleet"
	AnotherAdopted Case = "AnotherAdopted"
	NeverPushed    Case = "NeverPushed"
)

// Cases are all cases.
var Cases = []Case{
	NewFleet, UpToDate, HalfPushed, StoreOutdated, StoreLost, StoreDamaged, BranchLost, BranchReset, BranchEdited, BranchForeign,
	Forked, AnotherIngot, AnotherFleet, AnotherAdopted, NeverPushed,
}

// Compare is the whole decision of a start. takeOver says that the head's writer is known not to run.
func Compare(s Store, h Head, takeOver bool) Verdict {
	based := s.Base != model.Mark{}
	empty := s.Deployment == "" || s.Last == 0 && !based
	switch {
	case h.Kind != model.HeadOurs && empty:
		return Verdict{Case: NewFleet}
	case h.Kind == model.HeadForeign:
		return Verdict{Case: BranchForeign, Choose: true}
	case h.Kind == model.HeadAbsent && !based:
		return fromStore(NeverPushed, s)
	case h.Kind == model.HeadAbsent:
		return fromStore(BranchLost, s)
	case based && h.Line != s.Base.Line:
		return Verdict{Case: AnotherFleet, Choose: true}
	case based && h.Deployment != s.Deployment && h.Sequence < s.Base.Sequence:
		return fromStore(BranchReset, s) // older than the adopted head
	case h.Deployment != s.Deployment && (h.MayLive || s.Ended) && !takeOver:
		return Verdict{Case: AnotherIngot, Refuse: true}
	case h.Deployment != s.Deployment && empty:
		return fromHead(StoreLost, h)
	case h.Deployment != s.Deployment:
		return fromHead(AnotherAdopted, h)
	}
	return own(s, h, empty)
}

func own(s Store, h Head, empty bool) Verdict {
	switch {
	case empty: // only the deployment's name is left
		return fromHead(StoreLost, h)
	case h.Sequence > s.Last:
		return fromHead(StoreOutdated, h)
	case h.Sequence < s.Base.Sequence:
		return fromStore(BranchReset, s)
	case h.Mark != s.Base && !slices.Contains(s.Pushing, h.Mark): // a copy of this store pushed
		return Verdict{Case: Forked, Choose: true}
	case !h.Intact && s.Whole:
		return Verdict{Case: BranchEdited, From: FromStore}
	case !h.Intact:
		return Verdict{Case: BranchEdited, Choose: true}
	case !s.Whole:
		return Verdict{Case: StoreDamaged, From: FromStore, Fill: true, Recover: true}
	case h.Mark == s.Base:
		return Verdict{Case: UpToDate, From: FromStore}
	}
	return Verdict{Case: HalfPushed, From: FromStore}
}

func fromHead(c Case, h Head) Verdict {
	if !h.Intact {
		return Verdict{Case: c, Choose: true}
	}
	return Verdict{Case: c, From: FromHead, Recover: !h.Clean}
}

// fromStore uses the store's copy, if it has all of it.
func fromStore(c Case, s Store) Verdict {
	if !s.Whole {
		return Verdict{Case: c, Choose: true}
	}
	return Verdict{Case: c, From: FromStore}
}

// Next is what a running process does about the head.
type Next string

// The reactions to a head.
const (
	GoOn      Next = "GoOn"      // it is its own newest commit
	Note      Next = "Note"      // its own push whose answer was lost: it is the base
	Overwrite Next = "Overwrite" // of the past, edited or gone
	Again     Next = "Again"     // compare as at a start
	End       Next = "End"       // exit code 4
)

// Watch judges the head while a process runs. opened says that the process has noted a push of
// its own as base. A head that does not know that push is then on the branch only because a person
// set the branch back; before that push it may be the work of a living process.
func Watch(s model.Marks, process string, opened bool, h model.BranchHead) Next {
	switch {
	case h.Kind == model.HeadOurs && h.Mark == s.Base && h.Intact:
		return GoOn
	case h.Kind == model.HeadOurs && h.Process == process && slices.Contains(s.Pushing, h.Mark):
		return Note
	case !opened:
		return Again
	case h.Kind != model.HeadOurs, h.Mark == s.Base:
		return Overwrite
	case h.Line != s.Base.Line:
		return End
	case h.Continues >= s.Base.Sequence: // its writer has judged what this process pushed
		return End
	case h.Process == process && h.Sequence > s.Base.Sequence: // a clone of this process
		return End
	}
	return Overwrite
}

// Continues is noted when a head is adopted, and before one is overwritten.
func Continues(s model.Marks, h model.BranchHead) uint64 {
	return max(s.Continues, s.Base.Sequence, h.Sequence)
}
