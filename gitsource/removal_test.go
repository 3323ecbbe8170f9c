package gitsource

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ingot/model"
)

// watch is a Source with the records that its daemon keeps.
type watch struct {
	*testing.T
	repo   *servedRepo
	opts   Options
	s      *Source
	d      *model.Desired
	before *model.Desired // what was in force before the last look
}

func newWatch(t *testing.T, opts func(*Options)) *watch {
	t.Helper()
	w := &watch{T: t, repo: newRepo(t)}
	w.opts = testOptions(t, w.repo.URL())
	if opts != nil {
		opts(&w.opts)
	}
	w.s = newSource(t, w.opts)
	return w
}

func (w *watch) look() {
	w.Helper()
	w.before, w.d = w.d, mustSync(w.T, w.s)
}

// act changes the repository, or the world.
type act func(w *watch)

func put(files map[string]string) act {
	return func(w *watch) { ok[string](w.T)(w.repo.Commit(files, "put")) }
}

func take(paths ...string) act {
	return func(w *watch) { ok[string](w.T)(w.repo.Remove("take", paths...)) }
}

// change is one commit that adds some files and removes others.
func change(files map[string]string, removed ...string) act {
	return func(w *watch) { ok[string](w.T)(w.repo.Change(files, "change", removed...)) }
}

func rewrite(files map[string]string) act {
	return func(w *watch) { ok[string](w.T)(w.repo.ForcePush(files, "rewrite")) }
}

func submodule(path string) act {
	return func(w *watch) { ok[string](w.T)(w.repo.Link(path, "160000", strings.Repeat("1", 40), "submodule")) }
}

func move(from, to string) act {
	return func(w *watch) { ok[string](w.T)(w.repo.Move("move", from, to)) }
}

func restart(w *watch) {
	w.s.close()
	w.s = begun(w.T, w.opts, records(w.d))
}

func lose(w *watch) {
	if err := os.RemoveAll(w.opts.Dir); err != nil {
		w.Fatal(err)
	}
	restart(w)
}

func late(w *watch) {
	w.s.close()
	w.s = begun(w.T, w.opts, records(w.before))
	w.d = w.before
}

func replaceApplied(w *watch) {
	ok[string](w.T)(w.repo.Commit(nil, "replace\n\nIngot-Approve: "+string(w.d.Revision)))
}

func approve(id string) act {
	return func(w *watch) {
		token := w.d.AbsentToken
		for _, e := range w.d.Absent {
			if e.Identity.String() == id {
				token = e.Token
			}
		}
		ok[string](w.T)(w.repo.Commit(nil, "approve\n\nIngot-Approve: "+token))
	}
}

// seen is what a step comes to.
type seen struct {
	Claims      map[string]string
	Removed     []string
	Renamed     []string
	Absent      []string
	Quarantined []string
}

func see(d *model.Desired) seen {
	s := seen{Claims: claims(d)}
	for id, all := range d.Removed {
		text := id.String()
		if all[len(all)-1].Approved {
			text += " (approved)"
		}
		s.Removed = append(s.Removed, text)
	}
	for _, r := range d.Renamed {
		for old, now := range r.Names {
			s.Renamed = append(s.Renamed, fmt.Sprint(old, " > ", now))
		}
	}
	for _, e := range d.Absent {
		text := e.Identity.String() + ": " + string(e.Cause)
		if e.Blob != "" {
			text += ", otherwise"
		}
		s.Absent = append(s.Absent, text)
	}
	for id := range d.Quarantined {
		s.Quarantined = append(s.Quarantined, id.String())
	}
	slices.Sort(s.Removed)
	slices.Sort(s.Renamed)
	slices.Sort(s.Quarantined)
	return s
}

// chapter is some acts and what is seen after a look.
type chapter struct {
	acts []act
	want seen
}

const (
	webUnknown   = "ServerClaim default/web: AppliedUnknown"
	webGone      = "ServerClaim default/web: HistoryRewritten"
	webOtherwise = "ServerClaim default/web: HistoryRewritten, otherwise"
)

// abc are three claims in files of their own, with contents that differ.
func abc(names ...string) map[string]string {
	files := make(map[string]string)
	for i, name := range names {
		files[fmt.Sprint(i+1, ".yaml")] = claimYAML(name, fmt.Sprint(i+1))
	}
	return files
}

