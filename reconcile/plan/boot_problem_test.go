package plan_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ingot/model"
	"ingot/reconcile/plan/booting"
	"ingot/reconcile/plan/proposal"
)

func TestWhatStandsAgainstABoot(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	const running = "it keeps running what it has, and it is tried again"
	tests := map[string]struct {
		change change
		want   proposal.Why // "" = it is armed
		do     string       // what is done
	}{
		"nothing is known against it": {do: "arm boot ticket for os:1"},
		"a problem of it is waited out": {
			change: func(_ *input, rec *record) { rec.Boot.Problem.NotBefore = now.Add(time.Minute) },
			want:   proposal.Why{Reason: "NotFound", Message: "no such tag; it is not powered on for that, and it is tried again", Since: now, Actor: proposal.Tenant},
		},
		"the time for another attempt is come": {
			change: func(_ *input, rec *record) { rec.Boot.Problem.NotBefore = now },
			want:   proposal.Why{Reason: "NotFound", Message: "no such tag; it is not powered on for that, and it is tried again", Since: now, Actor: proposal.Tenant},
			do:     "arm boot ticket for os:1",
		},
		"a problem of another boot is no matter": {change: func(_ *input, rec *record) {
			rec.Boot.Problem.NotBefore, rec.Boot.Problem.Digest = now.Add(time.Minute), "sha256:other"
		}, do: "arm boot ticket for os:1"},
		"nor is one of another architecture": {change: func(in *input, rec *record) {
			rec.Boot.Problem.NotBefore = now.Add(time.Minute)
			in.Observed.ServerFacts[rec.Name].Inventory = &model.Inventory{Processors: []model.Processor{{Architecture: "ARM"}}}
		}, do: "arm boot ticket for os:1"},
		"an unreachable registry is the operator's": {
			change: func(_ *input, rec *record) {
				rec.Boot.Problem.NotBefore, rec.Boot.Problem.Reason = now.Add(time.Minute), "RegistryUnreachable"
			},
			want: proposal.Why{Reason: "RegistryUnreachable", Message: "no such tag; it is not powered on for that, and it is tried again", Since: now, Actor: proposal.RackOperator},
		},
		"an architecture that is not served": {
			change: func(in *input, rec *record) {
				in.Policy.Architectures = []string{"amd64", "riscv64"}
				in.Observed.ServerFacts[rec.Name].Inventory = &model.Inventory{Processors: []model.Processor{{InstructionSet: "ARM-A64"}}}
			},
			want: proposal.Why{Reason: model.ReasonArchitectureNotServed,
				Message: "it is arm64 (by its processors), and boot.architectures has only amd64, riscv64: " +
					"add arm64 there and restart Ingot, or take the server's BMC out of Git", Since: now.Add(-time.Hour), Actor: proposal.RackOperator},
		},
		"a running server whose new image cannot be had": {change: func(in *input, rec *record) {
			rec.Install.Digest, rec.Install.Reprovision, rec.Requests.HandledReprovision = "sha256:old", "1", "1"
			in.Desired.Claims[rec.Claim.Name].Annotations = map[string]string{model.AnnotationReprovision: "1"}
			rec.Boot.Problem.NotBefore = now.Add(time.Minute)
			in.Observed.ServerFacts[rec.Name].Power = model.PowerOn
		}, want: proposal.Why{Reason: "NotFound", Message: "no such tag; " + running, Since: now, Actor: proposal.Tenant}},
		"a running server whose new image may be had": {change: func(in *input, rec *record) {
			rec.Install.Digest, rec.Install.Reprovision, rec.Requests.HandledReprovision, rec.Boot.Problem = "sha256:old", "1", "1", nil
			in.Desired.Claims[rec.Claim.Name].Annotations = map[string]string{model.AnnotationReprovision: "1"}
			in.Observed.ServerFacts[rec.Name].Power = model.PowerOn
		}, do: "arm boot ticket for os:1"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			in := bigFleet(1, 1)
			rec := in.Observed.Servers["bmc00000-system-0"]
			rec.Install.Digest = ""
			rec.Boot.Problem = &model.BootProblem{
				Digest: booting.BootDigest(proposal.Boot{Image: "os:1"}), Architecture: "amd64", Image: "os:1",
				Reason: "NotFound", Message: "no such tag", Since: now,
			}
			in.Observed.ServerFacts[rec.Name].Power = model.PowerOff
			if tc.change == nil {
				rec.Boot.Problem = nil
			} else {
				tc.change(in, rec)
			}
			st := stepOf(in, rec.Name)
			if diff := cmp.Diff(tc.want, st.Why); diff != "" {
				t.Errorf("why (-want +got):\n%s", diff)
			}
			if got := st.does(); got != tc.do {
				t.Errorf("does %q, want %q", got, tc.do)
			}
		})
	}
}
