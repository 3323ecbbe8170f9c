package fleettest

import (
	"fmt"

	"ingot/model"
)

// GivenUUID is one that Git gives to a machine whose BMC shows none.
const GivenUUID = "00000000-0000-4000-8000-00000000000a"

// ServerFile is a Server manifest of a small fleet in Git.
func ServerFile(i int, change ...func(*model.Server)) *model.Server {
	s := &model.Server{Meta: model.Meta{Name: fmt.Sprintf("bmc%02d-system-0", i), Annotations: map[string]string{}}}
	for _, f := range change {
		f(s)
	}
	return s
}

// InGit gives a server MAC addresses in Git.
func InGit(list string) func(*model.Server) {
	return func(s *model.Server) { s.Annotations[model.AnnotationMACAddresses] = list }
}

// MaintenanceOf is a maintenance of a small fleet's server.
func MaintenanceOf(name string, i int) *model.ServerMaintenance {
	return &model.ServerMaintenance{
		Meta: model.Meta{Name: name}, Spec: model.ServerMaintenanceSpec{ServerRef: model.LocalRef{Name: ServerFile(i).Name}},
	}
}

// UUIDOf gives the machine behind a BMC a UUID.
func UUIDOf(name, bmc, uri, uuid string) *model.Server {
	return &model.Server{
		Meta: model.Meta{Name: name},
		Spec: model.ServerSpec{SystemUUID: uuid, SystemURI: uri, BMCRef: &model.LocalRef{Name: bmc}},
	}
}
