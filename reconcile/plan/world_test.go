package plan

import (
	"ingot/model"
)

// probed are the network interfaces that a probe finds.
func probed(macs []string) []model.ProbeNetworkInterface {
	all := []model.ProbeNetworkInterface{{Name: "lo0"}}
	for _, mac := range macs {
		all = append(all, model.ProbeNetworkInterface{Name: "eth", MACAddress: mac})
	}
	return all
}

func claim(name string, change ...func(*model.ServerClaim)) *model.ServerClaim {
	c := &model.ServerClaim{
		Meta: model.Meta{Name: name, Namespace: "default"},
		Spec: model.ServerClaimSpec{Power: model.PowerOn, Image: "os:1"},
	}
	for _, f := range change {
		f(c)
	}
	return c
}
