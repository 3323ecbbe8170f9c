package bmc

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"ingot/model"
)

// TestResetWithTask: a reset that is accepted as a task is asked for once, and its failure within seconds is known.
func TestResetWithTask(t *testing.T) {
	const monitor = "/redfish/v1/TaskService/TaskMonitors/7"
	done := object{"TaskState": "Completed"}
	failed := object{"TaskState": "Exception", "Messages": []any{object{"Message": "No power supply, " + password + "."}}}
	tests := map[string]struct {
		kind   model.ResetKind
		later  object // the answer of the monitor
		status int    // of it, 0 = 200
		is     error
		fails  bool
	}{
		"that is completed":                {kind: model.ResetOn, later: done},
		"that fails to power on":           {kind: model.ResetOn, later: failed, is: ErrPowerOnRefused, fails: true},
		"whose monitor answers 409":        {kind: model.ResetOn, later: failed, status: http.StatusConflict, is: ErrPowerOnRefused, fails: true},
		"whose monitor is gone":            {kind: model.ResetOn, later: done, status: http.StatusNotFound},
		"that fails to restart the system": {kind: model.ResetForceRestart, later: failed, fails: true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFake(t, plain)
			if tt.kind != model.ResetOn {
				f.resources[sysURI]["PowerState"] = "On"
			}
			f.answer = func(w http.ResponseWriter, r *http.Request) bool {
				switch {
				case strings.HasSuffix(r.URL.Path, "/Actions/ComputerSystem.Reset"):
					w.Header().Set("Location", monitor)
					w.WriteHeader(http.StatusAccepted)
					_ = json.NewEncoder(w).Encode(object{"TaskState": "Running"})
				case r.URL.Path == monitor && tt.status >= 400:
					fail(w, tt.status, "Base.1.0.GeneralError")
				case r.URL.Path == monitor:
					_ = json.NewEncoder(w).Encode(tt.later)
				default:
					return false
				}
				return true
			}
			err := errOf(newPool(t, Options{taskPoll: time.Millisecond}).Reset(t.Context(), f.system1(), tt.kind, ""))
			if (err != nil) != tt.fails || tt.is != nil && !errors.Is(err, tt.is) || NotCarriedOut(err) {
				t.Errorf("got %v, not carried out %t", err, NotCarriedOut(err))
			}
			if err != nil && (strings.Contains(err.Error(), password) || tt.status == 0 && !strings.Contains(err.Error(), "Exception: No power supply")) {
				t.Errorf("it says %v", err)
			}
			if n := counted(f.requests(), "POST "+sysURI); n != 1 {
				t.Errorf("%d resets, want 1", n)
			}
		})
	}
}
