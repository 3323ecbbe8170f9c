package report

import (
	"ingot/model"
)

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
