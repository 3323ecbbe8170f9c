package features

import (
	"context"
	"fmt"
	"strings"

	"ingot/features/internal/rig"
)

func metricsCountBoots(ctx context.Context, want int) error {
	const name = `ingot_claim_stage_seconds_count{stage="booted"}`
	return rig.Within(patience, func() error {
		metrics, err := get(ctx, "http://"+siteOf(ctx).ingot.where.Admin+"/metrics")
		if err != nil {
			return err
		}
		if got := total(metrics, name); !strings.Contains(string(metrics), name) || got != float64(want) {
			return fmt.Errorf("%s is %v, want %d", name, got, want)
		}
		return nil
	})
}

func metricsNameWaiting(ctx context.Context, claim, reason string) error {
	return siteOf(ctx).metricIsSet(ctx, "ingot_claim_waiting_since_timestamp_seconds",
		fmt.Sprintf("claim=%q", "default/"+claim), fmt.Sprintf("reason=%q", reason))
}

func onlyMetricsOf(ctx context.Context, server, state, power string) error {
	w := siteOf(ctx)
	want := fmt.Sprintf("metal_server_power_state{power_state=%q,server=%[2]q} 1\nmetal_server_state{server=%[2]q,state=%[3]q} 1\n", power, w.called(server), state)
	return rig.Within(patience, func() error {
		metrics, err := w.ingot.get(ctx, "/metrics")
		if err != nil {
			return err
		}
		var got strings.Builder
		for line := range strings.Lines(string(metrics)) {
			if strings.Contains(line, fmt.Sprintf("server=%q", w.called(server))) {
				got.WriteString(line)
			}
		}
		if got.String() != want {
			return fmt.Errorf("the metrics are\n%s, want\n%s", got.String(), want)
		}
		return nil
	})
}
