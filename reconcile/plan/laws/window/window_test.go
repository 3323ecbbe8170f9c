package window

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ingot/model"
	"ingot/reconcile/internal/fleettest"
	"ingot/reconcile/plan/policy"
)

// guarded is a fleet whose disruptions the guard checks.
type guarded struct {
	t         *testing.T
	asked     []model.Disruption
	record    model.FleetRecord
	bound     map[string]int
	policy    policy.Options
	approvals []string
	now       time.Time
	plans     int
	last      Result
}

func newGuarded(t *testing.T) *guarded {
	return &guarded{
		t: t, bound: map[string]int{"a": 10}, now: fleettest.Now,
		policy: policy.Options{MaxDisruptions: 3, MaxPowerDisruptions: 3, GuardWindow: time.Hour},
	}
}

// steps reads disruptions, such as "release a/1 a/2 reprovision a/3=VALUE".
func steps(text string) (all []model.Disruption) {
	action := ""
	for w := range strings.FieldsSeq(text) {
		claim, value, _ := strings.Cut(w, "=")
		if !strings.Contains(claim, "/") {
			action = w
			continue
		}
		all = append(all, model.Disruption{Action: action, Server: model.ServerName("s-" + claim), Claim: model.ClaimName(claim), Value: value})
	}
	return all
}

// ask has steps asked for, beside those that are already.
func (g *guarded) ask(text string) { g.asked = append(g.asked, steps(text)...) }

// drop has steps not asked for any more: they are decided, or withdrawn.
func (g *guarded) drop(text string) {
	for _, d := range steps(text) {
		g.asked = slices.DeleteFunc(g.asked, d.Same)
	}
}

// check returns which of the requested steps may be begun.
func (g *guarded) check() string {
	g.t.Helper()
	g.plans++
	in := Input{
		Asked: g.asked, Record: g.record, Bound: g.bound, Approvals: g.approvals, Policy: &g.policy, Uncertain: certain,
		Revision: model.Revision(fmt.Sprint("r", g.plans)), Now: g.now, Seed: fmt.Sprint("seed ", g.plans),
	}
	r := Check(in)
	in.Record, in.Seed, in.Revision = r.Record, in.Seed+"!", in.Revision+"!"
	if diff := cmp.Diff(r, Check(in)); diff != "" {
		g.t.Errorf("checking again changes the result (-once +twice):\n%s", diff)
	}
	g.record, g.last = r.Record, r
	return names(r.Allowed)
}

func certain(model.Disruption) bool { return false }

// list is the list that a step waits in, nil if it waits in none.
func (g *guarded) list(d model.Disruption) *model.GuardHold {
	for i, h := range g.record.Holds {
		if slices.ContainsFunc(h.Steps, d.Same) {
			return &g.record.Holds[i]
		}
	}
	return nil
}

// run carries a script out. Each part asks for steps or withdraws them, changes the limits or the time, approves the
// list of a number, or says which steps are allowed, which lists wait, and when the next list may go.
func (g *guarded) run(script string) {
	g.t.Helper()
	for line := range strings.SplitSeq(script, "; ") {
		word, rest, _ := strings.Cut(line, " ")
		number, _ := strconv.Atoi(rest)
		passed, _ := time.ParseDuration(rest)
		got := rest
		switch word {
		case "bound":
			g.bound = make(map[string]int)
			for w := range strings.FieldsSeq(rest) {
				namespace, n, _ := strings.Cut(w, "=")
				g.bound[namespace], _ = strconv.Atoi(n)
			}
		case "limit":
			g.policy.MaxDisruptions = number
		case "power-limit":
			g.policy.MaxPowerDisruptions = number
		case "after":
			g.now = g.now.Add(passed)
		case "ask":
			g.ask(rest)
		case "drop":
			g.drop(rest)
		case "begin": // all of it is allowed, and decided at once
			g.ask(rest)
			got = g.check()
			g.drop(rest)
		case "approve":
			g.approve(number)
		case "allows":
			got = g.check()
		case "holds":
			got = g.held()
		case "next":
			got = g.last.Next.Sub(g.now).String()
		default:
			g.t.Fatalf("unknown word %q", word)
		}
		if got != rest {
			g.t.Errorf("%s: got %q; holds are %+v", line, got, g.record.Holds)
		}
	}
}

