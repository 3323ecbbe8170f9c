package ledger

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"ingot/model"
)

// The machines of the tests, and what Git calls them.
const (
	m1 = "00000000-0000-4000-8000-000000000001"
	m2 = "00000000-0000-4000-8000-000000000002"
)

// history is a history in the making: each entry a second after the one before.
type history struct {
	History
	now time.Time
}

func begin() *history {
	h := &history{now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	return h
}

func (h *history) tick() time.Time {
	h.now = h.now.Add(time.Minute)
	return h.now
}

func (h *history) push(files map[string]File) *history {
	h.Revisions = append(h.Revisions, Revision{At: h.tick(), Descends: len(h.Revisions) > 0, Files: files})
	return h
}

// force adds a head that does not descend.
func (h *history) force(files map[string]File) *history {
	h.Revisions = append(h.Revisions, Revision{At: h.tick(), Files: files})
	return h
}

func (h *history) approve() *history {
	last := h.Revisions[len(h.Revisions)-1]
	h.Revisions = append(h.Revisions, Revision{At: h.tick(), Descends: true, Approves: true, Files: last.Files})
	return h
}

func (h *history) happens(machine string, kinds ...Kind) *history {
	for _, k := range kinds {
		h.Events = append(h.Events, Event{At: h.tick(), Machine: machine, Kind: k})
	}
	return h
}

func (h *history) installs(machine, claim string) *history {
	h.happens(machine, PowerOn, NetBoot)
	for _, k := range []Kind{Ignition, Install} {
		h.Events = append(h.Events, Event{At: h.tick(), Machine: machine, Kind: k, Claim: model.ClaimName("default/" + claim)})
	}
	return h
}

// git makes a tree of manifests, each given as "kind name: what else", such as
// "claim web", "claim web Off reprovision=1", "server s1 operation=x#1", "broken web".
func git(t *testing.T, objects ...string) map[string]File {
	t.Helper()
	files := make(map[string]File)
	for _, o := range objects {
		f := strings.Fields(o)
		path := f[0] + "s/" + f[1] + ".yaml"
		files[path] = decode(path, []byte(manifest(f[0], f[1], f[2:])))
	}
	return files
}

func manifest(kind, name string, more []string) string {
	power, spec := "On", ""
	var annotations []string
	for _, m := range more {
		key, value, is := strings.Cut(m, "=")
		switch {
		case !is:
			power = m
		case key == "operation":
			annotations = append(annotations, model.AnnotationOperation+": \""+value+"\"")
		case key == "ref":
			spec += ", serverRef: {name: " + value + "}"
		case kind == "maintenance":
			spec += ", " + key + ": " + value
		case key == "agrees":
			annotations = append(annotations, model.AnnotationMaintenanceApproved+": \""+value+"\"")
		case key == "policy":
			spec += ", reclaimPolicy: " + value
		case key == "motd" || key == "label":
			annotations = append(annotations, "example.com/"+key+": \""+value+"\"")
		default:
			annotations = append(annotations, "ingot/"+key+": \""+value+"\"")
		}
	}
	head := fmt.Sprintf("apiVersion: metal.ironcore.dev/v1alpha1\nkind: %%s\nmetadata: {name: %s%%s, annotations: {%s}}\n",
		name, strings.Join(annotations, ", "))
	switch kind {
	case "claim":
		return fmt.Sprintf(head, "ServerClaim", ", namespace: default") +
			"spec: {power: " + power + ", image: \"example.com/linux:1\"" + spec + "}\n"
	case "server":
		uuid := map[string]string{"s1": m1, "s2": m2}[name]
		return fmt.Sprintf(head, "Server", "") + "spec: {systemUUID: " + uuid + spec + "}\n"
	case "maintenance":
		return fmt.Sprintf(head, "ServerMaintenance", "") + "spec: {serverRef: {name: " + name + "}" + spec + "}\n"
	}
	return fmt.Sprintf(head, "ServerClaim", ", namespace: default") + "spec: {powr: On}\n"
}

func TestBookReportsWhatNoCommitNamed(t *testing.T) {
	web := func(t *testing.T, more ...string) map[string]File {
		return git(t, append([]string{"claim web", "server s1", "server s2"}, more...)...)
	}
	gone := func(t *testing.T) map[string]File { return git(t, "server s1", "server s2") }
	runs := func(t *testing.T) *history { return begin().push(web(t)).installs(m1, "web") }
	for name, tt := range map[string]struct {
		history func(t *testing.T) *history
		want    []string // a part of each violation, in order; none for a history within the law
	}{
		// what may be
		"a claim is installed": {history: runs},
		"a removed claim's machine is wiped": {history: func(t *testing.T) *history {
			return runs(t).push(gone(t)).happens(m1, PowerOff, PowerOn, NetBoot, Wipe, PowerOff)
		}},
		"after the wipe another claim has it": {history: func(t *testing.T) *history {
			return runs(t).push(git(t, "claim db motd=db", "server s1")).
				happens(m1, PowerOff, PowerOn, NetBoot, Wipe, PowerOff).installs(m1, "db")
		}},
		"power that failed comes back, from disk": {
			history: func(t *testing.T) *history { return runs(t).happens(m1, PowerLost, PowerOn, DiskBoot) },
		},
		"a claim asks to be installed again": {history: func(t *testing.T) *history {
			return runs(t).push(git(t, "claim web reprovision=1", "server s1")).happens(m1, PowerOff).installs(m1, "web")
		}},
		"an operation is carried out": {history: func(t *testing.T) *history {
			return runs(t).push(git(t, "claim web", "server s1 operation=hard-restart-server#1")).happens(m1, Restart, DiskBoot)
		}},
		"maintenance switches it off": {history: func(t *testing.T) *history {
			return runs(t).push(web(t, "maintenance s1")).happens(m1, PowerOff).push(web(t)).happens(m1, PowerOn, DiskBoot)
		}},
		"maintenance that asks the owner switches it off once that agrees, and goes on as it has begun": {
			history: func(t *testing.T) *history {
				return runs(t).push(web(t, "maintenance s1 policy=OwnerApproval")).
					push(git(t, "claim web agrees=s1", "server s1", "maintenance s1 policy=OwnerApproval")).happens(m1, PowerOff).
					push(git(t, "claim web", "server s1", "maintenance s1 policy=OwnerApproval serverPower=On")).happens(m1, PowerOn).
					push(git(t, "claim web", "server s1", "maintenance s1 policy=OwnerApproval")).happens(m1, PowerOff)
			},
		},
		"maintenance that left it on asks the owner before it switches it off": {
			history: func(t *testing.T) *history {
				return runs(t).push(git(t, "claim web agrees=s1", "server s1", "maintenance s1 policy=OwnerApproval serverPower=On")).
					push(git(t, "claim web agrees=s1", "server s1", "maintenance s1 policy=OwnerApproval")).happens(m1, PowerOff)
			},
			want: []string{"switched off: it belongs to claim default/web"},
		},
		"and switches it off once that agrees": {
			history: func(t *testing.T) *history {
				return runs(t).push(git(t, "claim web agrees=s1", "server s1", "maintenance s1 policy=OwnerApproval serverPower=On")).
					push(git(t, "claim web agrees=s1#Off", "server s1", "maintenance s1 policy=OwnerApproval")).happens(m1, PowerOff)
			},
		},
		"maintenance switches it on, which its claim wants Off": {history: func(t *testing.T) *history {
			return runs(t).push(git(t, "claim web Off", "server s1")).happens(m1, PowerOff).
				push(git(t, "claim web Off", "server s1", "maintenance s1 serverPower=On")).happens(m1, PowerOn)
		}},
		"a claim is switched off": {history: func(t *testing.T) *history {
			return runs(t).push(git(t, "claim web Off", "server s1")).happens(m1, PowerOff)
		}},
		"what was found running is taken over once a commit asks": {history: func(t *testing.T) *history {
			return begin().push(git(t, "server s1")).happens(m1, Found).
				push(git(t, "server s1 discover=1")).happens(m1, PowerOff, PowerOn, NetBoot, PowerOff)
		}},
		"an approval lets go what a rewritten history dropped": {history: func(t *testing.T) *history {
			return runs(t).force(gone(t)).approve().happens(m1, PowerOff, PowerOn, NetBoot, Wipe)
		}},
		"an approval lets a change be made that came with a rewritten history": {history: func(t *testing.T) *history {
			return runs(t).force(git(t, "claim web Off", "server s1")).approve().happens(m1, PowerOff)
		}},
		"and nothing more than that change": {
			history: func(t *testing.T) *history {
				return runs(t).force(git(t, "claim web Off", "server s1")).approve().happens(m1, PowerOff, Wipe)
			},
			want: []string{"wiped: it belongs to claim default/web"},
		},
		"a renamed claim keeps its machine": {history: func(t *testing.T) *history {
			return runs(t).push(git(t, "claim web2", "server s1")).happens(m1, PowerLost, PowerOn, DiskBoot)
		}},
		"a claim is renamed between its wish to be installed again and that": {history: func(t *testing.T) *history {
			return runs(t).push(git(t, "claim web reprovision=1", "server s1")).push(git(t, "claim web2 reprovision=1", "server s1")).
				happens(m1, PowerOff, PowerOn, NetBoot).installs(m1, "web2")
		}},
		"a renamed claim's machine goes when the new name is removed": {history: func(t *testing.T) *history {
			return runs(t).push(git(t, "claim web2", "server s1")).push(gone(t)).happens(m1, PowerOff, PowerOn, NetBoot, Wipe)
		}},
		"a broken manifest that is removed releases": {history: func(t *testing.T) *history {
			files := gone(t)
			files["claims/web.yaml"] = git(t, "broken web")["brokens/web.yaml"]
			return runs(t).push(files).push(gone(t)).happens(m1, PowerOff, PowerOn, NetBoot, Wipe)
		}},
		"also one that a rewritten history broke": {history: func(t *testing.T) *history {
			files := gone(t)
			files["claims/web.yaml"] = git(t, "broken web")["brokens/web.yaml"]
			return runs(t).force(files).push(gone(t)).happens(m1, PowerOff, PowerOn, NetBoot, Wipe)
		}},
		"a live image boots from the network each time": {history: func(t *testing.T) *history {
			return begin().push(git(t, "claim web boot=always", "server s1")).installs(m1, "web").happens(m1, PowerLost).installs(m1, "web")
		}},
		"a rename that a rewritten history undid may not have been seen": {history: func(t *testing.T) *history {
			return runs(t).push(git(t, "claim web2", "server s1")).force(web(t)).push(gone(t)).happens(m1, PowerOff, PowerOn, NetBoot, Wipe)
		}},
		"and may have been seen": {history: func(t *testing.T) *history {
			return begin().push(web(t)).push(git(t, "claim web2", "server s1")).force(web(t)).installs(m1, "web").
				approve().happens(m1, PowerOff, PowerOn, NetBoot, Wipe)
		}},
		"and what neither name asks for is not to be": {
			history: func(t *testing.T) *history {
				return runs(t).push(git(t, "claim web2", "server s1")).force(web(t)).happens(m1, PowerOff)
			},
			want: []string{"belongs to claim default/web2"},
		},

		// rule 1
		"a rewritten history asks for nothing": {
			history: func(t *testing.T) *history { return runs(t).force(gone(t)).happens(m1, PowerOff) },
			want:    []string{"belongs to claim default/web"},
		},
		"nor does the commit after it": {
			history: func(t *testing.T) *history {
				return runs(t).force(gone(t)).push(gone(t)).happens(m1, PowerOff)
			},
			want: []string{"belongs to claim default/web"},
		},
		"nor a rewritten history that switches off": {
			history: func(t *testing.T) *history {
				return runs(t).force(git(t, "claim web Off", "server s1")).happens(m1, PowerOff)
			},
			want: []string{"belongs to claim default/web"},
		},
		"a manifest that breaks asks for nothing": {
			history: func(t *testing.T) *history {
				files := gone(t)
				files["claims/web.yaml"] = git(t, "broken web")["brokens/web.yaml"]
				return runs(t).push(files).happens(m1, PowerOff)
			},
			want: []string{"belongs to claim default/web"},
		},
		"nor does an emptied tree": {
			history: func(t *testing.T) *history { return runs(t).push(map[string]File{}).happens(m1, PowerOff) },
			want:    []string{"belongs to claim default/web"},
		},

		// rule 2
		"a machine is switched off for no reason": {
			history: func(t *testing.T) *history { return runs(t).happens(m1, PowerOff) },
			want:    []string{"switched off: it belongs to claim default/web"},
		},
		"maintenance that asks the owner switches it off, and that does not agree": {
			history: func(t *testing.T) *history {
				return runs(t).push(web(t, "maintenance s1 policy=OwnerApproval")).happens(m1, PowerOff)
			},
			want: []string{"switched off: it belongs to claim default/web"},
		},
		"or agrees to another": {
			history: func(t *testing.T) *history {
				return runs(t).push(git(t, "claim web agrees=s2", "server s1", "maintenance s1 policy=OwnerApproval")).happens(m1, PowerOff)
			},
			want: []string{"switched off: it belongs to claim default/web"},
		},
		"or another owner does": {
			history: func(t *testing.T) *history {
				return begin().push(git(t, "claim web", "claim db", "server s1", "server s2")).installs(m1, "web").installs(m2, "db").
					push(git(t, "claim web", "claim db agrees=s1", "server s1", "server s2", "maintenance s1 policy=OwnerApproval")).happens(m1, PowerOff)
			},
			want: []string{"switched off: it belongs to claim default/web"},
		},
		"maintenance that leaves it on switches it off": {
			history: func(t *testing.T) *history {
				return runs(t).push(web(t, "maintenance s1 serverPower=On")).happens(m1, PowerOff)
			},
			want: []string{"switched off: it belongs to claim default/web"},
		},
		"maintenance switches it off, and is of another server since long": {
			history: func(t *testing.T) *history {
				h := runs(t).push(web(t, "maintenance s1"))
				moved := web(t)
				moved["maintenances/s1.yaml"] = decode("maintenances/s1.yaml", []byte(strings.ReplaceAll(manifest("maintenance", "s1", nil),
					"serverRef: {name: s1}", "serverRef: {name: s2}")))
				h.push(moved).now = h.now.Add(DefaultGrace)
				return h.happens(m1, PowerOff)
			},
			want: []string{"switched off: it belongs to claim default/web"},
		},
		"a machine is switched off a moment after its claim was committed": {
			history: func(t *testing.T) *history {
				h := runs(t).happens(m1, PowerOff)
				h.Grace = time.Hour
				return h
			},
			want: []string{"switched off: it belongs to claim default/web"},
		},
		"a restart is asked for once and made twice": {
			history: func(t *testing.T) *history {
				return runs(t).push(git(t, "claim web", "server s1 operation=hard-restart-server#1")).
					happens(m1, Restart, DiskBoot, Restart)
			},
			want: []string{"restarted: it belongs to claim default/web"},
		},
		"a machine is wiped before its claim is removed": {
			history: func(t *testing.T) *history {
				return runs(t).happens(m1, Wipe).push(gone(t))
			},
			want: []string{"wiped: it belongs to claim default/web"},
		},
		"a machine found running is switched off": {
			history: func(t *testing.T) *history {
				return begin().push(git(t, "server s1")).happens(m1, Found, PowerOff)
			},
			want: []string{"a person has it running"},
		},
		"a machine that a person switched on is switched off": {
			history: func(t *testing.T) *history {
				h := runs(t).happens(m1, PowerLost)
				h.Events = append(h.Events, Event{At: h.tick(), Machine: m1, Kind: PowerOn, ByHand: true})
				return h.happens(m1, PowerOff)
			},
			want: []string{"belongs to claim default/web"},
		},
		"a machine whose claim wants it Off is switched on": {
			history: func(t *testing.T) *history {
				return runs(t).push(git(t, "claim web Off", "server s1")).happens(m1, PowerOff, PowerOn)
			},
			want: []string{"wants it Off"},
		},
		"power is healed from the network": {
			history: func(t *testing.T) *history { return runs(t).happens(m1, PowerLost, PowerOn, NetBoot) },
			want:    []string{"booted a kernel from the network"},
		},
		"the other machine is switched off": {
			history: func(t *testing.T) *history {
				return begin().push(git(t, "claim web", "claim db", "server s1", "server s2")).installs(m1, "web").installs(m2, "db").
					push(git(t, "claim db", "server s1", "server s2")).happens(m2, PowerOff)
			},
			want: []string{"belongs to claim default/db"},
		},
		"what is to be retained is wiped": {
			history: func(t *testing.T) *history {
				return begin().push(git(t, "claim web", "server s1 policy=Retain")).installs(m1, "web").
					push(git(t, "server s1 policy=Retain")).happens(m1, PowerOff, PowerOn, NetBoot, Wipe)
			},
			want: []string{"nobody asked for a wipe"},
		},
		"a renamed claim's machine is wiped": {
			history: func(t *testing.T) *history {
				return runs(t).push(git(t, "claim web2", "server s1")).happens(m1, PowerOff, PowerOn, NetBoot, Wipe)
			},
			want: []string{"belongs to claim default/web2", "belongs to claim default/web2", "belongs to claim default/web2"},
		},
		"a release that was withdrawn long ago is carried out": {
			history: func(t *testing.T) *history {
				return runs(t).push(gone(t)).push(web(t)).happens(m1, DiskBoot, PowerOff)
			},
			want: []string{"belongs to claim default/web"},
		},

		// rule 3
		"a claim is installed a second time": {
			history: func(t *testing.T) *history { return runs(t).happens(m1, PowerLost).installs(m1, "web") },
			want:    []string{"booted a kernel", "installed there before"},
		},
		"a claim is installed on two machines": {
			history: func(t *testing.T) *history { return runs(t).installs(m2, "web") },
			want:    []string{"served Ignition", "whose disk is in machine " + m1},
		},
		"a claim that was never in Git is installed": {
			history: func(t *testing.T) *history { return begin().push(gone(t)).installs(m1, "web") },
			want:    []string{"not in Git"},
		},
		"a disk is written over before it was wiped": {
			history: func(t *testing.T) *history {
				return runs(t).push(git(t, "claim db motd=db", "server s1")).happens(m1, PowerOff).installs(m1, "db")
			},
			want: []string{"not all wiped since its last owner"},
		},
		"a wipe leaves a disk, and another claim has the machine": {
			history: func(t *testing.T) *history {
				h := runs(t).push(git(t, "claim db motd=db", "server s1")).happens(m1, PowerOff, PowerOn, NetBoot, Wipe)
				h.Events[len(h.Events)-1].Left = []string{"S2"}
				return h.happens(m1, PowerOff).installs(m1, "db")
			},
			want: []string{"not all wiped since its last owner"},
		},

		// rule 4
		"another's machine is given a claim's Ignition": {
			history: func(t *testing.T) *history {
				h := begin().push(git(t, "claim web", "claim db", "server s1", "server s2")).installs(m1, "web")
				h.Events = append(h.Events, Event{At: h.tick(), Machine: m1, Kind: Ignition, Claim: "default/db"})
				return h
			},
			want: []string{"of claim default/db, and it belongs to claim default/web"},
		},
		"a machine that is empty is given another's": {
			history: func(t *testing.T) *history {
				h := begin().push(git(t, "claim web", "server s1", "server s2"))
				h.Events = append(h.Events, Event{At: h.tick(), Machine: m2, Kind: Ignition, Claim: "default/web"})
				return h.installs(m1, "web")
			},
			want: []string{"for claim default/web, whose Ignition machine " + m2 + " was given"},
		},
		"a machine that the claim does not name is given it": {
			history: func(t *testing.T) *history {
				h := begin().push(git(t, "claim web ref=s1", "server s1", "server s2"))
				h.Events = append(h.Events, Event{At: h.tick(), Machine: m2, Kind: Ignition, Claim: "default/web"})
				return h
			},
			want: []string{"of claim default/web, which is for machine " + m1},
		},
		"but the one that it names may be": {history: func(t *testing.T) *history {
			return begin().push(git(t, "claim web ref=s1", "server s1", "server s2")).installs(m1, "web")
		}},
		"and another one after a release": {history: func(t *testing.T) *history {
			return runs(t).push(gone(t)).happens(m1, PowerOff, PowerOn, NetBoot, Wipe, PowerOff).push(web(t)).installs(m2, "web")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			got := Replay(tt.history(t).History).Violations
			same := len(got) == len(tt.want)
			for i := range min(len(got), len(tt.want)) {
				same = same && strings.Contains(got[i].String(), tt.want[i])
			}
			if !same {
				t.Errorf("got %v\nwant %q", got, tt.want)
			}
		})
	}
}

func TestBookAtRest(t *testing.T) {
	twice := Replay(begin().push(git(t, "claim web", "server s1", "server s2")).installs(m1, "web").installs(m2, "web").History)
	off := Replay(begin().push(git(t, "claim web Off", "server s1")).History)
	none := Replay(begin().push(git(t, "claim web", "server s1")).History)
	undone := begin().push(git(t, "claim old", "server s1")).push(git(t, "claim web", "server s1")).force(git(t, "claim old", "server s1"))
	brief := func() *history {
		return begin().push(git(t, "server s1")).push(git(t, "claim web", "server s1")).force(git(t, "server s1"))
	}
	given := brief().happens(m1, PowerOn, NetBoot)
	given.Events = append(given.Events, Event{At: given.tick(), Machine: m1, Kind: Ignition, Claim: "default/web"})
	renamed := Replay(undone.installs(m1, "old").History)
	for name, tt := range map[string]struct {
		book  *Book
		shown Shown // the zero one: the status branch does not show it
		want  int
	}{
		"two disks and no reason":        {twice, Shown{Booted: true}, 1},
		"two disks and a reason":         {twice, Shown{Reason: "InstallUnknown"}, 0},
		"no disk, and said to be Booted": {none, Shown{Booted: true}, 1},
		"no disk yet, and why":           {none, Shown{Waits: "NoServer"}, 0},
		"no disk, and nothing says why":  {none, Shown{}, 1},
		"no disk, and a reason":          {none, Shown{Reason: "InstallUnknown"}, 0},
		"no disk, as it is to be Off":    {off, Shown{}, 0},
		"a disk of one with two names":   {renamed, Shown{Booted: true}, 0},
		"pushed and taken away unseen":   {Replay(brief().History), Shown{}, 0},
		"the same, and it was served":    {Replay(given.History), Shown{}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			shown := make(map[model.ClaimName]Shown)
			if tt.shown != (Shown{}) {
				shown["default/web"] = tt.shown
			}
			if got := tt.book.AtRest(shown, time.Now()); len(got) != tt.want {
				t.Errorf("got %v, want %d", got, tt.want)
			}
		})
	}
}

func TestTenantFolderHoldsOnlyItsOwnObjects(t *testing.T) {
	c := Configuration{Folders: map[string]string{"claims/alpha": "alpha"}}
	meta := func(namespace string) model.Meta { return model.Meta{Name: "x", Namespace: namespace} }
	f := File{Objects: []model.Object{
		&model.ServerClaim{Meta: meta("alpha")}, &model.Secret{Meta: meta("alpha")},
		&model.ServerClaim{Meta: meta("beta")}, &model.BMC{Meta: meta("")},
	}}
	for file, want := range map[string]int{"claims/alpha/a.yaml": 2, "claims/alphabet/a.yaml": 4, "bmcs/a.yaml": 4} {
		if got := len(c.of(file, f).Objects); got != want {
			t.Errorf("%s: %d objects count, want %d", file, got, want)
		}
	}
	if len(f.Objects) != 4 {
		t.Error("the file that is known was changed")
	}
}