func TestRemovals(t *testing.T) {
	t.Parallel()
	web, db := claimYAML("web", "a"), claimYAML("db", "b")
	both := map[string]string{"web.yaml": web, "db.yaml": db}
	onlyDB := map[string]string{"db.yaml": db}
	all := map[string]string{"web": "a", "db": "b"}
	justDB := map[string]string{"db": "b"}
	readme := put(map[string]string{"README.md": "hello"})
	tests := map[string][]chapter{
		"a removal is named, also to one who missed the revision": {
			{acts: []act{put(both)}, want: seen{Claims: all}},
			{acts: []act{take("web.yaml")}, want: seen{Claims: justDB, Removed: []string{"ServerClaim default/web"}}},
			{acts: []act{readme}, want: seen{Claims: justDB, Removed: []string{"ServerClaim default/web"}}},
			{acts: []act{late}, want: seen{Claims: justDB, Removed: nil}},
		},
		"a removal that was not applied is found again, whatever the folder says": {
			{acts: []act{put(both)}, want: seen{Claims: all}},
			{acts: []act{take("web.yaml")}, want: seen{Claims: justDB, Removed: []string{"ServerClaim default/web"}}},
			{acts: []act{late}, want: seen{Claims: justDB, Removed: []string{"ServerClaim default/web"}}},
		},
		"a removal is found with another machine's folder": {
			{acts: []act{put(both)}, want: seen{Claims: all}},
			{acts: []act{lose, take("web.yaml")}, want: seen{Claims: justDB, Removed: []string{"ServerClaim default/web"}}},
		},
		"what comes back was not removed": {
			{acts: []act{put(both)}, want: seen{Claims: all}},
			{acts: []act{take("web.yaml")}, want: seen{Claims: justDB, Removed: []string{"ServerClaim default/web"}}},
			{acts: []act{put(both)}, want: seen{Claims: all}},
		},
		"a file that moves takes nothing away": {
			{acts: []act{put(both)}, want: seen{Claims: all}},
			{acts: []act{change(map[string]string{"sub/web.yaml": web}, "web.yaml")}, want: seen{Claims: all}},
		},
		"a rewritten history takes nothing away, nor does the commit after it, nor a restart, nor another machine": {
			{acts: []act{put(both)}, want: seen{Claims: all}},
			{acts: []act{rewrite(onlyDB)}, want: seen{Claims: all, Absent: []string{webGone}}},
			{acts: []act{readme}, want: seen{Claims: all, Absent: []string{webGone}}},
			{acts: []act{restart}, want: seen{Claims: all, Absent: []string{webGone}}},
			{acts: []act{put(map[string]string{"README.md": "more"})}, want: seen{Claims: all, Absent: []string{webGone}}},
			{acts: []act{lose}, want: seen{Claims: justDB, Absent: []string{webGone}, Quarantined: []string{"ServerClaim default/web"}}},
			{
				acts: []act{put(map[string]string{"README.md": "and more"})},
				want: seen{Claims: justDB, Absent: []string{webGone}, Quarantined: []string{"ServerClaim default/web"}},
			},
			{acts: []act{put(map[string]string{"web.yaml": web})}, want: seen{Claims: all}},
			{acts: []act{take("web.yaml")}, want: seen{Claims: justDB, Removed: []string{"ServerClaim default/web"}}},
		},
		"a folder that was lost after a rewritten history takes nothing away": {
			{acts: []act{put(both)}, want: seen{Claims: all}},
			{
				acts: []act{rewrite(onlyDB), replaceApplied, lose},
				want: seen{
					Claims: justDB, Absent: []string{"ServerClaim default/web: AppliedUnknown"},
					Quarantined: []string{"ServerClaim default/web"},
				},
			},
			{
				acts: []act{restart},
				want: seen{
					Claims: justDB, Absent: []string{"ServerClaim default/web: AppliedUnknown"},
					Quarantined: []string{"ServerClaim default/web"},
				},
			},
			{
				acts: []act{approve("ServerClaim default/web")},
				want: seen{Claims: justDB, Removed: []string{"ServerClaim default/web (approved)"}},
			},
		},
		"an absence ends by approval of its token": {
			{acts: []act{put(both)}, want: seen{Claims: all}},
			{acts: []act{rewrite(onlyDB)}, want: seen{Claims: all, Absent: []string{webGone}}},
			{
				acts: []act{restart, approve("ServerClaim default/web")},
				want: seen{Claims: justDB, Removed: []string{"ServerClaim default/web (approved)"}},
			},
			{acts: []act{readme}, want: seen{Claims: justDB, Removed: []string{"ServerClaim default/web (approved)"}}},
		},
		"an absence ends by approval of the list": {
			{acts: []act{put(both)}, want: seen{Claims: all}},
			{
				acts: []act{rewrite(map[string]string{"web.yaml": claimYAML("web", "c")})},
				want: seen{Claims: all, Absent: []string{"ServerClaim default/db: HistoryRewritten", webOtherwise}},
			},
			{
				acts: []act{approve("list")},
				want: seen{Claims: map[string]string{"web": "c"}, Removed: []string{"ServerClaim default/db (approved)"}},
			},
		},
		"an approval of one entry leaves the others": {
			{acts: []act{put(both)}, want: seen{Claims: all}},
			{
				acts: []act{rewrite(map[string]string{"web.yaml": claimYAML("web", "c")})},
				want: seen{Claims: all, Absent: []string{"ServerClaim default/db: HistoryRewritten", webOtherwise}},
			},
			{
				acts: []act{approve("ServerClaim default/web")},
				want: seen{Claims: map[string]string{"web": "c", "db": "b"}, Absent: []string{"ServerClaim default/db: HistoryRewritten"}},
			},
		},
		"an approval does not cover what Git says by then": {
			{acts: []act{put(both)}, want: seen{Claims: all}},
			{
				acts: []act{rewrite(map[string]string{"web.yaml": claimYAML("web", "c"), "db.yaml": db})},
				want: seen{Claims: all, Absent: []string{webOtherwise}},
			},
			{
				acts: []act{
					func(w *watch) {
						ok[string](w.T)(w.repo.ForcePush(map[string]string{"web.yaml": claimYAML("web", "d"), "db.yaml": db}, "again"))
					},
				},
				want: seen{Claims: all, Absent: []string{webOtherwise}},
			},
			{
				acts: []act{func(w *watch) {
					ok[string](w.T)(w.repo.Commit(nil,
						"approve\n\nIngot-Approve: "+w.before.Absent[0].Token+"\nIngot-Approve: "+w.before.AbsentToken))
				}},
				want: seen{Claims: all, Absent: []string{webOtherwise}},
			},
		},
		"what a rewritten history has otherwise stays until a commit changes it": {
			{acts: []act{put(both)}, want: seen{Claims: all}},
			{
				acts: []act{rewrite(map[string]string{"web.yaml": claimYAML("web", "c"), "db.yaml": db})},
				want: seen{Claims: all, Absent: []string{webOtherwise}},
			},
			{acts: []act{restart}, want: seen{Claims: all, Absent: []string{webOtherwise}}},
			{acts: []act{readme}, want: seen{Claims: all, Absent: []string{webOtherwise}}},
			{
				acts: []act{put(map[string]string{"web.yaml": claimYAML("web", "d")})},
				want: seen{Claims: map[string]string{"web": "d", "db": "b"}},
			},
		},
		"what a rewritten history has otherwise is removed by a commit": {
			{acts: []act{put(both)}, want: seen{Claims: all}},
			{
				acts: []act{rewrite(map[string]string{"web.yaml": claimYAML("web", "c"), "db.yaml": db})},
				want: seen{Claims: all, Absent: []string{webOtherwise}},
			},
			{acts: []act{restart, take("web.yaml")}, want: seen{Claims: justDB, Removed: []string{"ServerClaim default/web"}}},
		},
		"a change to another object of the file says nothing about the one that is listed": {
			{acts: []act{put(map[string]string{"all.yaml": web + "---\n" + db})}, want: seen{Claims: all}},
			{
				acts: []act{rewrite(map[string]string{"all.yaml": claimYAML("web", "c") + "---\n" + db})},
				want: seen{Claims: all, Absent: []string{webOtherwise}},
			},
			{
				acts: []act{put(map[string]string{"all.yaml": claimYAML("web", "c") + "---\n" + claimYAML("db", "e")})},
				want: seen{Claims: map[string]string{"web": "a", "db": "e"}, Absent: []string{webOtherwise}},
			},
			{
				acts: []act{put(map[string]string{"all.yaml": claimYAML("web", "f") + "---\n" + claimYAML("db", "e")})},
				want: seen{Claims: map[string]string{"web": "f", "db": "e"}},
			},
		},
		"a rewritten history with the same content passes in silence": {
			{acts: []act{put(both)}, want: seen{Claims: all}},
			{acts: []act{rewrite(map[string]string{"all.yaml": web + "---\n" + db})}, want: seen{Claims: all}},
			{acts: []act{take("all.yaml"), put(onlyDB)}, want: seen{Claims: justDB, Removed: []string{"ServerClaim default/web"}}},
		},
		"a rewritten history that has it again ends the list": {
			{acts: []act{put(both)}, want: seen{Claims: all}},
			{acts: []act{rewrite(onlyDB)}, want: seen{Claims: all, Absent: []string{webGone}}},
			{acts: []act{rewrite(both)}, want: seen{Claims: all}},
		},
		"a new claim of a rewritten history is taken": {
			{acts: []act{put(both)}, want: seen{Claims: all}},
			{
				acts: []act{rewrite(map[string]string{"web.yaml": web, "db.yaml": db, "new.yaml": claimYAML("new", "c")})},
				want: seen{Claims: map[string]string{"web": "a", "db": "b", "new": "c"}},
			},
		},
		"a file that is no manifest holds up no removal": {
			{acts: []act{put(both)}, want: seen{Claims: all}},
			{
				acts: []act{change(map[string]string{"notes.yaml": "[hello\n"}, "web.yaml")},
				want: seen{Claims: justDB, Removed: []string{"ServerClaim default/web"}},
			},
		},
		"a broken file that hides nothing holds up no later removal": {
			{acts: []act{put(both)}, want: seen{Claims: all}},
			{acts: []act{put(map[string]string{"x.yaml": broken})}, want: seen{Claims: all}},
			{acts: []act{restart, take("web.yaml")}, want: seen{Claims: justDB, Removed: []string{"ServerClaim default/web"}}},
		},
		"a new broken file holds what vanished along with its coming": {
			{acts: []act{put(both)}, want: seen{Claims: all}},
			{acts: []act{change(map[string]string{"x.yaml": broken}, "web.yaml")}, want: seen{Claims: all}},
			{acts: []act{restart}, want: seen{Claims: all}},
			{acts: []act{readme}, want: seen{Claims: all}},
			{
				acts: []act{put(map[string]string{"x.yaml": claimYAML("x", "c")})},
				want: seen{Claims: map[string]string{"db": "b", "x": "c"}, Removed: []string{"ServerClaim default/web"}},
			},
		},
		"a broken file that moves takes along what it held": {
			{acts: []act{put(both)}, want: seen{Claims: all}},
			{acts: []act{put(map[string]string{"web.yaml": broken})}, want: seen{Claims: all}},
			{acts: []act{change(map[string]string{"sub/web.yaml": broken}, "web.yaml")}, want: seen{Claims: all}},
			{acts: []act{restart, readme}, want: seen{Claims: all}},
			{acts: []act{take("sub")}, want: seen{Claims: justDB, Removed: []string{"ServerClaim default/web"}}},
		},
		"a broken file in a rewritten history holds nothing that another file had": {
			{acts: []act{put(both)}, want: seen{Claims: all}},
			{acts: []act{rewrite(map[string]string{"db.yaml": db, "x.yaml": broken})}, want: seen{Claims: all, Absent: []string{webGone}}},
			{acts: []act{take("x.yaml")}, want: seen{Claims: all, Absent: []string{webGone}}},
		},
		"a file that names an object holds it, whatever becomes of the file": {
			{acts: []act{put(both)}, want: seen{Claims: all}},
			{acts: []act{change(map[string]string{"x.yaml": brokenClaim("web")}, "web.yaml")}, want: seen{Claims: all}},
			{acts: []act{restart, put(map[string]string{"x.yaml": "[hello\n"})}, want: seen{Claims: all}},
			{acts: []act{take("x.yaml")}, want: seen{Claims: justDB, Removed: []string{"ServerClaim default/web"}}},
		},
		"a last good version that cannot be had any more is no removal": {
			{acts: []act{put(both)}, want: seen{Claims: all}},
			{acts: []act{put(map[string]string{"web.yaml": brokenClaim("web")})}, want: seen{Claims: all}},
			{acts: []act{lose}, want: seen{Claims: justDB, Quarantined: []string{"ServerClaim default/web"}}},
			{acts: []act{readme}, want: seen{Claims: justDB, Quarantined: []string{"ServerClaim default/web"}}},
			{acts: []act{take("web.yaml")}, want: seen{Claims: justDB, Removed: []string{"ServerClaim default/web"}}},
		},
		"a file that nobody can read and whose last good version is lost is no removal": {
			{acts: []act{put(both)}, want: seen{Claims: all}},
			{acts: []act{put(map[string]string{"web.yaml": broken})}, want: seen{Claims: all}},
			{
				acts: []act{lose},
				want: seen{
					Claims: justDB, Quarantined: []string{"ServerClaim default/web"},
					Absent: []string{"ServerClaim default/web: AppliedUnknown"},
				},
			},
			{acts: []act{put(map[string]string{"web.yaml": web})}, want: seen{Claims: all}},
		},
		"a claim with another name and the same content is renamed": {
			{acts: []act{put(both)}, want: seen{Claims: all}},
			{
				acts: []act{put(map[string]string{"web.yaml": claimYAML("web2", "a")})},
				want: seen{Claims: map[string]string{"web2": "a", "db": "b"}, Renamed: []string{"default/web > default/web2"}},
			},
			{
				acts: []act{readme},
				want: seen{Claims: map[string]string{"web2": "a", "db": "b"}, Renamed: []string{"default/web > default/web2"}},
			},
			{
				acts: []act{put(map[string]string{"web.yaml": claimYAML("web3", "a")})},
				want: seen{
					Claims:  map[string]string{"web3": "a", "db": "b"},
					Renamed: []string{"default/web > default/web2", "default/web2 > default/web3"},
				},
			},
			{
				acts: []act{take("web.yaml")},
				want: seen{
					Claims:  justDB,
					Removed: []string{"ServerClaim default/web3"},
					Renamed: []string{"default/web > default/web2", "default/web2 > default/web3"},
				},
			},
		},
		"a renaming that was not applied is found again": {
			{acts: []act{put(both)}, want: seen{Claims: all}},
			{
				acts: []act{put(map[string]string{"web.yaml": claimYAML("web2", "a")})},
				want: seen{Claims: map[string]string{"web2": "a", "db": "b"}, Renamed: []string{"default/web > default/web2"}},
			},
			{
				acts: []act{late},
				want: seen{Claims: map[string]string{"web2": "a", "db": "b"}, Renamed: []string{"default/web > default/web2"}},
			},
		},
		"a renaming that is taken back": {
			{acts: []act{put(both)}, want: seen{Claims: all}},
			{
				acts: []act{put(map[string]string{"web.yaml": claimYAML("web2", "a")})},
				want: seen{Claims: map[string]string{"web2": "a", "db": "b"}, Renamed: []string{"default/web > default/web2"}},
			},
			{
				acts: []act{put(map[string]string{"web.yaml": web})},
				want: seen{Claims: all, Renamed: []string{"default/web > default/web2", "default/web2 > default/web"}},
			},
		},
		"another name and another content is another claim": {
			{acts: []act{put(both)}, want: seen{Claims: all}},
			{
				acts: []act{put(map[string]string{"web.yaml": claimYAML("web2", "c")})},
				want: seen{Claims: map[string]string{"web2": "c", "db": "b"}, Removed: []string{"ServerClaim default/web"}},
			},
		},
		"of several with the same content the one in the same file is the renamed one": {
			{acts: []act{put(both)}, want: seen{Claims: all}},
			{
				acts: []act{put(map[string]string{"x.yaml": claimYAML("x", "a"), "web.yaml": claimYAML("web2", "a")})},
				want: seen{Claims: map[string]string{"web2": "a", "x": "a", "db": "b"}, Renamed: []string{"default/web > default/web2"}},
			},
		},
		"several with the same content in other files are no renaming": {
			{acts: []act{put(both)}, want: seen{Claims: all}},
			{
				acts: []act{change(map[string]string{"x.yaml": claimYAML("x", "a"), "y.yaml": claimYAML("y", "a")}, "web.yaml")},
				want: seen{Claims: map[string]string{"x": "a", "y": "a", "db": "b"}, Removed: []string{"ServerClaim default/web"}},
			},
		},
		"a file that breaks keeps what a rewritten history has otherwise, also in the commits after it": {
			{acts: []act{put(both)}, want: seen{Claims: all}},
			{
				acts: []act{rewrite(map[string]string{"web.yaml": claimYAML("web", "c"), "db.yaml": db})},
				want: seen{Claims: all, Absent: []string{webOtherwise}},
			},
			{acts: []act{put(map[string]string{"web.yaml": broken})}, want: seen{Claims: all, Absent: []string{webOtherwise}}},
			{acts: []act{readme}, want: seen{Claims: all, Absent: []string{webOtherwise}}},
			{
				acts: []act{change(map[string]string{"sub/web.yaml": broken}, "web.yaml")},
				want: seen{Claims: all, Absent: []string{webOtherwise}},
			},
			{acts: []act{take("sub")}, want: seen{Claims: justDB, Removed: []string{"ServerClaim default/web"}}},
		},
		"what a rewritten history has otherwise and a commit breaks by name is kept when its file breaks as a whole": {
			{acts: []act{put(both)}, want: seen{Claims: all}},
			{
				acts: []act{rewrite(map[string]string{"web.yaml": claimYAML("web", "c"), "db.yaml": db})},
				want: seen{Claims: all, Absent: []string{webOtherwise}},
			},
			{acts: []act{put(map[string]string{"web.yaml": brokenClaim("web")})}, want: seen{Claims: all, Absent: []string{webOtherwise}}},
			{acts: []act{put(map[string]string{"web.yaml": broken})}, want: seen{Claims: all, Absent: []string{webOtherwise}}},
			{acts: []act{readme}, want: seen{Claims: all, Absent: []string{webOtherwise}}},
		},
		"what a rewritten history has otherwise and moves into a broken file is kept": {
			{acts: []act{put(both)}, want: seen{Claims: all}},
			{
				acts: []act{rewrite(map[string]string{"web.yaml": claimYAML("web", "c"), "db.yaml": db})},
				want: seen{Claims: all, Absent: []string{webOtherwise}},
			},
			{
				acts: []act{change(map[string]string{"x.yaml": broken}, "web.yaml")},
				want: seen{Claims: all, Absent: []string{webOtherwise}},
			},
			{acts: []act{readme}, want: seen{Claims: all, Absent: []string{webOtherwise}}},
			{acts: []act{take("x.yaml")}, want: seen{Claims: justDB, Removed: []string{"ServerClaim default/web"}}},
		},
		"the end of another object of the file says nothing about the one that is listed": {
			{acts: []act{put(map[string]string{"all.yaml": web + "---\n" + db})}, want: seen{Claims: all}},
			{
				acts: []act{rewrite(map[string]string{"all.yaml": claimYAML("web", "c") + "---\n" + db})},
				want: seen{Claims: all, Absent: []string{webOtherwise}},
			},
			{
				acts: []act{put(map[string]string{"all.yaml": claimYAML("web", "c")})},
				want: seen{
					Claims: map[string]string{"web": "a"}, Absent: []string{webOtherwise}, Removed: []string{"ServerClaim default/db"},
				},
			},
		},
		"an approval in a history written anew does not cover what nobody has read": {
			{acts: []act{put(both)}, want: seen{Claims: all}},
			{
				acts: []act{rewrite(map[string]string{"web.yaml": claimYAML("web", "c"), "db.yaml": db})},
				want: seen{Claims: all, Absent: []string{webOtherwise}},
			},
			{
				acts: []act{
					rewrite(map[string]string{"web.yaml": claimYAML("web", "d"), "db.yaml": db}),
					approve("ServerClaim default/web"),
				},
				want: seen{Claims: all, Absent: []string{webOtherwise}},
			},
			{acts: []act{rewrite(onlyDB), approve("list")}, want: seen{Claims: all, Absent: []string{webGone}}},
			{
				acts: []act{rewrite(map[string]string{"web.yaml": claimYAML("web", "e"), "db.yaml": db}), approve("list")},
				want: seen{Claims: all, Absent: []string{webOtherwise}},
			},
			{
				acts: []act{rewrite(map[string]string{"all.yaml": claimYAML("web", "e") + "---\n" + db}), approve("list")},
				want: seen{Claims: map[string]string{"web": "e", "db": "b"}},
			},
		},
		"a broken file that moves over another takes along what it held": {
			{acts: []act{put(both)}, want: seen{Claims: all}},
			{acts: []act{put(map[string]string{"web.yaml": broken, "x.yaml": "# nothing\n"})}, want: seen{Claims: all}},
			{acts: []act{change(map[string]string{"x.yaml": broken}, "web.yaml")}, want: seen{Claims: all}},
			{acts: []act{readme}, want: seen{Claims: all}},
			{acts: []act{take("x.yaml")}, want: seen{Claims: justDB, Removed: []string{"ServerClaim default/web"}}},
		},
		"a broken file that changes places with another takes along what it held": {
			{acts: []act{put(both)}, want: seen{Claims: all}},
			{acts: []act{put(map[string]string{"web.yaml": broken, "x.yaml": "# nothing\n"})}, want: seen{Claims: all}},
			{acts: []act{put(map[string]string{"x.yaml": broken, "web.yaml": "# nothing\n"})}, want: seen{Claims: all}},
			{acts: []act{take("x.yaml")}, want: seen{Claims: all}},
			{acts: []act{take("web.yaml")}, want: seen{Claims: justDB, Removed: []string{"ServerClaim default/web"}}},
		},
		"a submodule that moves takes along what its folder held": {
			{acts: []act{put(map[string]string{"d/web.yaml": web, "db.yaml": db})}, want: seen{Claims: all}},
			{acts: []act{submodule("d")}, want: seen{Claims: all}},
			{acts: []act{restart, move("d", "e")}, want: seen{Claims: all}},
			{acts: []act{readme}, want: seen{Claims: all}},
			{acts: []act{take("e")}, want: seen{Claims: justDB, Removed: []string{"ServerClaim default/web"}}},
		},
		"a file that is emptied keeps what it defined, until a commit deletes it": {
			{acts: []act{put(both)}, want: seen{Claims: all}},
			{acts: []act{put(map[string]string{"web.yaml": ""})}, want: seen{Claims: all}},
			{acts: []act{put(map[string]string{"web.yaml": "# a comment\n---\n"})}, want: seen{Claims: all}},
			{acts: []act{restart, readme}, want: seen{Claims: all}},
			{acts: []act{lose}, want: seen{Claims: justDB, Absent: []string{webUnknown}, Quarantined: []string{"ServerClaim default/web"}}},
			{acts: []act{put(map[string]string{"web.yaml": web})}, want: seen{Claims: all}},
			{acts: []act{put(map[string]string{"web.yaml": ""}), take("web.yaml")}, want: seen{Claims: justDB, Removed: []string{webRemoved}}},
		},
		"a file that was always empty holds nothing": {
			{acts: []act{put(map[string]string{"web.yaml": web, "db.yaml": db, "x.yaml": "# to do\n"})}, want: seen{Claims: all}},
			{acts: []act{take("web.yaml")}, want: seen{Claims: justDB, Removed: []string{webRemoved}}},
		},
		"a file that is emptied holds nothing that is in another one": {
			{acts: []act{put(both)}, want: seen{Claims: all}},
			{acts: []act{put(map[string]string{"web.yaml": "", "all.yaml": web})}, want: seen{Claims: all}},
			{acts: []act{take("all.yaml")}, want: seen{Claims: justDB, Removed: []string{webRemoved}}},
		},
		"a folder in the place of a file keeps what that defined": {
			{acts: []act{put(both)}, want: seen{Claims: all}},
			{acts: []act{change(map[string]string{"web.yaml/README.md": "hello"}, "web.yaml")}, want: seen{Claims: all}},
			{acts: []act{restart, readme}, want: seen{Claims: all}},
			{acts: []act{take("web.yaml")}, want: seen{Claims: justDB, Removed: []string{webRemoved}}},
		},
		"a folder with the name of a file holds nothing that was in it": {
			{acts: []act{put(map[string]string{"x.yaml/web.yaml": web, "x.yaml/a.yaml": claimYAML("a", "a"), "db.yaml": db})}, want: seen{Claims: map[string]string{"web": "a", "a": "a", "db": "b"}}},
			{acts: []act{take("x.yaml/web.yaml")}, want: seen{Claims: map[string]string{"a": "a", "db": "b"}, Removed: []string{webRemoved}}},
		},
		"a folder that is hidden keeps what it defined, until a commit deletes it": {
			{acts: []act{put(map[string]string{"claims/web.yaml": web, "db.yaml": db, ".github/x.yaml": "on: push\n"})}, want: seen{Claims: all}},
			{acts: []act{move("claims", ".claims")}, want: seen{Claims: all}},
			{acts: []act{restart, readme}, want: seen{Claims: all}},
			{acts: []act{move(".claims", "x/.old")}, want: seen{Claims: all}},
			{acts: []act{put(map[string]string{"x/.old/web.yaml": claimYAML("web", "c")})}, want: seen{Claims: all}},
			{acts: []act{take("x/.old")}, want: seen{Claims: justDB, Removed: []string{webRemoved}}},
		},
		"a copy in a hidden folder holds nothing": {
			{acts: []act{put(map[string]string{"web.yaml": web, "db.yaml": db, ".old/x.yaml": claimYAML("x", "a")})}, want: seen{Claims: all}},
			{acts: []act{take("web.yaml")}, want: seen{Claims: justDB, Removed: []string{webRemoved}}},
		},
		"claims that get the names of one another keep their servers": {
			{acts: []act{put(abc("a", "b", "c"))}, want: seen{Claims: map[string]string{"a": "1", "b": "2", "c": "3"}}},
			{
				acts: []act{put(abc("b", "c", "d"))},
				want: seen{
					Claims:  map[string]string{"b": "1", "c": "2", "d": "3"},
					Renamed: []string{"default/a > default/b", "default/b > default/c", "default/c > default/d"},
				},
			},
			{
				acts: []act{take("3.yaml")},
				want: seen{
					Claims: map[string]string{"b": "1", "c": "2"}, Removed: []string{"ServerClaim default/d"},
					Renamed: []string{"default/a > default/b", "default/b > default/c", "default/c > default/d"},
				},
			},
		},
		"a claim that has the content of one that vanished may be that one": {
			{acts: []act{put(abc("a", "b", "c"))}, want: seen{Claims: map[string]string{"a": "1", "b": "2", "c": "3"}}},
			{
				acts: []act{change(map[string]string{"2.yaml": claimYAML("b", "1")}, "1.yaml")},
				want: seen{Claims: map[string]string{"a": "1", "b": "1", "c": "3"}, Absent: []string{"ServerClaim default/a: NameUnclear"}},
			},
			{acts: []act{readme}, want: seen{Claims: map[string]string{"a": "1", "b": "1", "c": "3"}, Absent: []string{"ServerClaim default/a: NameUnclear"}}},
			{
				acts: []act{approve("ServerClaim default/a")},
				want: seen{Claims: map[string]string{"b": "1", "c": "3"}, Removed: []string{"ServerClaim default/a (approved)"}},
			},
		},
		"and so may each of several": {
			{acts: []act{put(abc("a", "b", "c"))}, want: seen{Claims: map[string]string{"a": "1", "b": "2", "c": "3"}}},
			{
				acts: []act{change(map[string]string{"2.yaml": claimYAML("b", "1"), "3.yaml": claimYAML("c", "1")}, "1.yaml")},
				want: seen{Claims: map[string]string{"a": "1", "b": "1", "c": "1"}, Absent: []string{"ServerClaim default/a: NameUnclear"}},
			},
		},
		"a claim whose new name clashes keeps the old one": {
			{acts: []act{put(map[string]string{"web.yaml": claimYAML("web", "shared"), "db.yaml": db})}, want: seen{Claims: map[string]string{"web": "shared", "db": "b"}}},
			{
				acts: []act{put(map[string]string{"web.yaml": claimYAML("web2", "shared"), "x.yaml": claimYAML("x", "shared")})},
				want: seen{
					Claims: map[string]string{"web": "shared", "db": "b"}, Absent: []string{"ServerClaim default/web: NameUnclear"},
					Quarantined: []string{"ServerClaim default/web2", "ServerClaim default/x"},
				},
			},
		},
		"who approves that a claim is gone does not rename it": {
			{acts: []act{put(both)}, want: seen{Claims: all}},
			{acts: []act{rewrite(onlyDB)}, want: seen{Claims: all, Absent: []string{webGone}}},
			{
				acts: []act{put(map[string]string{"web2.yaml": claimYAML("web2", "a")}), approve("ServerClaim default/web")},
				want: seen{Claims: map[string]string{"web2": "a", "db": "b"}, Removed: []string{"ServerClaim default/web (approved)"}},
			},
		},
		"a renaming in a rewritten history is an absence": {
			{acts: []act{put(both)}, want: seen{Claims: all}},
			{
				acts: []act{rewrite(map[string]string{"web.yaml": claimYAML("web2", "a"), "db.yaml": db})},
				want: seen{Claims: map[string]string{"web": "a", "web2": "a", "db": "b"}, Absent: []string{webGone}},
			},
		},
	}
	for name, chapters := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWatch(t, nil)
			for i, c := range chapters {
				for _, do := range c.acts {
					do(w)
				}
				w.look()
				if diff := cmp.Diff(c.want, see(w.d)); diff != "" {
					t.Fatalf("chapter %d (-want +got):\n%s", i, diff)
				}
			}
		})
	}
}