// held are the lists that wait: their steps, their limit and scope, and in how many minutes there is room, or that
// they wait for approval.
func (g *guarded) held() string {
	var all []string
	for _, h := range g.record.Holds {
		when := "approval"
		if !h.Until.IsZero() {
			when = h.Until.Sub(g.now).String()
		}
		all = append(all, fmt.Sprintf("%s: limit %d%s, %s", names(h.Steps), h.Limit, strings.TrimSuffix(" of "+h.Scope, " of "), when))
	}
	return strings.Join(all, " and ")
}

func (g *guarded) approve(hold int) { g.approvals = append(g.approvals, g.record.Holds[hold].Token) }

// names writes steps as they are read.
func names(steps []model.Disruption) string {
	var all []string
	for i, d := range steps {
		if i == 0 || steps[i-1].Action != d.Action {
			all = append(all, d.Action)
		}
		all = append(all, strings.TrimSuffix(string(d.Claim)+"="+d.Value, "="))
	}
	return strings.Join(all, " ")
}

func TestGuardHasAWindow(t *testing.T) {
	for name, script := range map[string]string{
		"as many as the limit go at once": "ask release a/1 a/2 a/3; allows release a/1 a/2 a/3; holds",
		"more than the limit wait all together for an approval": "ask release a/1 a/2 a/3 a/4; allows; after 100h; " +
			"allows; holds release a/1 a/2 a/3 a/4: limit 3, approval",
		"two commits within the window count together": "begin release a/1 a/2; after 20m; ask release a/3 a/4; " +
			"allows; holds release a/3 a/4: limit 3, 40m0s",
		"what meets a full window goes as a whole when there is room": "begin release a/1; after 20m; " +
			"begin release a/2 a/3; ask release a/4 a/5; allows; holds release a/4 a/5: limit 3, 1h0m0s; after 40m; " +
			"allows; holds release a/4 a/5: limit 3, 20m0s; after 20m; allows release a/4 a/5; holds",
		"ten percent of the bound servers is the limit if that is more": "bound a=31; ask release a/1 a/2 a/3 a/4; " +
			"allows release a/1 a/2 a/3 a/4",
		"whatever takes a server away counts": "ask release a/1 maintenance a/2=m reprovision a/3=1; " +
			"allows release a/1 maintenance a/2=m reprovision a/3=1; ask retain a/4; " +
			"allows release a/1 maintenance a/2=m reprovision a/3=1; holds retain a/4: limit 3, 1h0m0s",
		"what takes power has a limit of its own": "power-limit 2; ask release a/1 a/2 a/3; " +
			"allows release a/1 a/2 a/3; ask operation a/4=x power-off a/5=Off; " +
			"allows release a/1 a/2 a/3 operation a/4=x power-off a/5=Off; ask discover a/6=y; " +
			"allows release a/1 a/2 a/3 operation a/4=x power-off a/5=Off; holds discover a/6=y: limit 2, 1h0m0s",
		"one namespace leaves room for the others": "bound a=5 b=5; ask release a/1 a/2 a/3 release b/1; " +
			"allows release b/1; holds release a/1 a/2 a/3: limit 2 of a, approval",
		"one that used what is its own waits, and the others do not": "bound a=5 b=5; begin release a/1 a/2; after 1m; " +
			"ask release a/3 release b/1; allows release b/1; holds release a/3: limit 2 of a, 59m0s",
		"all namespaces together have the fleet's limit": "bound a=5 b=5; ask release a/1 a/2 release b/1 b/2; " +
			"allows release a/1 a/2; holds release b/1 b/2: limit 3, 1h0m0s",
		"a namespace may always use one, however low the limit": "limit 1; bound a=5 b=5; ask release a/1; " +
			"allows release a/1",
		"a server that is released and then wiped counts once": "begin release a/1 a/2 a/3; after 1m; " +
			"ask wipe a/1 a/2 a/3; allows wipe a/1 a/2 a/3",
		"what counts once counts from the last time": "begin retain a/1 a/2 a/3; after 50m; begin wipe a/1 a/2 a/3; " +
			"after 20m; ask release a/4; allows; holds release a/4: limit 3, 40m0s",
		"what was allowed and is not begun is not held later": "ask release a/1 a/2 a/3; allows release a/1 a/2 a/3; " +
			"after 2h; ask release a/4 a/5 a/6; allows release a/1 a/2 a/3 a/4 a/5 a/6; after 1m; " +
			"allows release a/1 a/2 a/3 a/4 a/5 a/6",
		"an approval lets exactly the list go that it names": "ask release a/1 a/2 a/3 a/4; allows; " +
			"ask release a/5 a/6 a/7 a/8; approve 0; allows release a/1 a/2 a/3 a/4; " +
			"holds release a/5 a/6 a/7 a/8: limit 3, approval",
		"approved steps do not fill the window": "ask release a/1 a/2 a/3 a/4; allows; approve 0; " +
			"allows release a/1 a/2 a/3 a/4; drop release a/1 a/2 a/3 a/4; ask release a/5 a/6 a/7; " +
			"allows release a/5 a/6 a/7",
		"an approved step that is withdrawn and asked for anew waits anew": "ask release a/1 a/2 a/3 a/4; allows; " +
			"approve 0; allows release a/1 a/2 a/3 a/4; drop release a/1 a/2 a/3 a/4; allows; " +
			"ask release a/1 a/2 a/3 a/4; allows; holds release a/1 a/2 a/3 a/4: limit 3, approval",
		"a list that waits for room can be approved too": "begin release a/1 a/2 a/3; ask release a/4; allows; " +
			"approve 0; allows release a/4; holds",
		"a list that waits for approval does not trickle away once it is short": "ask release a/1 a/2 a/3 a/4; allows; " +
			"drop release a/2 a/3 a/4; after 2h; allows; holds release a/1: limit 3, approval",
		"a list that waits for room waits for approval once the limit is below it": "bound a=50; " +
			"begin release a/1 a/2 a/3 a/4 a/5; ask release a/6 a/7 a/8 a/9; allows; " +
			"holds release a/6 a/7 a/8 a/9: limit 5, 1h0m0s; bound a=20; allows; " +
			"holds release a/6 a/7 a/8 a/9: limit 3, approval; after 2h; allows",
		"another value asks for another step": "ask reprovision a/1=1 a/2=1 a/3=1 a/4=1; allows; " +
			"drop reprovision a/4=1; ask reprovision a/4=2; approve 0; allows reprovision a/1=1 a/2=1 a/3=1 a/4=2; holds",
		"later steps never take the room of a list that waits": "bound a=5 b=5; begin release b/1 b/2; " +
			"ask release a/1 a/2; allows; holds release a/1 a/2: limit 3, 1h0m0s; after 30m; begin maintenance c/1=m; " +
			"ask maintenance c/2=m; allows; " +
			"holds release a/1 a/2: limit 3, 30m0s and maintenance c/2=m: limit 3, 1h0m0s; after 30m; " +
			"allows release a/1 a/2",
		"nor do those that would fit for now": "begin release a/1; after 10m; ask release a/2 a/3 a/4; allows; " +
			"after 10m; ask release a/5; allows; " +
			"holds release a/2 a/3 a/4: limit 3, 40m0s and release a/5: limit 3, 1h40m0s",
		"another step on its servers may make room for a list": "bound a=5 b=5; begin release b/1 b/2; " +
			"ask release a/1 a/2; allows; ask maintenance a/1=m; allows maintenance a/1=m; after 1h; " +
			"allows release a/1 a/2 maintenance a/1=m",
		"a clock that was set back does not fill the window for longer than the window": "begin release a/1 a/2 a/3; " +
			"after -1000h; ask release a/4; allows; holds release a/4: limit 3, 1h0m0s; after 1h; allows release a/4",
		"the next to go is the first of all lists": "begin release a/1 a/2; after 10m; begin release a/3; " +
			"ask release a/4; allows; ask release a/5 a/6; allows; " +
			"holds release a/4: limit 3, 50m0s and release a/5 a/6: limit 3, 1h0m0s; next 50m0s",
		"what asks for the same twice counts once": "ask release a/1 a/2 a/3 a/1 a/2 a/3; " +
			"allows release a/1 a/2 a/3 a/1 a/2 a/3; holds",
	} {
		t.Run(name, func(t *testing.T) { newGuarded(t).run(script) })
	}
}

