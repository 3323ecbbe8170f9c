package adapter

import (
	"strings"
	"testing"

	"ingot/bootsvc"
	"ingot/bootsvc/ignition"
	"ingot/model"
	"ingot/model/must"
	"ingot/reconcile/plan/proposal"
	"ingot/registry"
)

func process(t *testing.T, dir string) *Boots {
	t.Helper()
	r := must.Get(registry.Open(t.Context(), registry.Options{Dir: dir, SealKey: []byte(strings.Repeat("k", 32))}))(t)
	t.Cleanup(func() { _ = r.Close() })
	compiler := must.Get(ignition.New(ignition.Options{}))(t)
	return &Boots{Registry: r, Ignition: compiler, RegistryURL: "http://10.0.0.1:10000", Desired: func() *model.Desired { return nil }}
}

func TestATicketHandsOutTheSameBytesOverRestarts(t *testing.T) {
	ticket := model.Ticket{
		ID: "s1-1", Server: "s1", UUID: "38373000-3534-584d-5130-333030434a59",
		Purpose: model.PurposeClaim, Claim: "team-a/web",
	}
	for title, values := range map[string]map[string]string{
		"Ignition":   {"ignition": "variant: fcos\nversion: 1.4.0\nstorage: {files: [{path: /a}, {path: /b}]}\n", "format": "fcos"},
		"cloud-init": {"user-data": "#cloud-config\n", "vendor-data": "#!/bin/sh\n"},
		"a script":   {"ipxe-script": "#!ipxe\nshell\n"},
	} {
		t.Run(title, func(t *testing.T) {
			boot := proposal.Boot{Ticket: ticket, Secret: make(map[string]model.Sensitive), KernelArguments: "quiet"}
			for key, value := range values {
				boot.Secret[key] = model.NewSensitive(value)
			}
			dir := t.TempDir()
			first := process(t, dir)
			made := must.Get(first.render(&ticket, &boot))(t)
			must.Do(t, first.Registry.Save(t.Context(), registry.Changes{Payloads: map[string]model.Sensitive{ticket.ID: made}}))
			must.Do(t, first.Registry.Close())
			second := process(t, dir)
			if kept, err := second.Payload(t.Context(), &ticket); err != nil || kept != made {
				t.Errorf("T14: after a restart it is something else, %v", err)
			}
			if again, err := second.render(&ticket, &boot); err != nil || again != made {
				t.Errorf("T14: made again from Git it is something else, %v", err)
			}
		})
	}
}

func TestHowAServerBootsFromDisk(t *testing.T) {
	d := &model.Desired{Servers: map[model.ServerName]*model.Server{
		"s1": {Meta: model.Meta{Name: "s1", Annotations: map[string]string{model.AnnotationBootFromDisk: "sanboot"}}},
		"s2": {Meta: model.Meta{Name: "s2"}},
	}}
	b := &Boots{Desired: func() *model.Desired { return d }}
	for name, want := range map[model.ServerName]bootsvc.DiskBoot{"s1": bootsvc.DiskSANBoot, "s2": "", "s3": bootsvc.DiskExit} {
		if got := b.DiskBoot(name); got != want {
			t.Errorf("%s boots from disk by %q, want %q", name, got, want)
		}
	}
}
