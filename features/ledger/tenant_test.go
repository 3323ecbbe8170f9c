package ledger

import (
	"testing"

	"ingot/model"
)

func TestWhatStandsInATenantsFolderCountsIfItIsItsOwn(t *testing.T) {
	c := Configuration{Folders: map[string]string{"claims/alpha": "alpha"}}
	meta := func(namespace string) model.Meta { return model.Meta{Name: "x", Namespace: namespace} }
	f := File{Objects: []model.Object{
		&model.ServerClaim{Meta: meta("alpha")}, &model.Secret{Meta: meta("alpha")},
		&model.ServerClaim{Meta: meta("beta")}, &model.BMC{Meta: meta("")},
	}}
	for file, want := range map[string]int{"claims/alpha/a.yaml": 2, "claims/alphabet/a.yaml": 4, "bmcs/a.yaml": 4} {
		if got := len(c.of(file, f).Objects); got != want {
			t.Errorf("%s: %d objects count, want %d", file, got, want)
		}
	}
	if len(f.Objects) != 4 {
		t.Error("the file that is known was changed")
	}
}
