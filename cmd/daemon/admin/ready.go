package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"
)

// checkTimeout is how long one readiness check may take.
const checkTimeout = 3 * time.Second

// A Check says whether one part is ready.
type Check struct {
	Name string
	// Do returns nil, or why the part is not ready; a Remark if it is ready nonetheless.
	Do func(context.Context) error
}

// A Remark is what somebody has to look at in a part that is ready.
type Remark string

func (r Remark) Error() string { return string(r) }

type readiness struct {
	Ready  bool          `json:"ready"`
	Checks []checkResult `json:"checks"`
}

type checkResult struct {
	Name  string `json:"name"`
	Error string `json:"error,omitempty"` // empty when ready
	// Remark is what to look at, though it is ready.
	Remark string `json:"remark,omitempty"`
}

func (h *handler) ready(w http.ResponseWriter, r *http.Request) {
	result := runChecks(r.Context(), h.checks)
	code := http.StatusOK
	if !result.Ready {
		code = http.StatusServiceUnavailable
	}
	if strings.Contains(r.Header.Get("Accept"), "application/json") {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(result) // the client may be gone
		return
	}
	writeText(w, code, result.String())
}

// runChecks runs all checks at once, each for at most checkTimeout.
func runChecks(ctx context.Context, checks []Check) readiness {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	result := readiness{Ready: true, Checks: make([]checkResult, len(checks))}
	var wg sync.WaitGroup
	for i, c := range checks {
		result.Checks[i].Name = c.Name
		wg.Go(func() {
			var remark Remark
			switch err := c.Do(ctx); {
			case errors.As(err, &remark):
				result.Checks[i].Remark = string(remark)
			case err != nil:
				result.Checks[i].Error = err.Error()
			}
		})
	}
	wg.Wait()
	for _, c := range result.Checks {
		result.Ready = result.Ready && c.Error == ""
	}
	return result
}

// String returns a line for each check.
func (r readiness) String() string {
	var b strings.Builder
	for _, c := range r.Checks {
		state := "ready"
		switch {
		case c.Error != "":
			state = "not ready: " + c.Error
		case c.Remark != "":
			state = "ready, but " + c.Remark
		}
		fmt.Fprintf(&b, "%s: %s\n", c.Name, state)
	}
	return b.String()
}
