package preview_test

import (
	"fmt"
	"html"
	"maps"
	"net/netip"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"ingot/model"
	"ingot/reconcile/internal/fleettest"
	"ingot/reconcile/internal/plantest"
	"ingot/reconcile/plan"
	"ingot/reconcile/plan/policy"
	"ingot/reconcile/plan/proposal"
	"ingot/reconcile/plan/world"
	"ingot/reconcile/preview"
	"ingot/reconcile/report"
)

// fleetOf is a fleet of servers, of which claims have the first ones, as the status branch
// shows it, and what Git says.
func fleetOf(t *testing.T, servers, bound int, change func(in *world.Input)) (*preview.Fleet, *world.Input) {
	t.Helper()
	in := plantest.BigFleet(servers, bound)
	in.Observed.Fleet.Applied = in.Desired.Applied()
	if change != nil {
		change(in)
	}
	r, _ := new(report.Projector).Report(in, plan.Plan(in), 1, model.Holder{})
	fleet, err := preview.ReadFleet(fleettest.Rendered(t, r))
	if err != nil || len(fleet.Problems) > 0 {
		t.Fatal(err, fleet.Problems)
	}
	return fleet, in
}

// commit is a revision that follows on another one.
func commit(before *model.Desired, change func(d *model.Desired)) *model.Desired {
	d := before.Clone()
	d.Revision = "main@sha1:2222222222222222222222222222222222222222"
	if d.Removed = maps.Clone(before.Removed); d.Removed == nil {
		d.Removed = make(map[model.Identity][]model.Removal)
	}
	change(d)
	for name := range before.Claims {
		if d.Claims[name] == nil && !d.IsQuarantined(name.Identity()) {
			d.Removed[name.Identity()] = []model.Removal{{Revision: d.Revision}}
		}
	}
	return d
}

