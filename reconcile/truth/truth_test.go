package truth

import (
	"testing"

	"ingot/model"
)

// mark is a mark of the line "L" that the only process of a deployment wrote.
func mark(deployment string, sequence uint64) model.Mark {
	return model.Mark{Line: "L", Deployment: deployment, Process: "process of " + deployment, Sequence: sequence}
}

// storeA is a whole store of deployment A.
func storeA(base, last uint64, change ...func(*Store)) Store {
	s := Store{Last: last, Whole: true}
	s.Deployment, s.Line, s.Base = "A", "L", mark("A", base)
	s.Pushing = []model.Mark{mark("A", 104), mark("A", 105)}
	for _, f := range change {
		f(&s)
	}
	return s
}

// headOf is an intact head.
func headOf(deployment string, sequence uint64, change ...func(*Head)) Head {
	h := Head{BranchHead: model.BranchHead{Kind: model.HeadOurs, Mark: mark(deployment, sequence), Intact: true}}
	for _, f := range change {
		f(&h)
	}
	return h
}

func TestJudge(t *testing.T) {
	foreign := Head{BranchHead: model.BranchHead{Kind: model.HeadForeign}}
	mayLive := func(h *Head) { h.MayLive = true }
	clean := func(h *Head) { h.Clean = true }
	edited := func(h *Head) { h.Intact = false }
	byCopy := func(h *Head) { h.Process = "copy" }
	otherLine := func(h *Head) { h.Line = "M" }
	hole := func(s *Store) { s.Whole = false }
	pushing := func(sequences ...uint64) func(*Store) {
		return func(s *Store) {
			s.Pushing = nil
			for _, sequence := range sequences {
				s.Pushing = append(s.Pushing, mark("A", sequence))
			}
		}
	}
	adopted := func(s *Store) { s.Base, s.Pushing = mark("B", 120), nil }
	neverPushed := func(s *Store) { s.Base, s.Pushing, s.Line = model.Mark{}, nil, "" }
	ended := func(s *Store) {
		s.Deployment, s.Base, s.Pushing, s.Ended, s.Whole = "A2", mark("B", 100), nil, true, false
	}
	onlyName := Store{Marks: model.Marks{Deployment: "A"}}

	fromStore, choose, refuse := Verdict{From: FromStore}, Verdict{Choose: true}, Verdict{Refuse: true}
	lost, complete := Verdict{From: FromHead, Recover: true}, Verdict{From: FromHead}
	filled := Verdict{From: FromStore, Fill: true, Recover: true}
	seen := make(map[Case]bool)
	for _, c := range []struct {
		name     string
		s        Store
		h        Head
		takeOver bool
		c        Case
		want     Verdict
	}{
		{"first start", Store{}, Head{}, false, NewFleet, Verdict{}},
		{"first start, the branch has only a README", Store{}, foreign, false, NewFleet, Verdict{}},
		{"only the name is left, and the branch is gone", onlyName, Head{}, false, NewFleet, Verdict{}},
		{"never pushed", storeA(0, 7, neverPushed), Head{}, false, NeverPushed, fromStore},
		{"never pushed, and the store has a hole", storeA(0, 7, neverPushed, hole), Head{}, false, NeverPushed, choose},
		{"never pushed, and the branch has no commit of an Ingot", storeA(0, 7, neverPushed), foreign, false, BranchForeign, choose},
		{"never pushed, and another deployment wrote", storeA(0, 7, neverPushed), headOf("B", 130, mayLive), false, AnotherIngot, refuse},
		{"never pushed, and another deployment wrote and is dead", storeA(0, 7, neverPushed), headOf("B", 130), false, AnotherAdopted, lost},

		{"restart", storeA(100, 100), headOf("A", 100), false, UpToDate, fromStore},
		{"restart with decisions after the push", storeA(100, 105), headOf("A", 100), false, UpToDate, fromStore},
		{"restart after a squash, which keeps the mark", storeA(100, 105), headOf("A", 100, clean), false, UpToDate, fromStore},
		{"killed between push and note", storeA(100, 105), headOf("A", 105), false, HalfPushed, fromStore},
		{"the same, with newer decisions", storeA(100, 109), headOf("A", 105), false, HalfPushed, fromStore},
		{"the first of two pushes arrived", storeA(100, 109), headOf("A", 104), false, HalfPushed, fromStore},
		{"killed between the first push of all and its note", storeA(0, 7, neverPushed, pushing(5)), headOf("A", 5), false, HalfPushed, fromStore},

		{"older copy of the store", storeA(100, 105), headOf("A", 300), false, StoreOutdated, lost},
		{"older copy of the store, after a clean stop", storeA(100, 105), headOf("A", 300, clean), false, StoreOutdated, complete},
		{"older copy of the store, and the head is edited", storeA(50, 55), headOf("A", 100, edited), false, StoreOutdated, choose},
		{"older copy of the store with a hole", storeA(50, 55, hole), headOf("A", 100), false, StoreOutdated, lost},
		{"older copy of a store that never pushed", storeA(0, 7, neverPushed), headOf("A", 300), false, StoreOutdated, lost},
		{"older replica of Redis", storeA(90, 100), headOf("A", 101), false, StoreOutdated, lost},
		{"older replica of Redis that has the push", storeA(90, 100, pushing(95)), headOf("A", 95), false, HalfPushed, fromStore},
		{"a replica lacks the note of the push", storeA(90, 95, pushing()), headOf("A", 96), false, StoreOutdated, lost},

		{"store lost, same machine", Store{}, headOf("A", 100), false, StoreLost, lost},
		{"store lost, other machine", Store{}, headOf("A", 100, mayLive), false, AnotherIngot, refuse},
		{"store lost, other machine, --take-over", Store{}, headOf("A", 100, mayLive), true, StoreLost, lost},
		{"only the name is left", onlyName, headOf("A", 100), false, StoreLost, lost},
		{"only the name is left, and another deployment wrote", onlyName, headOf("B", 100), false, StoreLost, lost},
		{"moved after a clean stop", Store{}, headOf("A", 100, clean), false, StoreLost, complete},
		{"store lost, and the head is edited", Store{}, headOf("A", 100, edited), false, StoreLost, choose},

		{"a hole", storeA(100, 105, hole), headOf("A", 100), false, StoreDamaged, filled},
		{"a hole, and nothing after the push", storeA(100, 100, hole), headOf("A", 100, clean), false, StoreDamaged, filled},
		{"a hole, and killed between push and note", storeA(100, 109, hole), headOf("A", 105), false, StoreDamaged, filled},

		{"branch deleted", storeA(100, 105), Head{}, false, BranchLost, fromStore},
		{"branch deleted, and the store has a hole", storeA(100, 105, hole), Head{}, false, BranchLost, choose},
		{"branch set back", storeA(100, 105), headOf("A", 80), false, BranchReset, fromStore},
		{"branch set back, and edited", storeA(100, 105), headOf("A", 80, edited), false, BranchReset, fromStore},
		{"branch set back, and the store has a hole", storeA(100, 105, hole), headOf("A", 80), false, BranchReset, choose},
		{"branch set back to before it was taken over", storeA(130, 135), headOf("B", 110), false, BranchReset, fromStore},
		{"the same, and its writer may live", storeA(130, 135), headOf("B", 110, mayLive), false, BranchReset, fromStore},
		{"edited, trailers kept", storeA(100, 105), headOf("A", 100, edited), false, BranchEdited, fromStore},
		{"edited before the push was noted", storeA(100, 105), headOf("A", 105, edited), false, BranchEdited, fromStore},
		{"edited, and the store has a hole", storeA(100, 105, hole), headOf("A", 100, edited), false, BranchEdited, choose},
		{"another repository's branch", storeA(100, 105), foreign, false, BranchForeign, choose},
		{"another fleet's branch", storeA(100, 105), headOf("B", 900, otherLine), false, AnotherFleet, choose},
		{"another fleet's branch, --take-over", storeA(100, 105), headOf("B", 900, otherLine, mayLive), true, AnotherFleet, choose},

		{"a copy of the store pushed", storeA(90, 100), headOf("A", 95), false, Forked, choose},
		{"a copy of the store pushed, and that is edited", storeA(90, 100), headOf("A", 95, edited), false, Forked, choose},
		{"a copy pushed the sequence of the base", storeA(100, 105), headOf("A", 100, byCopy), false, Forked, choose},
		{"a copy pushed a sequence that this store pushed too", storeA(100, 109), headOf("A", 105, byCopy), false, Forked, choose},
		{"a copy pushed the last sequence of this store", storeA(100, 105), headOf("A", 105, byCopy), false, Forked, choose},

		{"another deployment wrote", storeA(100, 105), headOf("B", 130, mayLive), false, AnotherIngot, refuse},
		{"another deployment wrote, and is dead", storeA(100, 105), headOf("B", 130), false, AnotherAdopted, lost},
		{"another deployment wrote, and stopped clean", storeA(100, 105), headOf("B", 130, clean), false, AnotherAdopted, complete},
		{"another deployment wrote, and that is edited", storeA(100, 105), headOf("B", 130, edited), false, AnotherAdopted, choose},
		{"another deployment wrote, --take-over", storeA(100, 105), headOf("B", 130, mayLive), true, AnotherAdopted, lost},
		{"the previous deployment continues", storeA(130, 135), headOf("B", 140, mayLive), false, AnotherIngot, refuse},
		{"taken over, and killed before the first push", storeA(0, 121, adopted), headOf("B", 120), false, AnotherAdopted, lost},
		{"the same, and the other one may live", storeA(0, 121, adopted), headOf("B", 120, mayLive), false, AnotherIngot, refuse},
		{"the same, and the other one pushed", storeA(0, 121, adopted), headOf("B", 125, mayLive), false, AnotherIngot, refuse},

		{"ended because of another's head", storeA(0, 100, ended), headOf("B", 101), false, AnotherIngot, refuse},
		{"ended, and the head is the same", storeA(0, 100, ended), headOf("B", 100), false, AnotherIngot, refuse},
		{"ended, --take-over", storeA(0, 100, ended), headOf("B", 101), true, AnotherAdopted, lost},
		{"ended, and the branch was set back", storeA(0, 100, ended), headOf("A", 80), false, BranchReset, choose},
		{"ended, and the branch was deleted", storeA(0, 100, ended), Head{}, false, BranchLost, choose},
	} {
		c.want.Case = c.c
		seen[c.c] = true
		if got := Compare(c.s, c.h, c.takeOver); got != c.want {
			t.Errorf("%s: got %+v, want %+v", c.name, got, c.want)
		}
	}
	for _, c := range Cases {
		if !seen[c] {
			t.Errorf("no row has the case %s", c)
		}
	}
	if len(seen) != len(Cases) {
		t.Errorf("Cases has %d cases, the rows have %d", len(Cases), len(seen))
	}
}

