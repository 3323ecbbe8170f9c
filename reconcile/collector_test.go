package reconcile

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"ingot/model"
	"ingot/reconcile/internal/plantest"
	"ingot/reconcile/plan"
	"ingot/reconcile/plan/proposal"
	"ingot/reconcile/plan/world"
	"ingot/reconcile/report"
)

// collected are the metrics of what is planned for an input, with its result changed.
func collected(in *world.Input, change func(*plan.Result)) prometheus.Collector {
	return NewFleetCollector(reported(in, change), false)
}

func reported(in *world.Input, change func(*plan.Result)) func() *Reported {
	r := plan.Plan(in)
	change(r)
	made, shown := new(report.Projector).Report(in, r, 1, model.Holder{})
	rep := &Reported{made, shown, in, r}
	return func() *Reported { return rep }
}

func TestWhatWaitsIsShownByReasonAndByName(t *testing.T) {
	in := plantest.Waiting(plantest.BigFleet(3, 1), 1, func(_ int, c *model.ServerClaim) {
		c.Spec.ServerRef = &model.LocalRef{Name: "nowhere"}
	})
	since := time.Unix(1_800_000_000, 0)
	in.Started = since.Add(10 * time.Minute)
	in.Observed.Fleet.Holds = []model.GuardHold{{Token: "release-3-abc", Since: since, Steps: make([]model.Disruption, 4)}}
	c := collected(in, func(r *plan.Result) {
		r.Servers[0].Why = proposal.Why{Reason: model.ReasonBootFailed, Since: since, Actor: proposal.Tenant}
		r.Servers[1].Why = proposal.Why{Reason: "Of<another>Version", Since: since.Add(time.Minute), Actor: proposal.RackOperator}
		r.BMCs[0].Why = proposal.Why{Reason: model.ReasonAuthenticationFailed, Since: since, Actor: proposal.RackOperator}
		r.BMCs[1].Why = proposal.Why{Reason: model.ReasonAddressNotAllowed, Actor: proposal.RackOperator} // since ever
		r.Claims[len(r.Claims)-1].Record = &model.ClaimRecord{FirstSeen: since.Add(time.Hour)}
	})
	want := `
ingot_bmc_failing_since_timestamp_seconds{bmc="bmc00000",reason="AuthenticationFailed"} 1.8e+09
ingot_bmc_failing_since_timestamp_seconds{bmc="bmc00001",reason="AddressNotAllowed"} 1.8000006e+09
ingot_bmc_ready{bmc="bmc00000"} 0
ingot_bmc_ready{bmc="bmc00001"} 0
ingot_bmc_ready{bmc="bmc00002"} 1
ingot_bmcs{state="Enabled"} 1
ingot_bmcs{state="Error"} 2
ingot_bmcs{state="Pending"} 0
ingot_claim_waiting_since_timestamp_seconds{actor="tenant",claim="default/c00000",phase="Bound",reason="BootFailed"} 1.8e+09
ingot_claim_waiting_since_timestamp_seconds{actor="tenant",claim="default/w00000",phase="Unbound",reason="ServerUnknown"} 1.8000036e+09
ingot_claims{phase="Bound"} 1
ingot_claims{phase="Unbound"} 1
ingot_guard_held 4
ingot_guard_hold_since_timestamp_seconds{scope="",token="release-3-abc"} 1.8e+09
ingot_server_waiting_since_timestamp_seconds{actor="rack operator",reason="other",server="bmc00001-system-0",state="Available"} 1.80000006e+09
ingot_server_waiting_since_timestamp_seconds{actor="tenant",reason="BootFailed",server="bmc00000-system-0",state="Reserved"} 1.8e+09
ingot_servers_awaiting_action{actor="rack operator"} 1
ingot_servers_awaiting_action{actor="tenant"} 1
`
	if diff := differs(t, c, want); diff != "" {
		t.Error(diff)
	}
	for name, want := range map[string]float64{
		`ingot_servers_waiting{reason="BootFailed"}`:                   1,
		`ingot_servers_waiting{reason="other"}`:                        1,
		`ingot_servers_waiting{reason="Wiping"}`:                       0,
		`ingot_claims_waiting{phase="Unbound",reason="ServerUnknown"}`: 1,
		`ingot_claims_waiting{phase="Unbound",reason="NoServerFree"}`:  0,
		`ingot_claims_waiting{phase="Bound",reason="BootFailed"}`:      1,
		`ingot_bmcs_failing{reason="AuthenticationFailed"}`:            1,
		`ingot_bmcs_failing{reason="ConnectionFailed"}`:                0,
	} {
		if got, ok := samples(t, c)[name]; !ok || got != want {
			t.Errorf("%s is %v (there: %t), want %v", name, got, ok, want)
		}
	}
}

