package probe

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ingot/model"
	"ingot/registry"
)

// failedScript is a failed runcmd as cloud-init 22.4 to 25.3 write it.
const failedScript = `('scripts_user', RuntimeError('Runparts: 1 failures (runcmd) in 1 attempted commands'))`

func TestWhatIsShownOfCloudInitsErrors(t *testing.T) {
	for text, want := range map[string]string{
		failedScript: "module scripts_user: Runparts: 1 failures (runcmd)",
		`('scripts-user', RuntimeError('Runparts: 2 failures (part-001,runcmd) in 3 attempted commands'))`:          "module scripts-user: Runparts: 2 failures (part-001,runcmd)",
		`('bootcmd', ProcessExecutionError("Unexpected error while running command.\nCommand: ['sh', 'hunter2']"))`: "module bootcmd: ProcessExecutionError",
		`('set-passwords', ValueError('chpasswd of root:hunter2'))`:                                                 "module set-passwords: ValueError",
		`('scripts_user', RuntimeError('Runparts: 1 failures (a b hunter2) in 1 attempted commands'))`:              "module scripts_user: RuntimeError",
		`hunter2 is no YAML`:                                           "an error outside its modules",
		"('x\x1b[2Jhunter2', RuntimeError('a'))":                       "an error outside its modules",
		"('" + strings.Repeat("x", 41) + "', RuntimeError('hunter2'))": "an error outside its modules",
		"": "an error outside its modules",
	} {
		if got := shownError(text); got != want {
			t.Errorf("of %q is shown %q, want %q", text, got, want)
		}
	}
}

func TestCloudInitsResultIsBoundedAndInTheOrderOfItsStages(t *testing.T) {
	var told model.ProbeCloudInit
	told.V1.ModulesFinal.Errors = []string{failedScript, "x", "y"}
	told.V1.InitLocal.Errors = []string{"x"}
	told.V1.Init.Errors = []string{"('bootcmd', ProcessExecutionError())"}
	want := &model.CloudInitResult{ReceivedAt: now, ErrorsMore: 2, Errors: []string{
		"stage init-local, an error outside its modules", "stage init, module bootcmd: ProcessExecutionError",
		"stage modules-final, module scripts_user: Runparts: 1 failures (runcmd)",
	}}
	if diff := cmp.Diff(want, cloudInitResult(&told, now)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got := cloudInitResult(nil, now); got != nil {
		t.Errorf("before cloud-init's end it is %+v", got)
	}
}

func TestHowCloudInitEndedIsTakenAfterTheBoot(t *testing.T) {
	const failed = `,"booted":true,"cloudInit":{"v1":{"stage":null,"datasource":"nocloud","init":{"errors":[],"start":1.5},"modules-final":{"errors":["` + failedScript + `"]}}}`
	const fine = `,"booted":true,"cloudInit":{"v1":{"modules-final":{"errors":[]}}}`
	at := now
	r := newRig(t, Options{Clock: func() time.Time { return at }})
	post := func(what, body string, code int, want *model.BootState) {
		t.Helper()
		if w := r.do(http.MethodPost, "/r/"+r.token(rebooted)+"/bootstate", uuidBody(rebooted, body)); w.Code != code {
			t.Errorf("%s: answered %d %s, want %d", what, w.Code, w.Body, code)
		}
		if diff := cmp.Diff(want, r.Observed().BootStates["server-8"]); diff != "" {
			t.Errorf("%s: -want +got:\n%s", what, diff)
		}
	}
	state := func(received time.Time, errors ...string) *model.BootState {
		return &model.BootState{Ticket: "server-8-1", ReceivedAt: now, Client: "192.0.2.1", CloudInit: &model.CloudInitResult{ReceivedAt: received, Errors: errors}}
	}
	const shown = "stage modules-final, module scripts_user: Runparts: 1 failures (runcmd)"
	post("nothing but up, once its ticket ended", `,"booted":true`, 200, nil)
	post("an error", failed, 200, state(now, shown))
	at = now.Add(time.Second)
	post("another result at once", fine, 200, state(now, shown))
	at = now.Add(time.Hour)
	post("the same again", failed, 200, state(now, shown))
	post("that it is up again", `,"booted":true`, 200, state(now, shown))
	post("what is no status of cloud-init", `,"booted":true,"cloudInit":{"v1":{"init":{"errors":[7]}}}`, 400, state(now, shown))
	post("another result later", fine, 200, state(at))
	if n := r.writes(t, "bootstate"); n != 2 {
		t.Errorf("%v writes, want 2", n)
	}

	rec := *r.Observed().Servers["server-8"]
	rec.Release = &model.Release{}
	save(t, r.Registry, registry.Changes{Servers: []*model.ServerRecord{&rec}})
	last := state(at)
	at = at.Add(time.Hour)
	post("a result after the release (N59)", failed, 403, last)
}
