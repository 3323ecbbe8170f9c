package reconcile

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"ingot/model"
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
func reportOf(in *Input) *model.Report {
	return NewProjector().Report(in, Plan(in), 1, model.Holder{})
}

// serverStatusOf is what the status branch says of a server.
func serverStatusOf(in *Input, name model.ServerName) serverStatus {
	return reportOf(in).Documents["servers/"+string(name)+".yaml"].Object.(*document).Status.(serverStatus)
}

// claimConditionsOf are the conditions of a claim on the status branch.
func claimConditionsOf(in *Input, name model.ClaimName) []metav1.Condition {
	return reportOf(in).Documents[claimPath(name)].Object.(*document).Status.(claimStatus).Conditions
}

// bootConfigurationOf is what the status branch says of the boot of a claim's server.
func bootConfigurationOf(in *Input, name model.ClaimName) bootConfigurationStatus {
	ns, n := model.SplitName(name)
	return reportOf(in).Documents["serverbootconfigurations/"+ns+"/"+n+".yaml"].Object.(*document).Status.(bootConfigurationStatus)
}

// claimWhy is why a claim has no server.
func claimWhy(in *Input, name model.ClaimName) Why {
	for _, c := range Plan(in).Claims {
		if c.Name == name {
			return c.Why
		}
	}
	return Why{Reason: "unknown"}
}
