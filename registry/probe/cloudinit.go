package probe

import (
	"regexp"
	"time"

	"ingot/model"
)

// maxCloudInitErrors is how many of cloud-init's errors are kept.
const maxCloudInitErrors = 3

// moduleError is how cloud-init writes down that a module failed: the str of a Python tuple of
// the module and its exception. Of the exception's text nothing is taken but what counts the
// scripts that failed: there may be anything in it, also of what user-data keeps secret.
var moduleError = regexp.MustCompile(`^\('([\w-]{1,40})', (\w{1,60})\((?:['"](Runparts: \d{1,5} failures \([\w.,-]{1,120}\)))?`)

// cloudInitResult is how cloud-init ended, as it is kept and shown; nil = it has not ended.
func cloudInitResult(told *model.ProbeCloudInit, now time.Time) *model.CloudInitResult {
	if told == nil {
		return nil
	}
	result := &model.CloudInitResult{ReceivedAt: now}
	for _, stage := range []struct {
		name   string
		errors []string
	}{
		{"init-local", told.V1.InitLocal.Errors},
		{"init", told.V1.Init.Errors},
		{"modules-config", told.V1.ModulesConfig.Errors},
		{"modules-final", told.V1.ModulesFinal.Errors},
	} {
		for _, text := range stage.errors {
			if len(result.Errors) == maxCloudInitErrors {
				result.ErrorsMore++
				continue
			}
			result.Errors = append(result.Errors, "stage "+stage.name+", "+shownError(text))
		}
	}
	return result
}

// shownError is what is shown of one of cloud-init's errors.
func shownError(text string) string {
	m := moduleError.FindStringSubmatch(text)
	switch {
	case m == nil:
		return "an error outside its modules"
	case m[3] != "":
		return "module " + m[1] + ": " + m[3]
	}
	return "module " + m[1] + ": " + m[2]
}
