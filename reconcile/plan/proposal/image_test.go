package proposal_test

import (
	"testing"

	"ingot/model"
	"ingot/reconcile/plan/proposal"
)

func catalogued(images ...model.CatalogImage) *model.Desired {
	d := model.NewDesired()
	d.Images = &model.ImageCatalog{Meta: model.Meta{Name: model.CatalogName}, Spec: model.ImageCatalogSpec{Images: images}}
	return d
}

func namedServer(d *model.Desired, pinned *model.CatalogImage) *proposal.Server {
	return &proposal.Server{
		Moment: &proposal.Moment{Desired: d, Observed: model.NewObserved()}, Facts: new(model.ServerFacts),
		Record: &model.ServerRecord{Claim: model.RecordClaim{Image: pinned}},
	}
}

func TestImageOf(t *testing.T) {
	v1, v2 := model.CatalogImage{Name: "debian", Image: "r.example/debian@sha256:1"}, model.CatalogImage{Name: "debian", Image: "r.example/debian@sha256:2"}
	arm := model.CatalogImage{Name: "debian", Image: "r.example/debian@sha256:3", Architecture: "arm64"}
	absent, kept := catalogued(v2), catalogued(v2)
	absent.Absent = []model.Absence{{Identity: model.CatalogIdentity, Token: "t"}}
	kept.LastGood = []model.LastGood{{Identity: model.CatalogIdentity}}
	for name, tc := range map[string]struct {
		desired *model.Desired
		pinned  *model.CatalogImage
		image   string
		want    string // the image, or the reason
		actor   proposal.Actor
	}{
		"a changed entry changes no server with a claim":         {catalogued(v2), &v1, "debian", v1.Image, ""},
		"a removed entry changes no server with a claim":         {catalogued(), &v1, "debian", v1.Image, ""},
		"a removed catalogue changes no server with a claim":     {model.NewDesired(), &v1, "debian", v1.Image, ""},
		"an absent catalogue changes no server with a claim":     {absent, &v1, "debian", v1.Image, ""},
		"an unreadable catalogue changes no server with a claim": {kept, &v1, "debian", v1.Image, ""},
		"a name without a pin":                                   {catalogued(v2), nil, "debian", v2.Image, ""},
		"another name than the pin":                              {catalogued(v2), &model.CatalogImage{Name: "ubuntu"}, "debian", v2.Image, ""},
		"an unknown name":                                        {catalogued(v2), nil, "debain", model.ReasonImageUnknown, proposal.Tenant},
		"an absent catalogue":                                    {absent, nil, "debian", model.ReasonAbsentWithoutCommit, proposal.RackOperator},
		"an unreadable catalogue":                                {kept, nil, "debian", model.ReasonManifestUnreadable, proposal.RackOperator},
		"an image for another architecture":                      {catalogued(arm), nil, "debian", model.ReasonNoArchitecture, proposal.Tenant},
		"an image for each architecture":                         {catalogued(arm, model.CatalogImage{Name: "debian", Image: v1.Image, Architecture: "amd64"}), nil, "debian", v1.Image, ""},
	} {
		t.Run(name, func(t *testing.T) {
			image, why := proposal.ImageOf(namedServer(tc.desired, tc.pinned), &model.ServerClaim{Spec: model.ServerClaimSpec{Image: tc.image}})
			got := string(why.Reason)
			if image != nil {
				got = image.Image
			}
			if got != tc.want || why.Actor != tc.actor {
				t.Errorf("got %s %s, want %s %s", got, why.Actor, tc.want, tc.actor)
			}
		})
	}
	if image, why := proposal.ImageOf(namedServer(catalogued(v2), nil), &model.ServerClaim{Spec: model.ServerClaimSpec{Image: "r.example/debian:13"}}); image != nil || why.Reason != "" {
		t.Errorf("a reference is taken for a name: %v %v", image, why)
	}
}