// said is what a preview says of machines, one effect a line.
func said(p *preview.Preview) string {
	var lines []string
	for _, e := range p.Effects {
		line := string(e.Kind) + " " + strings.Join(slices.DeleteFunc([]string{string(e.Server), string(e.Claim), string(e.BMC)}, func(s string) bool { return s == "" }), " ")
		if e.Held {
			line += " held"
		}
		if e.Waits != "" {
			line += " waits"
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

func changed(name model.ClaimName, how func(c *model.ServerClaim)) func(d *model.Desired) {
	return func(d *model.Desired) {
		c := *d.Claims[name]
		c.Annotations = map[string]string{}
		how(&c)
		d.Add(&c)
	}
}

// removed has a commit take a BMC away.
func removed(bmc model.BMCName) func(d *model.Desired) {
	return func(d *model.Desired) {
		delete(d.BMCs, bmc)
		d.Removed = maps.Clone(d.Removed)
		if d.Removed == nil {
			d.Removed = make(map[model.Identity][]model.Removal)
		}
		d.Removed[bmc.Identity()] = []model.Removal{{Revision: d.Revision}}
	}
}

// server is a change of a server's manifest.
func server(i int, how func(s *model.Server)) func(d *model.Desired) {
	return func(d *model.Desired) {
		s := &model.Server{Meta: model.Meta{Name: string(fleettest.ServerName(i)), Annotations: map[string]string{}}}
		how(s)
		d.Add(s)
	}
}

func TestWhatACommitDoes(t *testing.T) {
	const first = "default/c00000"
	drop := func(names ...model.ClaimName) func(d *model.Desired) {
		return func(d *model.Desired) {
			for _, n := range names {
				delete(d.Claims, n)
			}
		}
	}
	unreachable := func(in *world.Input) {
		for name := range in.Readings {
			in.Readings[name] = in.Readings[name].Missed("connection refused", in.Now.Add(time.Minute), in.Now)
		}
	}
	retain := server(0, func(s *model.Server) { s.Spec.ReclaimPolicy = model.ReclaimRetain })
	releasing := func(in *world.Input) {
		drop(first)(in.Desired)
		in.Observed.Servers[fleettest.ServerName(0)].Release = &model.Release{Revision: in.Desired.Revision, At: in.Now, Claim: first}
	}
	wiping := func(state model.ServerState) func(in *world.Input) {
		return func(in *world.Input) {
			drop(first)(in.Desired)
			rec := in.Observed.Servers[fleettest.ServerName(0)]
			rec.Life.State, rec.Claim.Name, rec.Install.Digest = state, "", ""
			if state == model.StateError {
				rec.Life.Back, rec.Life.Reason = model.StateCleanup, model.ReasonCleanupFailed
			}
		}
	}
	bootsAlways := func(in *world.Input) {
		changed(first, func(c *model.ServerClaim) { c.Annotations[model.AnnotationBoot] = "always" })(in.Desired)
		rec := in.Observed.Servers[fleettest.ServerName(0)]
		rec.Boot.Ticket = &model.Ticket{ID: "t1", Purpose: model.PurposeClaim, Claim: first, Digest: rec.Install.Digest, Always: true, Ended: model.TicketBooted}
	}
	for name, tc := range map[string]struct {
		fleet   func(in *world.Input)
		commit  func(d *model.Desired)
		want    string
		verdict preview.Verdict
		says    string // in some message
	}{
		"a commit about something else does nothing": {commit: func(*model.Desired) {}, verdict: preview.Nothing},
		"a claim that is new gets a free server": {
			commit: func(d *model.Desired) { d.Add(fleettest.Claim("web")) },
			want:   "bind bmc00002-system-0 default/web", verdict: preview.Changes, says: "image os:1 is installed",
		},
		"a claim for which there is none waits": {
			commit: func(d *model.Desired) {
				d.Add(fleettest.Claim("web", func(c *model.ServerClaim) { c.Spec.ServerRef = &model.LocalRef{Name: "nowhere"} }))
			},
			want: "wait default/web", verdict: preview.Changes, says: "server nowhere is not known",
		},
		"a claim does not get a server that cannot be reached": {
			fleet:  unreachable,
			commit: func(d *model.Desired) { d.Add(fleettest.Claim("web")) },
			want:   "wait default/web", verdict: preview.Changes, says: "out of reach",
		},
		"a claim that is gone gives up its server, which is wiped": {
			commit: drop(first), want: "release bmc00000-system-0 default/c00000", verdict: preview.Destructive, says: "wiped (cleanup quick)",
		},
		"a server is wiped as its manifest says": {
			fleet: func(in *world.Input) {
				server(0, func(s *model.Server) { s.Annotations[model.AnnotationCleanup] = model.CleanupSecure })(in.Desired)
			},
			commit: drop(first), want: "release bmc00000-system-0 default/c00000", verdict: preview.Destructive, says: "wiped (cleanup secure)",
		},
		"a server that is to be kept is kept": {
			fleet: func(in *world.Input) { retain(in.Desired) }, commit: drop(first), want: "retain bmc00000-system-0 default/c00000", verdict: preview.Destructive, says: "kept as it is",
		},
		"one that cannot be reached is released once it can": {
			fleet: unreachable, commit: drop(first), want: "release bmc00000-system-0 default/c00000 waits", verdict: preview.Destructive,
		},
		"more than the guard's limit are held back": {
			commit: drop(first, "default/c00001", "default/c00002", "default/c00003"),
			fleet: func(in *world.Input) {
				*in = *plantest.BigFleet(6, 4)
				in.Observed.Fleet.Applied = in.Desired.Applied()
			},
			want:    "release bmc00000-system-0 default/c00000 held\nrelease bmc00001-system-0 default/c00001 held\n" + "release bmc00002-system-0 default/c00002 held\nrelease bmc00003-system-0 default/c00003 held",
			verdict: preview.Destructive,
		},
		"a claim that is quarantined keeps its server": {
			commit: func(d *model.Desired) {
				drop(first)(d)
				d.Quarantined[model.ClaimName(first).Identity()] = []string{""}
			},
			want: "hold bmc00000-system-0 default/c00000", verdict: preview.Changes, says: "cannot be used",
		},
		"another image waits": {
			commit: changed(first, func(c *model.ServerClaim) { c.Spec.Image = "linux:2" }),
			want:   "pending bmc00000-system-0 default/c00000", verdict: preview.Changes, says: "image linux:2 instead of os:1",
		},
		"another disk for its disk image waits": {
			commit: changed(first, func(c *model.ServerClaim) { c.Annotations[model.AnnotationRootDevice] = "serial=S2" }),
			want:   "pending bmc00000-system-0 default/c00000", verdict: preview.Changes, says: `another disk (ingot/root-device "serial=S2" instead of "")`,
		},
		"another seed waits": {
			commit: changed(first, func(c *model.ServerClaim) { c.Annotations[model.AnnotationSeed] = "openstack" }),
			want:   "pending bmc00000-system-0 default/c00000", verdict: preview.Changes, says: "another way for its configuration",
		},
		"a leave to overwrite a disk waits": {
			commit: changed(first, func(c *model.ServerClaim) { c.Annotations[model.AnnotationOverwrite] = "1" }),
			want:   "pending bmc00000-system-0 default/c00000", verdict: preview.Changes, says: "what may be overwritten",
		},
		"a hint of a server for its disk counts later": {
			commit: server(0, func(s *model.Server) { s.Annotations[model.AnnotationRootDevice] = "serial=S2" }),
			want:   "setting bmc00000-system-0 default/c00000", verdict: preview.Changes,
			says: `the disk that fits "serial=S2", from its next installation on (ingot/root-device; now unset)`,
		},
		"how a server is sent on to its disk counts from its next boot": {
			fleet: func(in *world.Input) {
				server(3, func(s *model.Server) { s.Annotations[model.AnnotationBootFromDisk] = "exit" })(in.Desired)
			},
			commit: server(3, func(s *model.Server) { s.Annotations[model.AnnotationBootFromDisk] = "sanboot" }),
			want:   "setting bmc00003-system-0", verdict: preview.Changes, says: `by "sanboot", from its next boot from the network on (ingot/boot-from-disk; now "exit")`,
		},
		"an annotation that is taken away is told of": {
			fleet: func(in *world.Input) {
				server(3, func(s *model.Server) { s.Annotations[model.AnnotationBootLoader] = "snponly" })(in.Desired)
			},
			commit: func(d *model.Desired) { delete(d.Servers, fleettest.ServerName(3)) },
			want:   "setting bmc00003-system-0", verdict: preview.Changes, says: `gets its network's boot loader from its next network boot on (ingot/boot-loader; now "snponly")`,
		},
		"another boot loader counts from its next boot": {
			commit: server(3, func(s *model.Server) { s.Annotations[model.AnnotationBootLoader] = "snponly" }),
			want:   "setting bmc00003-system-0", verdict: preview.Changes, says: `boot loader "snponly"`,
		},
		"what a server is known by is told": {
			commit: server(3, func(s *model.Server) { s.Annotations[model.AnnotationMACAddresses] = "02:00:00:00:00:99" }),
			want:   "setting bmc00003-system-0", verdict: preview.Changes, says: "02:00:00:00:00:99",
		},
		"disks that a wipe need not show are told": {
			commit: server(3, func(s *model.Server) { s.Annotations[model.AnnotationDisksAccepted] = "S1" }),
			want:   "setting bmc00003-system-0", verdict: preview.Changes, says: `need not account for these disks at its next wipe: "S1"`,
		},
		"other SSH keys wait for the next installation": {
			commit: changed(first, func(c *model.ServerClaim) {
				c.Annotations[model.AnnotationSSHKeys] = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIF1juKY626E4fQzuHKLR/K2kbdeSBuEmw9YynTh72RL8 alice"
			}),
			want: "setting bmc00000-system-0 default/c00000", verdict: preview.Changes,
			says: `gets the SSH keys "SHA256:6oN5//kw2xkD7syU1kyw8bkyiWlPBvRsj1dgY/Qdi/g alice" with its next installation (ingot/ssh-authorized-keys; now unset)`,
		},
		"what a claim counts as booted by is told": {
			commit: changed(first, func(c *model.ServerClaim) { c.Annotations[model.AnnotationBooted] = model.BootedKernel }),
			want:   "setting bmc00000-system-0 default/c00000", verdict: preview.Changes, says: "counts as booted by",
		},
		"another TLS minimum of a BMC is told": {
			commit: func(d *model.Desired) {
				b := *d.BMCs["bmc00003"]
				b.Annotations = map[string]string{model.AnnotationTLSMinimum: "1.0"}
				d.Add(&b)
			},
			want: "bmc-changed bmc00003", verdict: preview.Changes, says: "another lowest version of TLS",
		},
		"other kernel arguments wait": {
			commit: changed(first, func(c *model.ServerClaim) { c.Annotations[model.AnnotationKernelArguments] = "quiet" }),
			want:   "pending bmc00000-system-0 default/c00000", verdict: preview.Changes, says: "other kernel arguments",
		},
		"it is installed once that is asked for": {
			commit: changed(first, func(c *model.ServerClaim) { c.Annotations[model.AnnotationReprovision] = "1" }),
			want:   "reprovision bmc00000-system-0 default/c00000", verdict: preview.Destructive, says: "with image os:1",
		},
		"one that was asked for while the claim was to be Off is installed once it is to be On": {
			fleet: func(in *world.Input) {
				changed(first, func(c *model.ServerClaim) {
					c.Spec.Power, c.Annotations[model.AnnotationReprovision] = model.PowerOff, "1"
				})(in.Desired)
				rec := in.Observed.Servers[fleettest.ServerName(0)]
				rec.Install.Reprovision, rec.Requests.HandledReprovision, rec.Claim.Power = "1", "1", model.PowerOff
			},
			commit: changed(first, func(c *model.ServerClaim) {
				c.Spec.Power, c.Annotations[model.AnnotationReprovision] = model.PowerOn, "1"
			}),
			want: "reprovision bmc00000-system-0 default/c00000\npower-on bmc00000-system-0 default/c00000", verdict: preview.Destructive,
			says: "with image os:1, as asked for while its claim was Off",
		},
		"a claim that is to be Off is powered off": {
			commit: changed(first, func(c *model.ServerClaim) { c.Spec.Power = model.PowerOff }),
			want:   "power-off bmc00000-system-0 default/c00000", verdict: preview.Destructive,
		},
		"an operation on what runs disturbs it": {
			commit: server(0, func(s *model.Server) { s.Annotations[model.AnnotationOperation] = "power-cycle-server#1" }),
			want:   "operation bmc00000-system-0 default/c00000", verdict: preview.Destructive, says: "power-cycle-server#1",
		},
		"an operation on what is free disturbs nobody": {
			commit: server(3, func(s *model.Server) { s.Annotations[model.AnnotationOperation] = "force-on-server#1" }),
			want:   "operation bmc00003-system-0", verdict: preview.Changes,
		},
		"maintenance takes what runs out of service": {
			commit: func(d *model.Desired) {
				m := fleettest.MaintenanceOf("disk", 0)
				m.Spec.ServerRef.Name = string(fleettest.ServerName(0))
				d.Add(m)
			},
			want: "maintenance bmc00000-system-0 default/c00000", verdict: preview.Destructive,
		},
		"a cordon disturbs nobody": {
			commit: server(3, func(s *model.Server) { s.Spec.Unclaimable = true }), verdict: preview.Nothing,
		},
		"a claim that wants its disks wiped more strictly is a change of its release": {
			commit: changed(first, func(c *model.ServerClaim) { c.Annotations[model.AnnotationCleanup] = model.CleanupSecure }),
			want:   "cleanup bmc00000-system-0 default/c00000", verdict: preview.Changes,
			says: "has its disks wiped (cleanup secure) when it is next released; without this: wiped (cleanup quick)",
		},
		"a claim that wants its disks wiped less strictly than its server changes nothing": {
			commit: changed(first, func(c *model.ServerClaim) { c.Annotations[model.AnnotationCleanup] = model.CleanupNone }), verdict: preview.Nothing,
		},
		"a server's manifest says how its disks are wiped at its release": {
			commit: server(0, func(s *model.Server) { s.Annotations[model.AnnotationCleanup] = model.CleanupNone }),
			want:   "cleanup bmc00000-system-0 default/c00000", verdict: preview.Changes,
			says: "has its disks left as they are (cleanup none) when it is next released; without this: wiped (cleanup quick)",
		},
		"a server that nobody has is wiped otherwise after its next claim": {
			commit: server(3, func(s *model.Server) { s.Annotations[model.AnnotationCleanup] = model.CleanupSecure }),
			want:   "cleanup bmc00003-system-0", verdict: preview.Changes,
		},
		"a new claim that wants its disks wiped more strictly says so with its server": {
			commit: func(d *model.Desired) {
				d.Add(fleettest.Claim("web", func(c *model.ServerClaim) {
					c.Annotations = map[string]string{model.AnnotationCleanup: model.CleanupSecure}
				}))
			},
			want: "bind bmc00002-system-0 default/web\ncleanup bmc00002-system-0 default/web", verdict: preview.Changes,
		},
		"how the disks of what is released are wiped is said once": {
			commit: func(d *model.Desired) {
				drop(first)(d)
				server(0, func(s *model.Server) { s.Annotations[model.AnnotationCleanup] = model.CleanupSecure })(d)
			},
			want: "release bmc00000-system-0 default/c00000", verdict: preview.Destructive, says: "wiped (cleanup secure)",
		},
		"a server that is to be retained at its release": {
			commit: retain, want: "cleanup bmc00000-system-0 default/c00000", verdict: preview.Changes,
			says: "has its disks kept until reclaimPolicy is Recycle, then wiped (cleanup quick) when it is next released",
		},
		"disks that were to be kept are lost where the server is being released": {
			fleet: func(in *world.Input) {
				retain(in.Desired)
				releasing(in)
			},
			commit: func(d *model.Desired) { delete(d.Servers, fleettest.ServerName(0)) },
			want:   "cleanup bmc00000-system-0 default/c00000", verdict: preview.Destructive, says: "wiped (cleanup quick) now",
		},
		"disks that were to be left as they are are lost where the server is being released": {
			fleet: func(in *world.Input) {
				in.Policy.CleanupMode = model.CleanupNone
				releasing(in)
			},
			commit: server(0, func(s *model.Server) { s.Annotations[model.AnnotationCleanup] = model.CleanupQuick }),
			want:   "cleanup bmc00000-system-0 default/c00000", verdict: preview.Destructive, says: "wiped (cleanup quick) now",
		},
		"a wipe that is under way is done otherwise": {
			fleet:  wiping(model.StateCleanup),
			commit: server(0, func(s *model.Server) { s.Annotations[model.AnnotationCleanup] = model.CleanupSecure }),
			want:   "cleanup bmc00000-system-0", verdict: preview.Changes, says: "wiped (cleanup secure) now",
		},
		"a wipe that failed is done otherwise": {
			fleet:  wiping(model.StateError),
			commit: server(0, func(s *model.Server) { s.Annotations[model.AnnotationCleanup] = model.CleanupSecure }),
			want:   "cleanup bmc00000-system-0", verdict: preview.Changes, says: "wiped (cleanup secure) now",
		},
		"a claim that is to be On for the first time is installed, not installed again": {
			fleet: func(in *world.Input) {
				changed(first, func(c *model.ServerClaim) { c.Spec.Power = model.PowerOff })(in.Desired)
				rec := in.Observed.Servers[fleettest.ServerName(0)]
				rec.Install.Digest, rec.Claim.Power = "", model.PowerOff
			},
			commit: changed(first, func(c *model.ServerClaim) { c.Spec.Power = model.PowerOn }),
			want:   "power-on bmc00000-system-0 default/c00000", verdict: preview.Changes,
		},
		"a BMC that moves to where Ingot may not speak is no longer contacted": {
			fleet: func(in *world.Input) {
				in.Policy.BMCNetworks = model.BMCNetworks{{Prefix: netip.MustParsePrefix("0.0.0.0/0")}}
			},
			commit: func(d *model.Desired) {
				b := *d.BMCs["bmc00003"]
				b.Spec.Access = &model.InlineEndpoint{IP: "127.0.0.1"}
				d.Add(&b)
			},
			want: "bmc-changed bmc00003\nhold bmc00003-system-0", verdict: preview.Changes, says: "and is no longer contacted: 127.0.0.1 is in none of bmc.networks",
		},
		"disks that are wiped otherwise where the server is being released": {
			fleet:  releasing,
			commit: server(0, func(s *model.Server) { s.Annotations[model.AnnotationCleanup] = model.CleanupSecure }),
			want:   "cleanup bmc00000-system-0 default/c00000", verdict: preview.Changes, says: "wiped (cleanup secure) now; without this: wiped (cleanup quick)",
		},
		"disks that were to be kept when the release was decided are kept though the manifest is removed": {
			fleet: func(in *world.Input) {
				releasing(in)
				retain(in.Desired)
				in.Observed.Servers[fleettest.ServerName(0)].Release.Retain = true
				in.Desired.Add(fleettest.Claim("web", func(c *model.ServerClaim) {
					c.Spec.ServerRef = &model.LocalRef{Name: string(fleettest.ServerName(0))}
				}))
			},
			commit: func(d *model.Desired) {
				delete(d.Servers, fleettest.ServerName(0))
				d.Removed[fleettest.ServerName(0).Identity()] = []model.Removal{{Revision: d.Revision}}
			},
			verdict: preview.Nothing,
		},
		"disks of a kept server are wiped otherwise once that is asked for": {
			fleet: func(in *world.Input) {
				retain(in.Desired)
				drop(first)(in.Desired)
				in.Observed.Servers[fleettest.ServerName(0)].Life.State = model.StateReleased
			},
			commit: func(d *model.Desired) {
				server(0, func(s *model.Server) {
					s.Spec.ReclaimPolicy, s.Annotations[model.AnnotationCleanup] = model.ReclaimRetain, model.CleanupSecure
				})(d)
			},
			want: "cleanup bmc00000-system-0 default/c00000", verdict: preview.Changes,
			says: "wiped (cleanup secure) once reclaimPolicy is Recycle; without this: wiped (cleanup quick)",
		},
		"a claim that is to boot from the network each time does so once it is installed again": {
			commit: changed(first, func(c *model.ServerClaim) { c.Annotations[model.AnnotationBoot] = "always" }),
			want:   "pending bmc00000-system-0 default/c00000", verdict: preview.Changes, says: "always counts from its next installation on",
		},
		"a claim that is installed again to boot from the network each time says so": {
			commit: changed(first, func(c *model.ServerClaim) {
				c.Annotations[model.AnnotationBoot], c.Annotations[model.AnnotationReprovision] = "always", "1"
			}),
			want: "reprovision bmc00000-system-0 default/c00000", verdict: preview.Destructive, says: "from the network at each boot",
		},
		"a new claim that boots from the network each time says so": {
			commit: func(d *model.Desired) {
				d.Add(fleettest.Claim("web", func(c *model.ServerClaim) { c.Annotations = map[string]string{model.AnnotationBoot: "always"} }))
			},
			want: "bind bmc00002-system-0 default/web", verdict: preview.Changes, says: "from the network at each boot",
		},
		"a claim that booted from the network each time boots from its disk": {
			fleet:  bootsAlways,
			commit: changed(first, func(*model.ServerClaim) {}),
			want:   "boot bmc00000-system-0 default/c00000", verdict: preview.Changes, says: "boots from its disk from its next boot on",
		},
		"a claim that is not installed yet boots from the network each time from now on": {
			fleet:  func(in *world.Input) { in.Observed.Servers[fleettest.ServerName(0)].Install.Digest = "" },
			commit: changed(first, func(c *model.ServerClaim) { c.Annotations[model.AnnotationBoot] = "always" }),
			want:   "boot bmc00000-system-0 default/c00000", verdict: preview.Changes, says: "boots its image from the network at each boot",
		},
		"a server that is left alone is told so beside what becomes of its disks": {
			commit: server(0, func(s *model.Server) {
				s.Annotations[model.AnnotationCleanup], s.Annotations[model.AnnotationOperation] = model.CleanupSecure, model.OperationIgnore
			}),
			want: "cleanup bmc00000-system-0 default/c00000\nhold bmc00000-system-0 default/c00000", verdict: preview.Changes,
		},
		"a claim that is back is told how it boots": {
			fleet: releasing,
			commit: func(d *model.Desired) {
				d.Add(fleettest.Claim("c00000", func(c *model.ServerClaim) { c.Annotations = map[string]string{model.AnnotationBoot: "always"} }))
				delete(d.Removed, model.ClaimName(first).Identity())
			},
			want: "keep bmc00000-system-0 default/c00000", verdict: preview.Changes, says: "from the network at each boot",
		},
		"a claim that goes on booting from the network each time is not told": {
			fleet:  bootsAlways,
			commit: changed(first, func(c *model.ServerClaim) { c.Annotations[model.AnnotationBoot] = "always" }), verdict: preview.Nothing,
		},
		"a BMC at an address that Ingot may not speak with is not spoken with": {
			fleet: func(in *world.Input) {
				in.Policy.BMCNetworks = model.BMCNetworks{{Prefix: netip.MustParsePrefix("192.0.2.0/24")}}
			},
			commit: func(d *model.Desired) {
				b := *d.BMCs["bmc00003"]
				b.Name, b.Spec.Access = "new", &model.InlineEndpoint{IP: "198.51.100.7"}
				d.Add(&b)
			},
			want: "bmc-added new", verdict: preview.Changes, says: "is not contacted: 198.51.100.7 is in none of bmc.networks",
		},
		"a BMC that goes leaves its servers": {
			commit: func(d *model.Desired) { delete(d.BMCs, "bmc00000") },
			want:   "bmc-removed bmc00000\nhold bmc00000-system-0 default/c00000", verdict: preview.Changes, says: "their power is not restored",
		},
		"a BMC of a server that is nobody's goes, and it is forgotten a day later": {
			commit: removed("bmc00003"),
			want:   "bmc-removed bmc00003\nhold bmc00003-system-0", verdict: preview.Changes,
			says: "a commit took its BMC bmc00003 away, so it is left as it is, and forgotten after",
		},
		"what a claim leaves behind is forgotten by the commit that says so": {
			fleet: func(in *world.Input) {
				removed("bmc00000")(in.Desired)
				rec := in.Observed.Servers[fleettest.ServerName(0)]
				rec.Life.State, rec.Life.Back, rec.Life.Reason, rec.Claim.Name = model.StateError, model.StateCleanup, model.ReasonCleanupFailed, ""
				drop(first)(in.Desired)
			},
			commit: server(0, func(s *model.Server) { s.Annotations[model.AnnotationOperation] = "forget" }),
			want:   "forget bmc00000-system-0", verdict: preview.Changes, says: "no disk of it is wiped",
		},
		"what a claim has is not forgotten": {
			fleet:  func(in *world.Input) { removed("bmc00000")(in.Desired) },
			commit: server(0, func(s *model.Server) { s.Annotations[model.AnnotationOperation] = "forget" }),
			want:   "operation bmc00000-system-0 default/c00000", verdict: preview.Changes,
			says: "does not get the operation of its annotation, forget: claim default/c00000 has it: remove that first",
		},
		"a BMC at another address is looked at first": {
			commit: func(d *model.Desired) {
				b := *d.BMCs["bmc00000"]
				b.Spec.Access = &model.InlineEndpoint{IP: "192.0.2.77"}
				d.Add(&b)
			},
			want: "bmc-changed bmc00000\nhold bmc00000-system-0 default/c00000", verdict: preview.Changes, says: "another address",
		},
		"a claim that was bound and is renamed keeps its server": {
			fleet: func(in *world.Input) {
				in.Observed.Servers[fleettest.ServerName(0)].Intent = &model.Intent{Kind: model.IntentBind, Value: first, Revision: in.Desired.Revision}
			},
			commit: fleettest.Renamed("c00000", "web"),
			want:   "rename bmc00000-system-0 default/web", verdict: preview.Changes, says: "goes on for claim default/web, which was called default/c00000",
		},
		"a claim that is renamed with an operation has that once": {
			commit: func(d *model.Desired) {
				fleettest.Renamed("c00000", "web")(d)
				server(0, func(s *model.Server) { s.Annotations[model.AnnotationOperation] = "power-cycle-server#1" })(d)
			},
			want: "operation bmc00000-system-0 default/web\nrename bmc00000-system-0 default/web", verdict: preview.Destructive,
		},
		"a server that is left alone is told so beside where it boots from": {
			fleet: bootsAlways,
			commit: func(d *model.Desired) {
				changed(first, func(*model.ServerClaim) {})(d)
				delete(d.BMCs, "bmc00000")
			},
			want: "bmc-removed bmc00000\nboot bmc00000-system-0 default/c00000\nhold bmc00000-system-0 default/c00000", verdict: preview.Changes,
		},
		"a claim that waits as before is not told": {
			fleet: func(in *world.Input) {
				in.Desired.Add(fleettest.Claim("web", func(c *model.ServerClaim) { c.Spec.ServerRef = &model.LocalRef{Name: "nowhere"} }))
			},
			commit: changed("default/web", func(*model.ServerClaim) {}), verdict: preview.Nothing,
		},
		"a server that is being released comes back to be wiped": {
			fleet: func(in *world.Input) {
				releasing(in)
				rec := in.Observed.Servers[fleettest.ServerName(0)]
				rec.Life.State, rec.Life.Back, rec.Maintenance.By = model.StateMaintenance, model.StateReserved, "disk"
				m := fleettest.MaintenanceOf("disk", 0)
				m.Spec.ServerRef.Name = string(rec.Name)
				in.Desired.Add(m)
				in.Observed.ServerFacts[rec.Name].Power = model.PowerOff
			},
			commit: func(d *model.Desired) {
				delete(d.Maintenances, "disk")
				d.Removed[model.MaintenanceIdentity("disk")] = []model.Removal{{Revision: d.Revision}}
			},
			want: "return bmc00000-system-0 default/c00000", verdict: preview.Changes, says: "as Cleanup",
		},
		"other credentials of a BMC are told": {
			commit: func(d *model.Desired) {
				b := *d.BMCs["bmc00003"]
				b.Spec.BMCSecretRef.Name = "elsewhere"
				d.Add(&b)
			},
			want: "bmc-changed bmc00003", verdict: preview.Changes, says: "other credentials: what answers is checked",
		},
		"a suspended BMC leaves its servers alone, and is at no other address": {
			commit: func(d *model.Desired) {
				b := *d.BMCs["bmc00003"]
				b.Annotations = map[string]string{model.AnnotationOperation: model.OperationIgnore}
				d.Add(&b)
			},
			want: "hold bmc00003-system-0", verdict: preview.Changes,
		},
		"what happens anyway is not told": {
			fleet:  func(in *world.Input) { in.Desired = commit(in.Desired, drop(first)) },
			commit: changed("default/c00001", func(c *model.ServerClaim) { c.Spec.Power = model.PowerOff }),
			want:   "power-off bmc00001-system-0 default/c00001", verdict: preview.Destructive,
		},
		"what does not happen any more is told": {
			fleet: func(in *world.Input) { in.Desired = commit(in.Desired, drop(first)) },
			commit: func(d *model.Desired) {
				d.Add(fleettest.Claim("c00000"))
				delete(d.Removed, model.ClaimName(first).Identity())
			},
			want: "no-longer bmc00000-system-0 default/c00000", verdict: preview.Changes,
		},
		"a claim gets a server once it is wiped": {
			fleet: func(in *world.Input) {
				*in = *plantest.BigFleet(2, 2)
				in.Observed.Fleet.Applied = in.Desired.Applied()
			},
			commit: func(d *model.Desired) {
				drop(first)(d)
				d.Add(fleettest.Claim("web"))
			},
			want:    "release bmc00000-system-0 default/c00000\nbind bmc00000-system-0 default/web",
			verdict: preview.Destructive, says: "once it is wiped",
		},
	} {
		t.Run(name, func(t *testing.T) {
			fleet, in := fleetOf(t, 4, 2, tc.fleet)
			policy, _ := fleet.Policy()
			p := preview.Of(preview.Input{Fleet: fleet, Base: in.Desired, Head: commit(in.Desired, tc.commit), Policy: policy, Now: in.Now.Add(time.Second)})
			if got := said(p); got != tc.want || p.Verdict != tc.verdict {
				t.Errorf("%s: got\n%s\nwant %s:\n%s", p.Verdict, got, tc.verdict, tc.want)
			}
			if !slices.ContainsFunc(p.Effects, func(e preview.Effect) bool { return strings.Contains(e.Message, tc.says) }) && tc.says != "" {
				t.Errorf("nothing says %q: %+v", tc.says, p.Effects)
			}
			if all := strings.Contains(p.Summary(), "Nothing happens"); all != (len(p.Effects) == 0) {
				t.Errorf("%d effects come to %q", len(p.Effects), p.Summary())
			}
			for _, e := range p.Effects {
				if e.Message == "" || strings.Contains(e.Message, "%!") {
					t.Errorf("%+v has no message that can be read", e)
				}
			}
		})
	}
}

func TestThePolicyIsThatOfTheStatusBranch(t *testing.T) {
	want := policy.Default()
	want.CleanupMode, want.MaxDisruptions, want.MaxPowerDisruptions, want.GuardWindow = model.CleanupSecure, 7, 9, 2*time.Hour
	want.PlaintextSecrets = true
	want.BMCNetworks = model.BMCNetworks{
		{Prefix: netip.MustParsePrefix("192.0.2.0/24")}, {Prefix: netip.MustParsePrefix("2001:db8::/64"), Plain: true},
	}
	fleet, _ := fleetOf(t, 1, 0, func(in *world.Input) { in.Policy = want })
	got, notes := fleet.Policy()
	if !reflect.DeepEqual(got, want) || len(notes) > 0 {
		t.Errorf("got  %+v %q\nwant %+v", got, notes, want)
	}
	want.BMCNetworks, want.PlaintextSecrets = nil, false
	fleet, _ = fleetOf(t, 1, 0, func(in *world.Input) { in.Policy = want })
	if got, notes = fleet.Policy(); !reflect.DeepEqual(got, want) || len(notes) > 0 {
		t.Errorf("without networks: got  %+v %q\nwant %+v", got, notes, want)
	}
}

func TestAnUnknownBranchIsSaidSo(t *testing.T) {
	if _, err := preview.ReadFleet(map[string][]byte{"README.md": []byte("hello")}); err == nil {
		t.Error("files that are no status branch were read as one")
	}
	fleet, _ := fleetOf(t, 1, 0, nil)
	fleet.Document.Policy = report.Policy{}
	if _, notes := fleet.Policy(); len(notes) != 1 || !strings.Contains(notes[0], "assumed") {
		t.Errorf("it is not said that the policy is assumed: %q", notes)
	}
}

func TestAnEndpointWhoseDeviceIsNotKnownIsNoDevice(t *testing.T) {
	fleet, _ := fleetOf(t, 1, 0, func(in *world.Input) {
		in.Desired.Endpoints["port-7"] = &model.Endpoint{Meta: model.Meta{Name: "port-7"}, Spec: model.EndpointSpec{IP: "192.0.2.7"}}
	})
	if n := len(fleet.Observed.EndpointFacts); n != 0 {
		t.Errorf("got %d devices: %v", n, fleet.Observed.EndpointFacts)
	}
}

func TestAListThatIsHeldAlreadyShowsItsLine(t *testing.T) {
	drop := func(d *model.Desired) {
		for _, n := range []model.ClaimName{"default/c00000", "default/c00001", "default/c00002", "default/c00003"} {
			delete(d.Claims, n)
		}
	}
	var base *model.Desired
	fleet, in := fleetOf(t, 6, 4, func(in *world.Input) {
		base = in.Desired
		in.Desired = commit(base, drop)
		in.Desired.Revision, in.Nonce = "main@sha1:0123456789abcdef", "secret"
		r := plan.Plan(in)
		in.Observed.Fleet = *r.Decided.Fleet
	})
	policy, _ := fleet.Policy()
	p := preview.Of(preview.Input{Fleet: fleet, Base: base, Head: in.Desired, Policy: policy, Now: in.Now.Add(time.Second)})
	if len(p.Held) != 1 || p.Held[0].Approve == "" || !strings.Contains(p.Held[0].Next(), p.Held[0].Approve+"; to refuse it: git revert 0123456789ab") {
		t.Errorf("held %+v, want the line that approves the list, and the command that refuses it", p.Held)
	}
	approved := commit(in.Desired, func(d *model.Desired) {
		d.Approvals = []string{strings.TrimPrefix(p.Held[0].Approve, "Ingot-Approve: ")}
	})
	p = preview.Of(preview.Input{Fleet: fleet, Base: in.Desired, Head: approved, Policy: policy, Now: in.Now.Add(time.Second)})
	if p.Verdict != preview.Destructive || len(p.Held) != 0 {
		t.Errorf("a commit that approves the list is %s and has %+v held", p.Verdict, p.Held)
	}
	if got := said(p); strings.Count(got, "release") != 4 || strings.Contains(got, "no-longer") {
		t.Errorf("a commit that approves the list is said to do\n%s", got)
	}
	p = preview.Of(preview.Input{Fleet: fleet, Base: in.Desired, Head: base, Policy: policy, Now: in.Now.Add(time.Second)})
	if got := said(p); strings.Count(got, "no-longer") != 4 || p.Verdict != preview.Changes {
		t.Errorf("a commit that takes all back is said to do\n%s", got)
	}
}

func TestMarkdownObeysNobody(t *testing.T) {
	evil := "x | <img src=x onerror=alert(1)> @root #1 !2 [a](https://evil.example) `code` **b** \n/close\n<!-- ingot plan --> www.evil.example GH-12 & \u202e"
	p := &preview.Preview{
		Verdict: preview.Destructive, Base: "main@sha1:1111111111111111111111111111111111111111", Head: "main@sha1:2222222222222222222222222222222222222222",
		Effects:  []preview.Effect{{Kind: proposal.StepRelease, Server: model.ServerName(evil), Claim: model.ClaimName(evil), Message: evil, Waits: evil, Next: evil, Destructive: true}},
		Held:     []preview.Held{{Steps: []model.Disruption{{Action: "release", Server: model.ServerName(evil), Claim: model.ClaimName(evil)}}, Namespace: evil}},
		Problems: []model.Problem{{Severity: model.SeverityError, File: evil, Object: evil, Field: evil, Message: evil}},
		Notes:    []string{evil},
	}
	got := p.Markdown()
	body := strings.TrimPrefix(got, preview.Marker+"\n")
	for _, bad := range []string{"<img", "](", "://", "`", "**b", "\n/close", preview.Marker, "\u202e"} {
		if strings.Contains(body, bad) {
			t.Errorf("the comment has %q in it:\n%s", bad, got)
		}
	}
	// What forges look for in the text that is shown, but not in code.
	shown := html.UnescapeString(regexp.MustCompile("<code>.*?</code>").ReplaceAllString(body, ""))
	for _, bad := range []string{"@root", "#1", "!2", "://", "www.", "GH-12"} {
		if strings.Contains(shown, bad) {
			t.Errorf("the comment shows %q:\n%s", bad, shown)
		}
	}
	for line := range strings.Lines(body) {
		if strings.HasPrefix(line, "| **!**") && strings.Count(line, "|") != 5 {
			t.Errorf("a row has other columns: %s", line)
		}
	}
}

func TestMarkdownEscapesOnlyMarkup(t *testing.T) {
	for text, want := range map[string]string{
		"is bound to claim default/web-1, on rack1-bmc-01 (rack=7); 50 s.": "is bound to claim default/web-1, on rack1-bmc-01 (rack=7); 50 s.",
		`claims/a.yaml:7:3: spec.powr: unknown, did you mean "power"?`:     `claims/a.yaml:7:3: spec.powr: unknown, did you mean "power"?`,
		"a | <b> *c* _d_ `e`":  "a &#124; &#60;b&#62; &#42;\u2060c&#42;\u2060 &#95;d&#95; &#96;e&#96;",
		"https://evil.example": "https:\u2060//evil.example",
		"- a":                  "&#45; a",
		"1. a":                 "1&#46; a",
		"+ a-b":                "&#43; a-b",
	} {
		p := &preview.Preview{Notes: []string{text}}
		if got := p.Markdown(); !strings.Contains(got, "\n- "+want+"\n") {
			t.Errorf("%s: got %s", text, got)
		}
	}
}

func TestMarkdownIsBounded(t *testing.T) {
	p := &preview.Preview{Verdict: preview.Destructive}
	for range 5000 {
		p.Effects = append(p.Effects, preview.Effect{Kind: proposal.StepRelease, Server: "rack1-bmc-01-system-0", Message: "is released", Destructive: true})
		p.Problems = append(p.Problems, model.Problem{Severity: model.SeverityError, File: "a.yaml", Message: "is wrong"})
		p.Notes = append(p.Notes, "a note")
	}
	p.Held = []preview.Held{{Steps: make([]model.Disruption, 5000)}}
	got := p.Markdown()
	if len(got) > 65_536 || !strings.Contains(got, "lines are cut here") {
		t.Errorf("the comment has %d bytes, and says: %s", len(got), got[len(got)-300:])
	}
	for _, also := range []string{"The guard will hold back", "a.yaml", "a note"} {
		if !strings.Contains(got, also) {
			t.Errorf("the comment has no room for %q", also)
		}
	}
	if strings.Count(got, "<details>") != strings.Count(got, "</details>") {
		t.Error("what is folded has no end")
	}
}

func TestWhatFilesWithErrorsKeepIsReadBack(t *testing.T) {
	for _, n := range []int{0, 3, 20_000} {
		var want []model.LastGood
		for i := range n {
			want = append(want, model.LastGood{
				Identity: model.ClaimName(fmt.Sprint("default/c", i)).Identity(), Path: "web.yaml", Blob: strings.Repeat("a", 40),
				Since: "main@sha1:1", Behind: []string{"bad.yaml"},
			})
		}
		fleet, _ := fleetOf(t, 1, 1, func(in *world.Input) { in.Desired.LastGood = want })
		got, left := fleet.Document.LastGood, fleet.Document.LastGoodLeftOut
		if !slices.Equal(identities(got), identities(want[:len(got)])) || len(got)+left != n || n == 3 && !reflect.DeepEqual(got, want) {
			t.Errorf("of %d objects %d are read back, and %d were left out", n, len(got), left)
		}
	}
}

func identities(all []model.LastGood) (ids []model.Identity) {
	for _, o := range all {
		ids = append(ids, o.Identity)
	}
	return ids
}

// TestAClaimThatIsAboutToGetAServerIsReleased takes a claim away that the status branch does not show to
// have a server yet: by the time of the merge it has one, and runs.
func TestAClaimThatIsAboutToGetAServerIsReleased(t *testing.T) {
	fleet, in := fleetOf(t, 3, 1, nil)
	policy, _ := fleet.Policy()
	base := commit(in.Desired, func(d *model.Desired) { d.Add(fleettest.Claim("new")) })
	for name, tc := range map[string]struct {
		head *model.Desired
		want string
	}{
		"gone":    {commit(base, func(d *model.Desired) { delete(d.Claims, "default/new") }), "release bmc00001-system-0 default/new"},
		"renamed": {commit(base, fleettest.Renamed("new", "newer")), ""},
		"broken": {commit(base, func(d *model.Desired) {
			delete(d.Claims, "default/new")
			d.Quarantined[model.ClaimName("default/new").Identity()] = []string{""}
		}), ""},
	} {
		p := preview.Of(preview.Input{Fleet: fleet, Base: base, Head: tc.head, Policy: policy, Now: in.Now.Add(time.Second)})
		if got := said(p); strings.Contains(got, "release") != (tc.want != "") || tc.want != "" && (got != tc.want || p.Verdict != preview.Destructive) {
			t.Errorf("%s: %s, it is said to do\n%s\nwant\n%s", name, p.Verdict, got, tc.want)
		}
	}
}

// TestWhatTheBaseBeginsIsDisturbed has a commit follow upon one that Ingot has not acted upon yet.
func TestWhatTheBaseBeginsIsDisturbed(t *testing.T) {
	fleet, in := fleetOf(t, 4, 1, nil)
	policy, _ := fleet.Policy()
	base := commit(in.Desired, func(d *model.Desired) { d.Add(fleettest.Claim("new")) })
	for want, change := range map[string]func(d *model.Desired){
		"":                                      func(*model.Desired) {},
		"release bmc00001-system-0 default/new": func(d *model.Desired) { delete(d.Claims, "default/new") },
		"power-off bmc00001-system-0 default/new": changed("default/new", func(c *model.ServerClaim) { c.Spec.Power = model.PowerOff }),
		"maintenance bmc00001-system-0 default/new": func(d *model.Desired) {
			d.Add(&model.ServerMaintenance{Meta: model.Meta{Name: "m"}, Spec: model.ServerMaintenanceSpec{ServerRef: model.LocalRef{Name: string(fleettest.ServerName(1))}}})
		},
		"bind bmc00002-system-0 default/more": func(d *model.Desired) { d.Add(fleettest.Claim("more")) },
	} {
		p := preview.Of(preview.Input{Fleet: fleet, Base: base, Head: commit(base, change), Policy: policy, Now: in.Now.Add(time.Second), Behind: true})
		if got := said(p); got != want {
			t.Errorf("it is said to do\n%s\nwant\n%s", got, want)
		}
	}
}
