package bmc

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"ingot/model"
)

// maxBootOptions is how many boot options are read of one machine. A machine may have four of
// each port: IPv4 and IPv6, by PXE and by HTTP.
const maxBootOptions = 256

// SetBootOrder has the firmware of a machine that is Off boot in the order of model.ArrangedBoot.
// It reads what there is first and writes only if the order is another, then reads it back, and
// returns it. What has a settings object that holds a boot order, or refuses one outside of it,
// is written to there: such an order is pending until the machine's next start, and not written
// again meanwhile.
//
// ErrBusy: the machine is not Off. ErrUnsupported: it shows no boot order.
// ErrBootOptionUnknown: want names what it has not, or has twice; nothing was written.
// ErrSettingNotKept: it refused, or shows something else all the same. ErrOtherMachine,
// ErrNoIdentity: it is another machine than the one meant, as of Reset.
func (p *Pool) SetBootOrder(ctx context.Context, t model.SystemTarget, want []model.BootOrder) (model.ShownBootOrder, error) {
	var shown model.ShownBootOrder
	err := p.changeSystem(ctx, t, (*reader).identify, func(ctx context.Context, c *client, s SystemState) (err error) {
		if err = c.isOff(t, s); err == nil {
			shown, err = c.setBootOrder(ctx, t, want)
		}
		return err
	})
	if err != nil {
		return model.ShownBootOrder{}, fmt.Errorf("set boot order: %w", err)
	}
	return model.ShownBootOrder{Now: clipped(shown.Now), Next: clipped(shown.Next)}, nil
}

// isOff returns why the machine, as it was just read, is not one that is Off.
func (c *reader) isOff(t model.SystemTarget, s SystemState) error {
	if s.Power == model.PowerOff {
		return nil
	}
	return &Error{BMC: c.name, Method: http.MethodGet, URI: t.URI, Kind: ErrBusy, Detail: fmt.Sprintf("the machine is %s, not Off", s.Power)}
}

// setBootOrder writes to a system that was just read.
func (c *client) setBootOrder(ctx context.Context, t model.SystemTarget, want []model.BootOrder) (model.ShownBootOrder, error) {
	s := c.state(t.URI)
	order, err := c.arranged(ctx, t, s.boot, want)
	if err != nil {
		return model.ShownBootOrder{}, err
	}
	shown, later, err := c.shownOrder(ctx, t.URI, s.settings)
	if err != nil || slices.Equal(shown.Next, order) {
		return shown, err
	}
	places := []string{t.URI}
	if later {
		places = []string{s.settings, t.URI}
	}
	var tried []string
	for i := 0; i < len(places); i++ {
		shown, err = c.tryOrder(ctx, t, places[i], order)
		if err != nil && !refusedWrite(err) {
			return model.ShownBootOrder{}, err
		}
		if err == nil && slices.Equal(shown.Next, order) {
			return shown, nil
		}
		tried = append(tried, orderOutcome(places[i], shown, err))
		if places[i] == t.URI && !later && refusesHere(err) {
			places = append(places, s.settingsURIs(t.URI)...)
		}
	}
	return model.ShownBootOrder{}, c.orderFails(t, ErrSettingNotKept, strings.Join(tried, "; ")+"; asked for "+strings.Join(order, ", "))
}

func (c *reader) orderFails(t model.SystemTarget, kind error, detail string) error {
	return &Error{BMC: c.name, Method: http.MethodPatch, URI: t.URI, Kind: kind, Detail: printable(detail, maxDetail)}
}

func (c *reader) arranged(ctx context.Context, t model.SystemTarget, now boot, want []model.BootOrder) ([]string, error) {
	if n := len(now.Order); n == 0 || n > maxBootOptions {
		return nil, c.orderFails(t, ErrUnsupported,
			fmt.Sprintf("the machine shows a boot order of %d options, and 1 to %d are understood", n, maxBootOptions))
	}
	options, err := c.bootOptions(ctx, path(now.Options.ID))
	if err != nil && statusOf(err) != http.StatusNotFound { // then the order itself has the references
		return nil, err
	}
	order, err := model.ArrangedBoot(want, now.Order, options)
	if err != nil {
		return nil, c.orderFails(t, ErrBootOptionUnknown, err.Error())
	}
	return order, nil
}