func TestServerMetricsByDefaultAndInFull(t *testing.T) {
	in := plantest.BigFleet(2, 1)
	in.Observed.Servers["bmc00001-system-0"].Disks.Wiped = []model.DiskWipe{{Name: "sda", Result: model.WipeDone}}
	r := reported(in, func(r *plan.Result) {
		r.Servers[0].Why = proposal.Why{Reason: model.ReasonBootFailed, Actor: proposal.Tenant}
	})
	if diff := differs(t, NewFleetCollector(r, false), `
metal_server_condition_status{condition_type="Ready",server="bmc00000-system-0",status="False"} 1
metal_server_power_state{power_state="On",server="bmc00000-system-0"} 1
metal_server_power_state{power_state="Off",server="bmc00001-system-0"} 1
metal_server_state{server="bmc00000-system-0",state="Reserved"} 1
metal_server_state{server="bmc00001-system-0",state="Available"} 1
`); diff != "" {
		t.Errorf("by default:\n%s", diff)
	}
	all := samples(t, NewFleetCollector(r, true))
	for name, want := range map[string]float64{
		`metal_server_state{server="bmc00001-system-0",state="Available"}`:                                1,
		`metal_server_state{server="bmc00001-system-0",state="Error"}`:                                    0,
		`metal_server_power_state{power_state="On",server="bmc00001-system-0"}`:                           0,
		`metal_server_condition_status{condition_type="Ready",server="bmc00000-system-0",status="False"}`: 1,
		`metal_server_condition_status{condition_type="Wiped",server="bmc00001-system-0",status="True"}`:  1,
	} {
		if got, ok := all[name]; !ok || got != want {
			t.Errorf("in full, %s is %v (there: %t), want %v", name, got, ok, want)
		}
	}
}

// goalServerBytes bounds what all metrics of a server and its BMC take in a scrape.
const goalServerBytes = 400

func TestServerMetricsAreSmall(t *testing.T) {
	const servers = 200
	notReady := func(r *plan.Result) {
		for _, s := range r.Servers {
			s.Why = proposal.Why{Reason: model.ReasonFailing, Actor: proposal.RackOperator}
		}
	}
	few := len(scraped(t, collected(plantest.BigFleet(servers, servers/2), notReady)))
	many := len(scraped(t, collected(plantest.BigFleet(2*servers, servers), notReady)))
	if each := (many - few) / servers; each > goalServerBytes {
		t.Errorf("a server takes %d bytes, want at most %d", each, goalServerBytes)
	}
}

func scraped(t testing.TB, c prometheus.Collector) []byte {
	t.Helper()
	reg := prometheus.NewRegistry()
	reg.MustRegister(c)
	w := httptest.NewRecorder()
	promhttp.HandlerFor(reg, promhttp.HandlerOpts{}).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if w.Code != http.StatusOK {
		t.Fatalf("%d: %s", w.Code, w.Body)
	}
	return w.Body.Bytes()
}

func TestOnlyWhatWaitsLongestHasASeriesByName(t *testing.T) {
	const many = 3 * maxNamed
	since := time.Unix(1_800_000_000, 0)
	c := collected(plantest.BigFleet(many, 0), func(r *plan.Result) {
		for i := range r.Servers {
			why := proposal.Why{Reason: model.ReasonFailing, Since: since.Add(-time.Duration(i) * time.Minute), Actor: proposal.RackOperator}
			r.Servers[i].Why, r.BMCs[i].Why = why, why
		}
	})
	names := make(map[string]int)
	for name := range samples(t, c) {
		family, _, _ := strings.Cut(name, "{")
		names[family]++
		if _, server, ok := strings.Cut(name, `reason="Failing",server="bmc`); ok && server < fmt.Sprintf("%05d", many-maxNamed) {
			t.Errorf("%s is shown, though others have waited longer", name)
		}
	}
	for _, family := range []string{"ingot_server_waiting_since_timestamp_seconds", "ingot_bmc_failing_since_timestamp_seconds"} {
		if names[family] != maxNamed {
			t.Errorf("%s has %d series, want %d", family, names[family], maxNamed)
		}
	}
	if got := samples(t, c)[`ingot_servers_waiting{reason="Failing"}`]; got != many {
		t.Errorf("%v servers wait, want %d: all are counted", got, many)
	}
}

// samples are the values of a collector's metrics, by name and labels.
func samples(t *testing.T, c prometheus.Collector) map[string]float64 {
	t.Helper()
	reg := prometheus.NewRegistry()
	reg.MustRegister(c)
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := make(map[string]float64)
	for _, f := range families {
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()))
			}
			name := f.GetName()
			if len(labels) > 0 {
				name += "{" + strings.Join(labels, ",") + "}"
			}
			out[name] = m.GetGauge().GetValue()
		}
	}
	return out
}

// differs says how the metrics that want has values of differ from it.
func differs(t *testing.T, c prometheus.Collector, want string) string {
	t.Helper()
	families := make(map[string]bool)
	wanted := make(map[string]bool)
	for line := range strings.Lines(strings.TrimSpace(want)) {
		line = strings.TrimSpace(line)
		wanted[line] = true
		family, _, _ := strings.Cut(strings.Fields(line)[0], "{")
		families[family] = true
	}
	var diff strings.Builder
	for name, value := range samples(t, c) {
		family, _, _ := strings.Cut(name, "{")
		line := fmt.Sprintf("%s %v", name, value)
		switch {
		case !families[family]:
		case wanted[line]:
			delete(wanted, line)
		default:
			fmt.Fprintln(&diff, "+ "+line)
		}
	}
	for line := range wanted {
		fmt.Fprintln(&diff, "- "+line)
	}
	return diff.String()
}

func TestTheFleetsMetricsAreNamedByPrometheusConventions(t *testing.T) {
	problems, err := testutil.CollectAndLint(collected(plantest.BigFleet(2, 1), func(*plan.Result) {}))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}
