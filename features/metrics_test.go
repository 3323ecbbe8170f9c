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
