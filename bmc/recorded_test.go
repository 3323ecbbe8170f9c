package bmc_test

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"ingot/bmc"
	"ingot/bmc/sim/recorded"
	"ingot/model"
)

var updateHardware = flag.Bool("update", false, "write docs/hardware.md anew from the recordings in INGOT_MOCKUPS")

type recording struct{ *recorded.BMC }

// result is what came of one recording.
type result struct {
	name, vendor, model, firmware string
	verdict                       verdict
	servers                       []string // what each has
	notes                         []string // what was not read, or is no server, and why
	wrong                         []string // what should have come out and did not
	requests                      [3]int   // to discover, for one inventory, for power and boot
}

// verdict is how a recording came out.
type verdict string

const (
	right   verdict = "right"
	refused verdict = "refused, as it should be"
	partly  verdict = "partly"
)

// Each recorded BMC is served to the client, and what it makes of it is compared with what
// was recorded. INGOT_MOCKUPS is a folder of recordings, as DMTF's mockup creator makes
// them: a folder for each BMC, and in it an index.json for each path.
func TestRecordedBMCs(t *testing.T) {
	folder := os.Getenv("INGOT_MOCKUPS")
	if folder == "" {
		t.Skip("INGOT_MOCKUPS is not set: it names a folder with recordings of BMCs")
	}
	all, err := recorded.All(folder)
	if err != nil || len(all) == 0 {
		t.Fatalf("no recordings in %s: %v", folder, err)
	}
	var results []*result
	good := 0
	for _, played := range all {
		r := &recording{played}
		t.Run(r.Name, func(t *testing.T) {
			res := r.try(t)
			results = append(results, res)
			t.Logf("%s: %s; %s %s, firmware %s; requests %v", res.name, res.verdict, res.vendor, res.model, res.firmware, res.requests)
			for _, text := range slices.Concat(res.servers, res.notes) {
				t.Log("  ", text)
			}
			if res.verdict == partly {
				t.Errorf("not as recorded:\n  %s", strings.Join(res.wrong, "\n  "))
			} else {
				good++
			}
		})
	}
	t.Logf("%d of %d recordings right or rightly refused (%.1f %%)", good, len(all), 100*float64(good)/float64(len(all)))
	compareHardware(t, results)
}

// try runs the client against a recording.
func (r *recording) try(t *testing.T) *result {
	res := &result{name: r.Name, verdict: right}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	p := bmc.NewPool(bmc.Options{Networks: model.BMCNetworks{{Prefix: netip.MustParsePrefix("127.0.0.0/8")}}})
	defer func() {
		if err := p.Close(ctx); err != nil || r.Sessions() > 0 {
			t.Errorf("sessions left: %d, %v", r.Sessions(), err)
		}
	}()
	target := r.Serve(t)
	asked := func() func(int) {
		before := p.Stats(target.Name).Requests
		return func(i int) { res.requests[i] = int(p.Stats(target.Name).Requests - before) }
	}
	done := asked()
	facts, err := p.Discover(ctx, target)
	done(0)
	systems, none := r.systems()
	if err != nil {
		res.notes = append(res.notes, err.Error())
		res.refuse(none)
		return res
	}
	target.Fingerprint = facts.Fingerprint
	res.vendor, res.model, res.firmware = facts.Manufacturer, facts.Model, facts.FirmwareVersion
	servers := 0
	for _, want := range systems {
		got := systemAt(facts, want.uri)
		switch {
		case want.why != "":
			if got != nil || !named(facts.Others, want.uri) {
				res.miss("%s is no server (%s): got %v, others %q", want.uri, want.why, got, facts.Others)
			}
		case len(want.unread) > 0 && want.unread[0] == want.uri:
			if !named(facts.Problems, want.uri) {
				res.miss("a word on %s, which cannot be read", want.uri)
			}
		case got == nil:
			res.miss("%s is a server", want.uri)
		default:
			servers++
			r.tryServer(ctx, p, res, want, got, facts, target, asked)
		}
	}
	r.check(ctx, t, res, target, servers)
	res.notes = append(res.notes, facts.Others...)
	res.notes = append(res.notes, facts.Problems...)
	if servers == 0 && res.verdict == right {
		if none == "" && len(systems) > 0 {
			none = "no server among the systems"
		}
		res.refuse(none)
		if len(facts.Problems)+len(facts.Others) == 0 {
			res.miss("a reason why there is no server")
		}
	}
	return res
}

func (r *recording) check(ctx context.Context, t *testing.T, res *result, target model.BMCTarget, servers int) {
	told := 0
	report := bmc.Check(ctx, bmc.CheckOptions{Target: target}.Hasty())
	for _, item := range report.Checks {
		if item.Check == "identity" {
			told++
		}
		if item.Result == bmc.CheckFails {
			t.Logf("   check: %s %s: %s; %s", item.System, item.Check, item.Detail, item.Advice)
		}
	}
	if told != servers || servers == 0 && report.Usable() {
		res.miss("a check that tells of %d servers: %+v", servers, report.Checks)
	}
}

