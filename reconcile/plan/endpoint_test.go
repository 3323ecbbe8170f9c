package plan

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ingot/model"
)

func TestOfTwoDevicesAtOneAddressTheLastToGetItIsThere(t *testing.T) {
	at := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	facts := func(ip string, since time.Time) *model.EndpointFacts {
		return &model.EndpointFacts{IP: ip, Since: since}
	}
	all := map[string]*model.EndpointFacts{
		"02:00:00:00:00:01": facts("10.0.0.1", at), "02:00:00:00:00:02": facts("10.0.0.1", at.Add(time.Minute)),
		"02:00:00:00:00:03": facts("10.0.0.1", at), "02:00:00:00:00:04": facts("", at),
		"02:00:00:00:00:05": facts("10.0.0.2", at), "02:00:00:00:00:06": facts("10.0.0.2", at),
	}
	want := map[string]string{"10.0.0.1": "02:00:00:00:00:02", "10.0.0.2": "02:00:00:00:00:05"}
	for range 20 { // in whatever order they come
		if diff := cmp.Diff(want, holdersOf(all)); diff != "" {
			t.Fatalf("-want +got:\n%s", diff)
		}
	}
}
