package adapter

import (
	"errors"
	"testing"

	"ingot/bmc"
	"ingot/model"
	"ingot/model/must"
)

// TestReasonOfBMC joins the reasons of a BMC's errors, which `ingot bmc check` shows, with those of conditions.
func TestReasonOfBMC(t *testing.T) {
	pool := bmc.NewPool(bmc.Options{}) // no address is allowed
	_, err := BMCs{pool}.Discover(t.Context(), model.BMCTarget{Name: "bmc-1", Scheme: "https", Address: "127.0.0.1:443"})
	must.Do(t, pool.Close(t.Context()))
	reasoner, ok := errors.AsType[interface {
		error
		Reason() model.Reason
	}](err)
	if !ok || reasoner.Reason() != bmc.ReasonOf(err) || reasoner.Reason() != model.ReasonAddressNotAllowed {
		t.Errorf("got %v", err)
	}
}
