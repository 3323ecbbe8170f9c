package model

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A BMC within a Server is one of the Server's name, unless one of that name stands in Git by
// itself, in whatever order they are found.
func TestTheBMCWithinAServer(t *testing.T) {
	own := &BMC{Meta: Meta{Name: "s"}, Spec: BMCSpec{Access: &InlineEndpoint{IP: "192.0.2.9"}}}
	s := &Server{
		Meta: Meta{Name: "s", Source: "s.yaml:1", Tenant: "ops", Annotations: map[string]string{AnnotationOperation: "retry#1"}},
		Spec: ServerSpec{BMC: &BMCAccess{
			Protocol: Protocol{Name: "Redfish", Port: 443, Scheme: "https"}, Address: "192.0.2.1", BMCSecretRef: LocalRef{"x"},
		}},
	}
	within := &BMC{
		Meta: Meta{Name: "s", Source: "s.yaml:1", Tenant: "ops", Annotations: s.Annotations, Within: "s"},
		Spec: BMCSpec{Access: &InlineEndpoint{IP: "192.0.2.1"}, BMCSecretRef: LocalRef{"x"}, Protocol: s.Spec.BMC.Protocol},
	}
	for name, tt := range map[string]struct {
		objects []Object
		want    *BMC
	}{
		"alone":                      {[]Object{s}, within},
		"before one by itself":       {[]Object{s, own}, own},
		"after one by itself":        {[]Object{own, s}, own},
		"of a Server without it":     {[]Object{&Server{Meta: Meta{Name: "s"}}}, nil},
		"of one that has it no more": {[]Object{s, &Server{Meta: Meta{Name: "s"}}}, nil},
	} {
		d := NewDesired()
		for _, o := range tt.objects {
			d.Add(o)
		}
		if diff := cmp.Diff(tt.want, d.BMCs["s"]); diff != "" || (tt.want == nil) != (len(d.BMCs) == 0) {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