func TestListsOfTheGuard(t *testing.T) {
	for name, test := range map[string]func(g *guarded){
		"a made-up token approves nothing": func(g *guarded) {
			g.approvals = []string{"", "x"}
			g.run("ask release a/1 a/2 a/3 a/4; allows; allows")
		},
		"a list without a token is approved by nothing": func(g *guarded) {
			g.record.Holds, g.approvals = []model.GuardHold{{Steps: steps("release a/1")}}, []string{""}
			g.run("ask release a/1; allows; holds release a/1: limit 0, approval")
		},
		"what is withdrawn leaves its list, which keeps its token": func(g *guarded) {
			g.run("ask release a/1 a/2 a/3 a/4 a/5; allows")
			token := g.record.Holds[0].Token
			g.run("drop release a/5; allows; holds release a/1 a/2 a/3 a/4: limit 3, approval")
			if got := g.record.Holds[0].Token; got != token || len(token) != 20 {
				g.t.Errorf("the token was %q and is %q", token, got)
			}
			g.run("drop release a/1 a/2 a/3 a/4; allows; holds")
		},
		"the limit is never higher than what is remembered": func(g *guarded) {
			g.policy.MaxDisruptions = MaxDone + 1000
			for i := range MaxDone + 1 {
				g.ask(fmt.Sprint("release a/", i))
			}
			if g.check(); len(g.last.Allowed) > 0 || g.record.Holds[0].Limit != MaxDone {
				g.t.Errorf("%d are allowed, of at most %d", len(g.last.Allowed), MaxDone)
			}
		},
		"an approval for one claim's server is none for its next claim": func(g *guarded) {
			g.run("power-limit 0; bound; ask power-off a/1=Off; allows; approve 0; allows power-off a/1=Off")
			g.asked[0].Claim = "a/9"
			g.run("allows; holds power-off a/9=Off: limit 0, approval")
		},
		"lists beyond the last are joined, under a new token": func(g *guarded) {
			for i := range model.MaxHolds {
				g.run(fmt.Sprintf("ask release a/%d1 a/%d2 a/%d3 a/%d4; allows", i, i, i, i))
			}
			last := g.record.Holds[model.MaxHolds-1]
			g.run("ask release a/x; allows release a/x; ask release a/y1 a/y2 a/y3 a/y4; allows release a/x")
			now := g.record.Holds[model.MaxHolds-1]
			if len(g.record.Holds) != model.MaxHolds || len(now.Steps) != 8 || now.Token == last.Token || !now.Until.IsZero() {
				g.t.Errorf("%d lists, the last %+v, which was %+v", len(g.record.Holds), now, last)
			}
			g.approvals = []string{last.Token}
			g.run("allows release a/x")
			g.approve(model.MaxHolds - 1)
			if got := g.check(); !strings.Contains(got, "a/y4") || !strings.Contains(got, "a/74") {
				g.t.Errorf("allowed is %q", got)
			}
		},
	} {
		t.Run(name, func(t *testing.T) { test(newGuarded(t)) })
	}
}