func systemAt(facts *model.BMCFacts, uri string) *model.SystemFact {
	for i := range facts.Systems {
		if recorded.Key(facts.Systems[i].URI) == recorded.Key(uri) {
			return &facts.Systems[i]
		}
	}
	return nil
}

func (res *result) miss(format string, args ...any) {
	res.verdict = partly
	res.wrong = append(res.wrong, fmt.Sprintf(format, args...))
}

func (res *result) refuse(none string) {
	if none == "" {
		res.miss("a server")
		return
	}
	if res.verdict == right {
		res.verdict = refused
	}
}

func (r *recording) tryServer(
	ctx context.Context, p *bmc.Pool, res *result, want *recordedSystem, got *model.SystemFact, facts *model.BMCFacts, target model.BMCTarget, asked func() func(int),
) {
	switch {
	case got.UUID != want.uuid:
		res.miss("%s has UUID %q, not %q", want.uri, want.uuid, got.UUID)
	case want.uuid == "" && got.Board.SerialNumber != want.serial:
		res.miss("%s has serial number %q, not %q", want.uri, want.serial, got.Board.SerialNumber)
	case want.uuid == "" && want.serial == "" && !named(facts.Problems, want.uri):
		res.miss("a word on %s, which cannot be told from others", want.uri)
	}
	s := model.SystemTarget{BMC: target, URI: got.URI, UUID: got.UUID, Board: got.Board}
	done := asked()
	read, err := p.Inventory(ctx, s)
	done(1)
	if err != nil {
		res.miss("inventory: %v", err)
		return
	}
	if missing := want.missing(read.Inventory); len(missing) > 0 {
		res.miss("%s has %s; problems %q", want.uri, strings.Join(missing, ", "), read.Inventory.Problems)
	}
	done = asked()
	boots := r.switches(ctx, p, res, s, want)
	done(2)
	res.servers = append(res.servers, summary(got, read, boots))
	res.notes = append(res.notes, read.Inventory.Problems...)
}

func (r *recording) switches(ctx context.Context, p *bmc.Pool, res *result, s model.SystemTarget, want *recordedSystem) string {
	power := func(want model.Power) {
		if got, err := p.Power(ctx, s); got != want || err != nil {
			res.miss("%s is %s, not %s, %v", s.URI, want, got, err)
		}
	}
	if want.power == "On" || want.power == "Off" {
		power(model.Power(want.power))
	}
	reset := func(kind model.ResetKind, to model.Power) {
		if _, err := p.Reset(ctx, s, kind, ""); err != nil {
			res.miss("%v", err)
			return
		}
		power(to)
	}
	reset(model.ResetForceOff, model.PowerOff)
	boots, err := p.BootOnce(ctx, s, model.BootPXE)
	switch {
	case errors.Is(err, bmc.ErrUnsupported) && !want.override:
		boots = "none"
	case err != nil:
		res.miss("%v", err)
		boots = "fails"
	}
	reset(model.ResetOn, model.PowerOn)
	return boots
}

func summary(sys *model.SystemFact, read *model.ServerFacts, boots string) string {
	inv := read.Inventory
	identity := "identified by its UUID"
	switch {
	case sys.UUID == "" && sys.Board.SerialNumber == "":
		identity = "nothing identifies it"
	case sys.UUID == "":
		identity = "identified by its serial number"
	}
	drives, volumes := 0, 0
	for _, st := range inv.Storages {
		drives, volumes = drives+len(st.Drives), volumes+len(st.Volumes)
	}
	var targets []string
	for _, target := range inv.BootTargets {
		if target == string(model.BootPXE) || target == string(model.BootUEFIHTTP) {
			targets = append(targets, target)
		}
	}
	return fmt.Sprintf("%s; %s, %d GiB in %s, %s, %s, %s, BIOS %s, power %s; boot override %s (%s), boot order of %d",
		identity, plural(len(inv.Processors), "processor"), inv.MemoryBytes>>30, plural(len(inv.Memory), "module"), plural(drives, "drive"),
		plural(volumes, "volume"), plural(len(inv.MACs()), "MAC address"), cmp.Or(inv.BIOSVersion, "unknown"), read.Power,
		boots, cmp.Or(strings.Join(targets, ", "), "lists no network"), len(inv.BootOrder))
}

func plural(n int, thing string) string {
	switch {
	case n == 1:
		return "1 " + thing
	case strings.HasSuffix(thing, "s"):
		return fmt.Sprintf("%d %ses", n, thing)
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
