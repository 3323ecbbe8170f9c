package plan

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"ingot/model"
	"ingot/reconcile/internal/fleettest"
)

func TestWhichMACAddressesAreAServers(t *testing.T) {
	shows := func(numbers ...int) *model.ServerFacts {
		inv := &model.Inventory{}
		for i, n := range numbers {
			if i%2 == 0 {
				inv.NetworkInterfaces = append(inv.NetworkInterfaces, model.NetworkInterface{MACAddress: cardOf(n)})
				continue
			}
			inv.MACAddresses = append(inv.MACAddresses, cardOf(n))
		}
		return &model.ServerFacts{Power: model.PowerOff, Inventory: inv}
	}
	report := func(numbers ...int) *model.ProbeReport {
		var cards []string
		for _, n := range numbers {
			cards = append(cards, cardOf(n))
		}
		return &model.ProbeReport{Ticket: "t", Data: model.ProbeData{NetworkInterfaces: fleettest.Probed(cards)}}
	}
	tests := map[string]struct {
		git   string
		facts *model.ServerFacts
		known []model.ServerMAC // in its record
		probe *model.ProbeReport
		want  []model.ServerMAC
	}{
		"nobody tells any":         {facts: shows()},
		"those that its BMC shows": {facts: shows(2, 1, 3), want: macs(model.MACByBMC, 1, 2, 3)},
		"those that Git gives it": {
			git: "02-00-00-00-00-02, 020000000001", facts: shows(),
			want: macs(model.MACByGit, 1, 2),
		},
		"both, each once, by Git first": {
			git: cardOf(2), facts: shows(1, 2),
			want: append(macs(model.MACByBMC, 1), macs(model.MACByGit, 2)...),
		},
		"what a report names counts for nothing": {facts: shows(1), probe: report(1, 9), want: macs(model.MACByBMC, 1)},
		"nor where its BMC shows none":           {facts: shows(), probe: report(9)},
		"what its BMC showed before the store was lost": {
			facts: &model.ServerFacts{}, known: macs(model.MACByBMC, 1),
			want: macs(model.MACByBMC, 1),
		},
		"what its BMC showed before it was off": {facts: shows(), known: macs(model.MACByBMC, 1), want: macs(model.MACByBMC, 1)},
		"a card that was replaced":              {facts: shows(2), known: macs(model.MACByBMC, 1), want: macs(model.MACByBMC, 2)},
		"what Git gave it once":                 {facts: shows(), known: macs(model.MACByGit, 1)},
		"what its discovery proved": {
			facts: shows(), known: macs(model.MACBySighting, 1, 2),
			want: macs(model.MACBySighting, 1, 2),
		},
		"that is forgotten once its BMC shows any": {
			facts: shows(3), known: macs(model.MACBySighting, 1, 2),
			want: macs(model.MACByBMC, 3),
		},
		"it is its BMC's word then": {
			facts: shows(1, 2), known: macs(model.MACBySighting, 1, 2),
			want: macs(model.MACByBMC, 1, 2),
		},
		"a card that was taken out": {facts: shows(1), known: macs(model.MACByBMC, 1, 2), want: macs(model.MACByBMC, 1)},
		"a card that was put in":    {facts: shows(1, 2), known: macs(model.MACByBMC, 1), want: macs(model.MACByBMC, 1, 2)},
		"or Git gives it one": {
			git: cardOf(3), facts: shows(), known: macs(model.MACBySighting, 1, 2),
			want: macs(model.MACByGit, 3),
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			in, rec := ticketed(model.StateAvailable, model.PurposeDiscovery)
			rec.MACs, rec.Boot.Ticket = tt.known, nil
			in.Observed.ServerFacts[rec.Name] = tt.facts
			if tt.probe != nil {
				in.Observed.Probes[rec.Name] = tt.probe
			}
			spec := &model.Server{Meta: model.Meta{Name: string(rec.Name), Annotations: map[string]string{}}}
			if tt.git != "" {
				fleettest.InGit(tt.git)(spec)
			}
			in.Desired.Add(spec)
			s := newFleet(in).server(rec.Name)
			s.noteMACs()
			if diff := cmp.Diff(tt.want, s.rec.MACs, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
