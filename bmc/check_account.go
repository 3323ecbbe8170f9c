package bmc

import (
	"context"
	"slices"
	"strings"

	"github.com/stmcginnis/gofish/schemas"

	"ingot/model"
)

// accountsURI and rolesURI are where accounts and their roles are (DSP0266 §13.4).
const (
	accountsURI = "/redfish/v1/AccountService/Accounts"
	rolesURI    = "/redfish/v1/AccountService/Roles"
)

// account checks by its role whether the account may change a machine, as far as the BMC shows that.
func (k *checkup) account(ctx context.Context) bool {
	item := CheckItem{Check: "account", Result: CheckNone, Detail: "not checked, because the BMC does not show its role; --write tries it"}
	roles := k.roles(ctx)
	for _, role := range roles {
		item.Result, item.Detail = CheckFails, "its role is "+joinOr(clipped(roles), "")
		if k.mayConfigure(ctx, role) {
			item.Result = CheckWorks
			break
		}
	}
	if item.Result == CheckFails {
		item.Needed = true
		item.because(model.ReasonReadOnlyAccount)
	}
	k.add(item)
	return true
}

// roles are the roles of the session, or else of the account, nil if the BMC shows neither.
func (k *checkup) roles(ctx context.Context) []string {
	if a := k.client.auth.Load(); a != nil && a.session != "" {
		if answer, err := k.client.get(ctx, a.session); err == nil {
			session, _, _ := decode[struct{ Roles []string }](answer.body)
			if len(session.Roles) > 0 {
				return session.Roles
			}
		}
	}
	var roles []string
	_ = k.client.eachMember(ctx, accountsURI, 1, func(m member, _ error) bool { // what cannot be read is not checked
		account, _, _ := decode[schemas.ManagerAccount](m.raw)
		if account.UserName == k.opts.Target.Username && account.RoleID != "" {
			roles = []string{account.RoleID}
		}
		return roles == nil
	})
	return roles
}

// mayConfigure reports whether a role may change systems (DSP0266 §13.2). One that cannot be read may.
func (k *checkup) mayConfigure(ctx context.Context, role string) bool {
	switch role {
	case "Administrator", "Operator":
		return true
	case "ReadOnly":
		return false
	}
	if strings.ContainsAny(role, "/?#") {
		return true
	}
	answer, err := k.client.get(ctx, under(rolesURI, role))
	if err != nil {
		return true
	}
	r, _, err := decode[struct{ AssignedPrivileges []string }](answer.body)
	return err != nil || len(r.AssignedPrivileges) == 0 || slices.Contains(r.AssignedPrivileges, "ConfigureComponents")
}