func TestWatch(t *testing.T) {
	by := func(process string, sequence uint64) model.Mark {
		return model.Mark{Line: "L", Deployment: "A", Process: process, Sequence: sequence}
	}
	head := func(process string, sequence, continues uint64) model.BranchHead {
		return model.BranchHead{Kind: model.HeadOurs, Mark: by(process, sequence), Intact: true, Continues: continues}
	}
	edited := head("p", 100, 50)
	edited.Intact = false
	otherLine := head("q", 1, 0)
	otherLine.Line = "M"
	foreign := model.BranchHead{Kind: model.HeadForeign}
	marks := model.Marks{Base: by("p", 100), Pushing: []model.Mark{by("p", 105), by("before", 99)}}
	for _, c := range []struct {
		name   string
		opened bool
		h      model.BranchHead
		want   Next
	}{
		{"its own", true, head("p", 100, 50), GoOn},
		{"its own, edited", true, edited, Overwrite},
		{"its push without an answer", true, head("p", 105, 50), Note},
		{"branch gone", true, model.BranchHead{}, Overwrite},
		{"branch without a commit of an Ingot", true, foreign, Overwrite},
		{"branch set back", true, head("p", 80, 50), Overwrite},
		{"another process took over", true, head("q", 130, 100), End},
		{"another process took over, and pushed again", true, head("q", 190, 150), End},
		{"an older process, after a reset", true, head("q", 130, 50), Overwrite},
		{"the older process knows that it was overwritten", true, head("q", 131, 120), End},
		{"a clone with its memory", true, head("p", 131, 50), End},
		{"another fleet", true, otherLine, End},
		{"before its opening commit, the base", false, head("p", 100, 50), GoOn},
		{"before its opening commit, the base is edited", false, edited, Again},
		{"before the answer to its opening commit", false, head("p", 105, 50), Note},
		{"before its opening commit, another process", false, head("q", 130, 50), Again},
		{"before its opening commit, an earlier push of its store", false, head("before", 99, 50), Again},
		{"before its opening commit, branch gone", false, model.BranchHead{}, Again},
		{"before its opening commit, another fleet", false, otherLine, Again},
	} {
		if got := Watch(marks, "p", c.opened, c.h); got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
	}
}

func TestContinues(t *testing.T) {
	for _, c := range []struct{ continues, base, head, want uint64 }{
		{0, 0, 0, 0}, {3, 2, 1, 3}, {1, 3, 2, 3}, {1, 2, 3, 3},
	} {
		marks := model.Marks{Continues: c.continues, Base: mark("A", c.base)}
		if got := Continues(marks, headOf("B", c.head).BranchHead); got != c.want {
			t.Errorf("continues %d, base %d, head %d: got %d, want %d", c.continues, c.base, c.head, got, c.want)
		}
	}
}