// tryOrder writes a boot order to a system or its settings object, if the machine is still the
// one that is meant, and Off, and returns what is shown afterwards.
func (c *client) tryOrder(ctx context.Context, t model.SystemTarget, at string, order []string) (model.ShownBootOrder, error) {
	s, err := c.identify(ctx, t) // reading the options may have taken minutes
	if err == nil {
		err = c.isOff(t, s)
	}
	if err == nil {
		_, err = c.write(ctx, t.URI, at, map[string]any{"Boot": map[string]any{"BootOrder": order}})
	}
	if err == nil {
		_, err = c.identify(ctx, t)
	}
	if err != nil {
		return model.ShownBootOrder{}, err
	}
	if at == t.URI {
		at = c.state(t.URI).settings
	}
	shown, _, err := c.shownOrder(ctx, t.URI, at)
	return shown, err
}

// shownOrder is the boot order of a system that was just read, with what is pending in its
// settings object, "" = it has none, and whether that holds a boot order.
func (c *reader) shownOrder(ctx context.Context, uri, settings string) (shown model.ShownBootOrder, later bool, err error) {
	now := c.state(uri).boot.Order
	shown = model.ShownBootOrder{Now: now, Next: now}
	if settings == "" {
		return shown, false, nil
	}
	b, err := c.readBoot(ctx, settings)
	switch {
	case err != nil && !refusedWrite(err):
		return shown, false, err
	case len(b.Order) > 0:
		shown.Next = b.Order
	}
	return shown, b.Order != nil, nil
}

// orderOutcome describes the result of one attempt, for a person.
func orderOutcome(at string, shown model.ShownBootOrder, err error) string {
	if e := asError(err); e != nil {
		return fmt.Sprintf("refused at %s with %d %s", at, e.Status, printable(e.Detail, maxDetail/3))
	}
	return fmt.Sprintf("read %s after it was written to %s", printable(strings.Join(clipped(shown.Next), ", "), maxDetail/3), at)
}

// refusesHere reports whether the BMC says that a property cannot be written where it was tried.
func refusesHere(err error) bool {
	e := asError(err)
	return e != nil && (e.Status == http.StatusMethodNotAllowed || e.says("OperationSupportedInFutureStateURI", "PropertyNotWritable"))
}

// bootOption is one entry of the firmware's boot menu (DSP0268, BootOption).
type bootOption struct {
	BootOptionReference, DisplayName, UefiDevicePath string
	BootOptionEnabled                                *bool // nil = the BMC does not say
}

// bootOptions reads the boot options of a collection; "" = there is none.
func (c *reader) bootOptions(ctx context.Context, uri string) (all []model.BootOption, err error) {
	err = c.eachBootOption(ctx, uri, func(_ member, o bootOption) bool {
		if o.BootOptionReference != "" {
			all = append(all, model.BootOption{Reference: o.BootOptionReference, Name: o.DisplayName, DevicePath: o.UefiDevicePath})
		}
		return len(all) < maxBootOptions
	})
	return all, err
}

// eachBootOption calls use with each boot option of a collection, until use returns false.
func (c *reader) eachBootOption(ctx context.Context, uri string, use func(member, bootOption) bool) error {
	if uri == "" {
		return nil
	}
	var unread error
	err := c.eachMember(ctx, uri, 1, func(m member, err error) bool {
		var o bootOption
		if err == nil {
			o, _, err = decode[bootOption](m.raw)
		}
		if unread = err; err != nil {
			return false
		}
		return use(m, o)
	})
	if err == nil {
		err = unread
	}
	return err
}
