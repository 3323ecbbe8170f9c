package bmc

import (
	"context"
	"fmt"
)

// services checks what the BMC has beside its systems. Servers are run without any of it.
func (k *checkup) services(ctx context.Context) {
	c := k.client
	f := k.report.BMC
	k.add(CheckItem{Check: "manager", Result: resultOf(f.FirmwareVersion != ""), Detail: joinOr(filled(f.Manufacturer, f.Model, f.FirmwareVersion), "the BMC says nothing of itself")})
	a, err := c.get(ctx, "/redfish/v1/")
	var root struct{ EventService, AccountService link }
	if err == nil {
		root, _, err = decode[struct{ EventService, AccountService link }](a.body)
	}
	if err != nil {
		k.add(CheckItem{Check: "services", Result: CheckFails, Detail: err.Error()})
		return
	}
	k.console(ctx)
	k.part(ctx, "events", path(root.EventService.ID), func(s *extra) string {
		if s.ServiceEnabled != nil && !*s.ServiceEnabled {
			return "switched off; not needed, for power is polled"
		}
		if s.ServerSentEventURI != "" {
			return "subscriptions and server-sent events; not needed, for power is polled"
		}
		return "subscriptions; not needed, for power is polled"
	})
	k.part(ctx, "accounts", path(root.AccountService.ID), func(s *extra) string {
		if s.AccountLockoutThreshold > 0 {
			return fmt.Sprintf("an account is locked after %d wrong passwords", s.AccountLockoutThreshold)
		}
		return "no account is locked for wrong passwords"
	})
}

// extra is what is read of the services.
type extra struct {
	ServiceEnabled          *bool
	ServerSentEventURI      string `json:"ServerSentEventUri"`
	AccountLockoutThreshold int
}

// part reads one service and notes what it says.
func (k *checkup) part(ctx context.Context, what, uri string, say func(*extra) string) {
	if uri == "" {
		k.add(CheckItem{Check: what, Result: CheckNone})
		return
	}
	a, err := k.client.get(ctx, uri)
	var s extra
	if err == nil {
		s, _, err = decode[extra](a.body)
	}
	if err != nil {
		k.add(CheckItem{Check: what, Result: CheckFails, Detail: err.Error()})
		return
	}
	k.add(CheckItem{Check: what, Result: CheckWorks, Detail: say(&s)})
}

// console notes by what a person sees the console of a machine through the BMC.
func (k *checkup) console(ctx context.Context) {
	c := k.client
	svc, err := c.root(ctx)
	if err != nil {
		k.add(CheckItem{Check: "console", Result: CheckFails, Detail: err.Error()})
		return
	}
	m, _, err := c.manager(ctx, svc, nil)
	if err != nil || m == nil {
		k.add(CheckItem{Check: "console", Result: CheckNone, Detail: "the BMC shows no manager"})
		return
	}
	var has []string
	for _, t := range m.GraphicalConsole.ConnectTypesSupported {
		has = append(has, "graphical by "+clip(string(t)))
	}
	for _, t := range m.SerialConsole.ConnectTypesSupported { //nolint:staticcheck // older BMCs have it here alone
		has = append(has, "serial by "+clip(string(t)))
	}
	k.add(CheckItem{Check: "console", Result: resultOf(len(has) > 0), Detail: joinOr(has, "the BMC says of none how to reach it")})
}

// resultOf is what to call a thing that is not needed.
func resultOf(has bool) CheckResult {
	if has {
		return CheckWorks
	}
	return CheckNone
}

// filled are the texts that are not empty.
func filled(all ...string) (some []string) {
	for _, s := range all {
		if s != "" {
			some = append(some, s)
		}
	}
	return some
}
