package reconcile

import (
	"ingot/model"
	"ingot/reconcile/plan"
	"ingot/reconcile/report"
	"testing"

	"sigs.k8s.io/yaml"
)

// rendered writes a report out as the status branch holds it.
func rendered(t *testing.T, r *model.Report) map[string][]byte {
	t.Helper()
	files := make(map[string][]byte)
	for path, d := range r.Documents {
		files[path] = []byte(d.Text)
		if d.Object == nil {
			continue
		}
		data, err := yaml.Marshal(d.Object)
		if err != nil {
			t.Fatal(err)
		}
		files[path] = data
	}
	return files
}

// reportOf is the first report of an input.
func reportOf(in *plan.Input) *model.Report {
	return report.NewProjector().Report(in, plan.Plan(in), 1, model.Holder{})
}

// serverStatusOf is what the status branch says of a server.
func serverStatusOf(in *plan.Input, name model.ServerName) report.ServerStatus {
	return reportOf(in).Documents["servers/"+string(name)+".yaml"].Object.(*report.Document).Status.(report.ServerStatus)
}

// claimWhy is why a claim has no server.
func claimWhy(in *plan.Input, name model.ClaimName) plan.Why {
	for _, c := range plan.Plan(in).Claims {
		if c.Name == name {
			return c.Why
		}
	}
	return plan.Why{Reason: "unknown"}
}