func TestNobodyKnowsAGuardsTokenBeforehand(t *testing.T) {
	in := Input{
		Asked: steps("release a/1 a/2 a/3 a/4"), Policy: &policy.Options{MaxDisruptions: 3, GuardWindow: time.Hour},
		Now: fleettest.Now, Revision: "r", Uncertain: certain,
	}
	in.Seed = "one"
	one := Check(in).Record.Holds[0].Token
	in.Seed = "two"
	if two := Check(in).Record.Holds[0].Token; one == two {
		t.Errorf("the list has the token %s whatever the seed", one)
	}
}

// One tenant's many operations on one server are one disruption, and do not push what
// others did out of what is remembered.
func TestManyStepsOnOneServerAreRememberedOnce(t *testing.T) {
	g := newGuarded(t)
	g.run("begin operation a/1=x a/2=x")
	for i := range 200 {
		step := fmt.Sprintf("operation a/3=%d", i)
		g.ask(step)
		g.check()
		g.drop(step)
	}
	if len(g.record.Done) > 3 {
		t.Errorf("%d steps are remembered", len(g.record.Done))
	}
	g.run("ask operation a/4=x; allows; holds operation a/4=x: limit 3, 1h0m0s")
}

// begun is a step that was allowed without an approval.
type begun struct {
	at   time.Time
	what model.Disruption
}

