package features

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"slices"
	"strings"

	"github.com/cucumber/godog"

	"ingot/features/internal/rig"
)

func (w *site) ready(ctx context.Context) bool {
	_, err := w.ingot.get(ctx, "/readyz")
	return err == nil
}

func notReady(ctx context.Context, who, check, says string) error {
	w := siteOf(ctx)
	p := w.ingot
	if who != "Ingot" {
		p = w.second
	}
	return p.notReady(ctx, check, says)
}

func (p *program) notReady(ctx context.Context, check, says string) error {
	return rig.Within(patience, func() error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.where.Admin+"/readyz", nil)
		if err != nil {
			return err
		}
		req.Header.Set("Accept", "application/json")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		defer func() { _ = resp.Body.Close() }()
		var ready struct {
			Checks []struct{ Name, Error string }
		}
		if err := json.NewDecoder(resp.Body).Decode(&ready); err != nil {
			return err
		}
		if !slices.ContainsFunc(ready.Checks, func(c struct{ Name, Error string }) bool {
			return c.Name == check && c.Error != "" && strings.Contains(c.Error, says)
		}) {
			return fmt.Errorf("/readyz does not fail for want of %s with %q: %+v", check, says, ready.Checks)
		}
		return nil
	})
}

func logSays(ctx context.Context, want string) error {
	return rig.Within(patience, func() error {
		if !strings.Contains(siteOf(ctx).log.text(), want) {
			return fmt.Errorf("the log does not say %q", want)
		}
		return nil
	})
}

func metricsSayUnpublished(ctx context.Context) error {
	return rig.Within(patience, func() error {
		metrics, err := siteOf(ctx).ingot.get(ctx, "/metrics")
		if err != nil {
			return err
		}
		for line := range strings.Lines(string(metrics)) {
			if value, is := strings.CutPrefix(line, "ingot_status_unpublished_seconds "); is && strings.TrimSpace(value) != "0" {
				return nil
			}
		}
		return errors.New("ingot_status_unpublished_seconds is 0, or not there")
	})
}

func explain(ctx context.Context, kind, name string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	address := "http://" + siteOf(ctx).ingot.where.Admin
	out, err := exec.CommandContext(ctx, ingotProgram, "explain", "--address", address, kind, name).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("ingot explain: %w\n%s", err, out)
	}
	return string(out), nil
}

func explainSays(ctx context.Context, kind, name, want string) error {
	return rig.Within(patience, func() error {
		x, err := explain(ctx, kind, siteOf(ctx).called(name))
		if err == nil && !strings.Contains(unfolded(x), want) {
			err = fmt.Errorf("ingot explain does not say %q:\n%s", want, x)
		}
		return err
	})
}

func explainCardSays(ctx context.Context, name string, table *godog.Table) error {
	d, err := siteOf(ctx).device(name)
	if err != nil {
		return err
	}
	return rig.Within(patience, func() error {
		x, err := explain(ctx, "endpoint", d.mac)
		if err != nil {
			return err
		}
		lines := strings.Split(x, "\n")
		for _, row := range table.Rows[1:] {
			at := slices.IndexFunc(lines, func(line string) bool {
				for _, c := range row.Cells {
					if !strings.Contains(line, c.Value) {
						return false
					}
				}
				return true
			})
			if at < 0 {
				return fmt.Errorf("ingot explain does not say %s, or not in this order:\n%s", row.Cells[1].Value, x)
			}
			lines = lines[at+1:]
		}
		return nil
	})
}

func metricsFull(ctx context.Context, name string) error {
	return siteOf(ctx).metricIsSet(ctx, "ingot_dhcp_pool_refused_total", fmt.Sprintf("network=%q", name))
}
