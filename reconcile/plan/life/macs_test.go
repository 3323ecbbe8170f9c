package life_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"ingot/model"
	"ingot/reconcile/internal/fleettest"
	"ingot/reconcile/internal/plantest"
	"ingot/reconcile/plan/life"
)

func TestWhichMACAddressesAreAServers(t *testing.T) {
	type macs = []model.ServerMAC
	bmc := func(numbers ...int) macs { return fleettest.MACs(model.MACByBMC, numbers...) }
	git := func(numbers ...int) macs { return fleettest.MACs(model.MACByGit, numbers...) }
	sighted := fleettest.MACs(model.MACBySighting, 1, 2)
	for name, tt := range map[string]struct {
		git    string
		shows  []int // by its BMC, by turns as interfaces and as bare addresses; nil = it was not read
		known  macs  // in its record
		probed []int
		want   macs
	}{
		"no source shows any":                      {shows: []int{}},
		"those that its BMC shows":                 {shows: []int{2, 1, 3}, want: bmc(1, 2, 3)},
		"those that Git gives it":                  {git: "02-00-00-00-00-02, 020000000001", want: git(1, 2)},
		"both, each once, by Git first":            {git: fleettest.CardOf(2), shows: []int{1, 2}, want: append(bmc(1), git(2)...)},
		"a card in a report does not count":        {shows: []int{1}, probed: []int{1, 9}, want: bmc(1)},
		"nor where its BMC shows none":             {probed: []int{9}},
		"those that its BMC showed when it was on": {shows: []int{}, known: bmc(1), want: bmc(1)},
		"before the store was lost":                {known: bmc(1), want: bmc(1)},
		"a card that was replaced":                 {shows: []int{2}, known: bmc(1), want: bmc(2)},
		"a card that was taken out":                {shows: []int{1}, known: bmc(1, 2), want: bmc(1)},
		"a card that was put in":                   {shows: []int{1, 2}, known: bmc(1), want: bmc(1, 2)},
		"not those that Git gave it once":          {known: git(1)},
		"those that its discovery proved":          {known: sighted, want: sighted},
		"that is forgotten once its BMC shows any": {shows: []int{3}, known: sighted, want: bmc(3)},
		"its BMC's word counts then":               {shows: []int{1, 2}, known: sighted, want: bmc(1, 2)},
		"or Git gives it one":                      {git: fleettest.CardOf(3), known: sighted, want: git(3)},
	} {
		t.Run(name, func(t *testing.T) {
			in, rec := plantest.Ticketed(model.StateAvailable, model.PurposeDiscovery)
			rec.MACs, rec.Boot.Ticket = tt.known, nil
			inv := &model.Inventory{}
			for i, n := range tt.shows {
				if i%2 == 0 {
					inv.NetworkInterfaces = append(inv.NetworkInterfaces, model.NetworkInterface{MACAddress: fleettest.CardOf(n)})
					continue
				}
				inv.MACAddresses = append(inv.MACAddresses, fleettest.CardOf(n))
			}
			in.Observed.ServerFacts[rec.Name] = &model.ServerFacts{Power: model.PowerOff, Inventory: inv}
			if tt.shows == nil {
				in.Observed.ServerFacts[rec.Name].Inventory = nil
			}
			var cards []string
			for _, n := range tt.probed {
				cards = append(cards, fleettest.CardOf(n))
			}
			in.Observed.Probes[rec.Name] = &model.ProbeReport{Ticket: "t", Data: model.ProbeData{NetworkInterfaces: fleettest.Probed(cards)}}
			spec := &model.Server{Meta: model.Meta{Name: string(rec.Name), Annotations: map[string]string{}}}
			if tt.git != "" {
				fleettest.InGit(tt.git)(spec)
			}
			in.Desired.Add(spec)
			got := rec.MACs
			if p, ok := life.NoteMACs(plantest.ServerOf(in, rec.Name)); ok {
				got = p.Of.Record.MACs
			}
			if diff := cmp.Diff(tt.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
