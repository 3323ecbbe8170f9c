package addresses

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"ingot/model"
)

func TestServersWithoutAnAddressInGit(t *testing.T) {
	d := &model.Desired{Endpoints: map[string]*model.Endpoint{
		"a": {Spec: model.EndpointSpec{MACAddress: "m1b", IP: "10.0.0.1"}},
		"b": {Spec: model.EndpointSpec{MACAddress: "m2"}},
	}}
	o := &model.Observed{}
	o.Servers = map[model.ServerName]*model.ServerRecord{"s1": {}, "s2": {}, "s3": {}}
	macs := map[model.ServerName][]string{"s1": {"m1", "m1b"}, "s2": {"m2"}}
	got := ServersWithout(d, o, func(s model.ServerName) []string { return macs[s] })
	if diff := cmp.Diff([]string{"s2", "s3"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