// TestGuardNeverLetsMoreGoThanItsLimit has tenants ask for, withdraw and approve steps at
// random, and looks at each window at what was begun in it.
func TestGuardNeverLetsMoreGoThanItsLimit(t *testing.T) {
	waited := 0
	for seed := range fleettest.Histories(25, 100) {
		rnd := rand.New(rand.NewPCG(seed, 77))
		g := newGuarded(t)
		g.bound = map[string]int{"a": 6, "b": 6, "c": rnd.IntN(2) * 6}
		g.policy.MaxDisruptions, g.policy.MaxPowerDisruptions = 1+rnd.IntN(4), 1+rnd.IntN(4)
		var history []begun
		decided := make(map[model.Disruption]bool)
		serial := 0
		for range 80 {
			next := g.now.Add(time.Duration(rnd.IntN(30)) * time.Minute)
			woken := g.last.Next.After(g.now) && !g.last.Next.After(next)
			if woken {
				next = g.last.Next
			}
			g.now = next
			for range rnd.IntN(4) {
				serial++
				action := strings.Fields("release retain wipe reprovision maintenance power-off operation discover")[rnd.IntN(8)]
				g.ask(fmt.Sprintf("%s %c/%d=%d", action, 'a'+rune(rnd.IntN(3)), rnd.IntN(6), serial))
			}
			if len(g.asked) > 0 && rnd.IntN(4) == 0 {
				g.asked = slices.Delete(g.asked, 0, 1)
			}
			if n := len(g.record.Holds); n > 0 && rnd.IntN(6) == 0 {
				g.approve(rnd.IntN(n))
			}
			before := slices.Clone(g.record.Holds)
			unforeseen := false
			for _, h := range before {
				unforeseen = unforeseen || slices.Contains(g.approvals, h.Token) ||
					slices.ContainsFunc(h.Steps, func(d model.Disruption) bool { return !slices.ContainsFunc(g.asked, d.Same) })
			}
			g.check()
			for _, d := range g.last.Allowed {
				if g.list(d) != nil {
					t.Errorf("seed %d: %v is allowed and held", seed, d)
				}
				approved := slices.ContainsFunc(g.record.ApprovedSteps, d.Same)
				if !approved && !decided[key(d)] {
					history = append(history, begun{g.now, d})
				}
				decided[key(d)] = true
			}
			n := len(g.last.Allowed)
			for _, h := range g.record.Holds {
				n += len(h.Steps)
			}
			if n != len(g.asked) {
				t.Errorf("seed %d: of %d steps %d are allowed or held", seed, len(g.asked), n)
			}
			if len(g.record.Holds) > model.MaxHolds {
				t.Errorf("seed %d: %d lists", seed, len(g.record.Holds))
			}
			// When its time has come nothing holds a list, unless one that waited for longer
			// goes earlier than it was to, for there was room that could not be foreseen.
			for _, h := range before {
				if now := g.list(h.Steps[0]); h.Until.After(g.now) && (now == nil || now.Until.Before(h.Until)) {
					unforeseen = true
				}
				if !h.Until.IsZero() && !h.Until.After(g.now) && !unforeseen {
					waited++
					for _, d := range h.Steps {
						if now := g.list(d); now != nil && !now.Until.IsZero() {
							t.Errorf("seed %d: %v was to go at %v, and waits until %v", seed, d, h.Until, now.Until)
						}
					}
				}
			}
			for _, d := range g.last.Allowed { // some are decided upon at once, others later
				if rnd.IntN(3) > 0 {
					g.asked = slices.DeleteFunc(g.asked, d.Same)
				}
			}
		}
		checkWindows(t, g, history)
		if t.Failed() {
			t.Fatalf("seed %d: limits %+v, bound %v", seed, g.policy, g.bound)
		}
	}
	if waited < 50 {
		t.Errorf("only %d lists waited for room: nothing was tried", waited)
	}
}

// checkWindows looks at each window that ends with something begun.
func checkWindows(t *testing.T, g *guarded, history []begun) {
	t.Helper()
	for _, last := range history {
		servers := make(map[counted]bool)
		fleet := make(map[windowKind]int)
		own := make(map[string]int)
		for _, b := range history {
			if b.at.After(last.at) || !b.at.After(last.at.Add(-g.policy.GuardWindow)) || servers[countOf(b.what, 0)] {
				continue
			}
			servers[countOf(b.what, 0)] = true
			fleet[kindOf(b.what)]++
			own[fmt.Sprint(kindOf(b.what), " ", namespaceOf(b.what))]++
		}
		limits := map[windowKind]int{takesServer: max(2, g.policy.MaxDisruptions), takesPower: max(2, g.policy.MaxPowerDisruptions)}
		for kind, n := range fleet {
			if n > limits[kind] {
				t.Errorf("%d of kind %d were begun within a window, of at most %d", n, kind, limits[kind])
			}
		}
		for scope, n := range own {
			kind := takesServer
			if strings.HasPrefix(scope, fmt.Sprint(takesPower, " ")) {
				kind = takesPower
			}
			if most := max(1, limits[kind]-1); n > most {
				t.Errorf("%d of %s were begun within a window, of at most %d", n, scope, most)
			}
		}
	}
}
