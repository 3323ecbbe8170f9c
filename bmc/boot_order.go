package bmc

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"ingot/model"
)

// maxBootOptions is how many boot options are read of one machine.
const maxBootOptions = 64

// SetBootOrder has the firmware of a machine that is Off boot in the order of model.ArrangedBoot.
// It reads what there is first and writes only if the order is another, then reads it back,
// and returns it.
//
// ErrBusy: the machine is not Off. ErrUnsupported: it shows no boot order.
// ErrBootOptionUnknown: want names what it has not, or has twice; nothing was written.
// ErrSettingNotKept: it refused, or shows something else all the same. ErrOtherMachine,
// ErrNoIdentity: it is another machine than the one meant, as of Reset.
func (p *Pool) SetBootOrder(ctx context.Context, t model.SystemTarget, want []model.BootOrder) ([]string, error) {
	var order []string
	err := p.changeSystem(ctx, t, func(ctx context.Context, c *client, s SystemState) (err error) {
		if s.Power != model.PowerOff {
			return &Error{BMC: c.name, Method: http.MethodGet, URI: t.URI, Kind: ErrBusy, Detail: fmt.Sprintf("the machine is %s, not Off", s.Power)}
		}
		order, err = c.setBootOrder(ctx, t, want)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("set boot order: %w", err)
	}
	return clipped(order), nil
}

// setBootOrder writes to a system that was just read.
func (c *client) setBootOrder(ctx context.Context, t model.SystemTarget, want []model.BootOrder) ([]string, error) {
	fails := func(kind error, detail string) error {
		return &Error{BMC: c.name, Method: http.MethodPatch, URI: t.URI, Kind: kind, Detail: printable(detail, maxDetail)}
	}
	now := c.state(t.URI).boot
	if len(now.Order) == 0 || len(now.Order) > maxBootOptions {
		return nil, fails(ErrUnsupported, fmt.Sprintf("the machine shows a boot order of %d options, and 1 to %d are understood", len(now.Order), maxBootOptions))
	}
	options, err := c.bootOptions(ctx, path(now.Options.ID))
	if err != nil {
		return nil, err
	}
	order, err := model.ArrangedBoot(want, now.Order, options)
	if err != nil {
		return nil, fails(ErrBootOptionUnknown, err.Error())
	}
	if slices.Equal(order, now.Order) {
		return order, nil
	}
	err = c.write(ctx, t.URI, t.URI, map[string]any{"Boot": map[string]any{"BootOrder": order}})
	switch {
	case err != nil && !refusedWrite(err):
		return nil, err
	case err != nil:
		e := asError(err)
		return nil, fails(ErrSettingNotKept, fmt.Sprintf("asked for %s, refused with %d %s", strings.Join(order, ", "), e.Status, e.Detail))
	}
	if _, err := c.identify(ctx, t); err != nil {
		return nil, err
	}
	if read := c.state(t.URI).boot.Order; !slices.Equal(read, order) {
		return nil, fails(ErrSettingNotKept, fmt.Sprintf("asked for %s, read %s", strings.Join(order, ", "), strings.Join(clipped(read), ", ")))
	}
	return order, nil
}

// bootOption is one entry of the firmware's boot menu (DSP0268, BootOption).
type bootOption struct {
	BootOptionReference, DisplayName, UefiDevicePath string
}

// bootOptions reads the boot options of a collection; "" = there is none.
func (c *client) bootOptions(ctx context.Context, uri string) (all []model.BootOption, err error) {
	if uri == "" {
		return nil, nil
	}
	var unread error
	err = c.eachMember(ctx, uri, 1, func(m member, err error) bool {
		var o bootOption
		if err == nil {
			o, _, err = decode[bootOption](m.raw)
		}
		if unread = err; err != nil {
			return false
		}
		if o.BootOptionReference != "" {
			all = append(all, model.BootOption{Reference: o.BootOptionReference, Name: o.DisplayName, DevicePath: o.UefiDevicePath})
		}
		return len(all) < maxBootOptions
	})
	if err == nil {
		err = unread
	}
	return all, err
}
