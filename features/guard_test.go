package features

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"

	"ingot/features/internal/rig"
	"ingot/model"
	"ingot/reconcile/report"
)

// approvals are the tokens that the status branch shows.
type approvals struct {
	Record struct {
		AbsentToken string `json:"absentToken"`
		Absent      []struct {
			Token string `json:"token"`
		} `json:"absent"`
		Holds []struct {
			Token string `json:"token"`
		} `json:"holds"`
	} `json:"record"`
}

func (w *site) approvals() (a approvals, err error) {
	files, err := w.statusBranch()
	if err != nil {
		return a, err
	}
	return a, yaml.Unmarshal([]byte(files[model.ReportRevision]), &a)
}

func approveAbsent(ctx context.Context) error {
	var token string
	err := rig.Within(patience, func() error {
		a, err := siteOf(ctx).approvals()
		if token = a.Record.AbsentToken; err == nil && token == "" {
			err = errors.New("the status branch lists nothing that is absent")
		}
		return err
	})
	if err != nil {
		return err
	}
	return approve(ctx, token)
}

func limitPower(ctx context.Context, n int) error {
	w := siteOf(ctx)
	return w.whileStopped(func() error {
		w.guard = fmt.Sprintf(", maxPowerDisruptions: %d", n)
		return nil
	})
}

// approveHeld approves with the line that the status branch shows. It may come a
// moment after the servers' files say that they are held.
func approveHeld(ctx context.Context) error {
	w := siteOf(ctx)
	var token string
	err := rig.Within(patience, func() error {
		files, err := w.statusBranch()
		if err != nil {
			return err
		}
		var found bool
		if token, found = approvalLine(files[model.ReportRevision]); !found {
			return fmt.Errorf("the status branch shows no line to approve with:\n%s", files[model.ReportRevision])
		}
		return nil
	})
	if err != nil {
		return err
	}
	return approve(ctx, token)
}

// approvalLine is the token of the first line to approve with, as a person would copy it.
func approvalLine(text string) (token string, found bool) {
	for line := range strings.Lines(text) {
		if _, token, found = strings.Cut(line, "Ingot-Approve: "); found {
			return strings.Trim(strings.TrimSpace(token), `"'`), true
		}
	}
	return "", false
}

func approve(ctx context.Context, hash string) error {
	_, err := siteOf(ctx).repo.Commit(map[string]string{"approved.txt": hash + "\n"}, "let it happen\n\nIngot-Approve: "+hash+"\n")
	return err
}

func guardHolds(ctx context.Context, n int) error {
	w := siteOf(ctx)
	err := w.eventually(ctx, func(s report.Summary) error {
		held := 0
		for _, g := range s.Guard {
			held += len(g.Steps)
		}
		if held != n {
			return fmt.Errorf("the guard holds %+v", s.Guard)
		}
		return nil
	})
	return errors.Join(err, w.statusHolds(model.ReportRevision, "Ingot-Approve: "))
}

func guardHoldsNothing(ctx context.Context) error {
	return siteOf(ctx).eventually(ctx, func(s report.Summary) error {
		if len(s.Guard) > 0 {
			return fmt.Errorf("the guard holds %+v", s.Guard)
		}
		return nil
	})
}
