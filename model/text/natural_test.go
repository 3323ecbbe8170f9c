package text

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestNamesAreInTheOrderOfTheirNumbers(t *testing.T) {
	want := []string{"", "1", "2", "10", "a", "a1b2", "a1b10", "a02", "a2", "a10", "a-", "a-1", "ab"}
	got := slices.Clone(want)
	slices.Reverse(got)
	slices.SortFunc(got, CompareNatural)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}
