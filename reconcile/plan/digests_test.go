package plan_test

import (
	"strings"
	"testing"

	"ingot/model"
	"ingot/reconcile/plan"
	"ingot/reconcile/plan/booting"
	"ingot/reconcile/plan/proposal"
)

// Whatever form a digest on record has, no machine is touched for it.
func TestDigestsOnRecordAreRekeyed(t *testing.T) {
	plain, other := booting.BootDigest(proposal.Boot{Image: "os:1"}), booting.BootDigest(proposal.Boot{Image: "os:0"})
	digestsKey := model.NewDigestKey([]byte(strings.Repeat("d", 32)))
	lostKey := model.NewDigestKey([]byte(strings.Repeat("l", 32)))
	key := digestsKey.For("default")
	ours := key.Sum(plain)
	booted := func(rec *record, digest, image string) {
		rec.Install.Digest = digest
		rec.Boot.Ticket = &model.Ticket{
			ID: "t", Purpose: model.PurposeClaim, Claim: rec.Claim.Name, Digest: digest,
			Image: model.PinnedImage{Ref: image}, Ended: model.TicketBooted,
		}
	}
	tests := map[string]struct {
		before   func(rec *record)
		want     string
		ticket   string
		outdated bool
	}{
		"one under a lost key":                   {before: func(rec *record) { booted(rec, lostKey.Sum(plain), "os:1") }, want: ours, ticket: ours},
		"one under a lost key, without a ticket": {before: func(rec *record) { rec.Install.Digest = lostKey.Sum(plain) }, want: ours},
		"one under a lost key, of another image": {
			before: func(rec *record) { booted(rec, lostKey.Sum(other), "os:0") },
			want:   lostKey.Sum(other), ticket: lostKey.Sum(other), outdated: true,
		},
		"one under our key": {before: func(rec *record) { booted(rec, ours, "os:1") }, want: ours, ticket: ours},
		"one under our key, of something else": {
			before: func(rec *record) { booted(rec, key.Sum(other), "os:0") }, want: key.Sum(other), ticket: key.Sum(other), outdated: true,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			in, rec := serving()
			in.DigestKey = digestsKey
			tc.before(rec)
			isOutdated := func() bool { return plan.Plan(in).Servers[0].Pending != nil }
			if got := isOutdated(); got != tc.outdated {
				t.Errorf("before: outdated = %t", got)
			}
			for range 3 {
				for _, m := range plan.Plan(in).Moves {
					if len(m.Do) > 0 {
						t.Fatalf("the machine is touched: %+v", m.Do)
					}
					in.Observed.Servers[rec.Name] = m.Then
				}
			}
			got, ticket := in.Observed.Servers[rec.Name], ""
			if got.Boot.Ticket != nil {
				ticket = got.Boot.Ticket.Digest
			}
			if got.Install.Digest != tc.want || ticket != tc.ticket || isOutdated() != tc.outdated {
				t.Errorf("installed %s, ticket %s, outdated %t; want %s, %s, %t", got.Install.Digest, ticket, isOutdated(), tc.want, tc.ticket, tc.outdated)
			}
			for _, m := range plan.Plan(in).Moves {
				t.Errorf("it goes on: %+v", m)
			}
		})
	}
}
