package daemon

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ingot/bootsvc/imagecache"
	"ingot/model"
	"ingot/reconcile/report"
)

func TestAnImageInTheCacheSaysWhatItIsOf(t *testing.T) {
	armed := time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)
	o := model.NewObserved()
	for i, ref := range []string{"os:1", "os:2"} { // both have the same kernel
		o.Servers[model.ServerName(ref)] = &model.ServerRecord{
			Boot: model.RecordBoot{Ticket: &model.Ticket{ArmedAt: armed.Add(time.Duration(i) * time.Hour), Image: model.PinnedImage{
				Ref: ref, Kernel: &model.Layer{Digest: "sha256:a"}, Initrd: &model.Layer{Digest: "sha256:b" + ref},
			}}},
		}
	}
	o.Servers["s3"] = &model.ServerRecord{}
	contents := []imagecache.Content{
		{Digest: "sha256:c", Size: 9, Fetched: 3, From: "registry.example.com/tools"},
		{Digest: "sha256:a", Size: 5, Fetched: 5, Used: armed},
		{Digest: "sha256:bos:1", Size: 7, Fetched: 7},
	}
	want := []report.ImageRow{
		{Row: report.Row{Name: "sha256:a", State: report.ImageComplete}, Image: "os:2", Part: "kernel", Size: 5, Fetched: 5, Used: armed, Pinned: true},
		{Row: report.Row{Name: "sha256:bos:1", State: report.ImageComplete}, Image: "os:1", Part: "initrd", Size: 7, Fetched: 7},
		{Row: report.Row{Name: "sha256:c", State: report.ImageFetching}, Image: "registry.example.com/tools", Size: 9, Fetched: 3},
	}
	got := imageRows(contents, partsOf(o), func(digest string) bool { return digest == "sha256:a" })
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("images (-want +got):\n%s", diff)
	}
}

func TestRowsAreReadAgainOnlyWhenTheyAreOld(t *testing.T) {
	var k kept[int]
	reads := 0
	read := func() []int { reads++; return nil } // no rows are rows, too
	now := time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)
	for _, after := range []time.Duration{0, listsKept - 1, listsKept, listsKept + 1} {
		k.get(now.Add(after), read)
	}
	if reads != 2 {
		t.Errorf("they were read %d times, want 2", reads)
	}
}
