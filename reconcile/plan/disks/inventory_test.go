package disks

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"ingot/model"
)

// A summary is taken where nothing is known, and never in the place of more.
func TestASummaryReplacesNothingButASummary(t *testing.T) {
	cpus := func(ids ...string) (all []model.Processor) {
		for _, id := range ids {
			all = append(all, model.Processor{ID: id})
		}
		return all
	}
	disks := func(names ...string) []model.Storage {
		s := model.Storage{Name: "S"}
		for _, name := range names {
			s.Drives = append(s.Drives, model.Drive{Name: name, SerialNumber: name})
		}
		return []model.Storage{s}
	}
	both := []string{model.PartProcessors, model.PartDrives}
	whole := model.Inventory{Processors: cpus("CPU.Socket.1"), Storages: disks("a", "b")}
	summary := model.Inventory{Processors: cpus("1", "2"), Storages: disks("c"), Summarized: both}
	tests := map[string]struct{ known, read, want model.Inventory }{
		"of what was read one by one":       {known: whole, read: summary, want: whole},
		"of what was a summary itself":      {known: model.Inventory{Processors: cpus("1"), Storages: disks("d"), Summarized: both}, read: summary, want: summary},
		"of nothing":                        {read: summary, want: summary},
		"of a storage without drives":       {known: model.Inventory{Storages: disks()}, read: summary, want: summary},
		"and is replaced by what is read":   {known: summary, read: whole, want: whole},
		"and is kept while nothing is read": {known: summary, read: model.Inventory{}, want: summary},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := Merged(&model.ServerFacts{Inventory: &tt.known}, &tt.read)
			if diff := cmp.Diff(&tt.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
