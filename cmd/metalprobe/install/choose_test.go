package install

import (
	"errors"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"ingot/cmd/metalprobe/inventory"
	"ingot/model"
)

func diskCalled(name, serial string) inventory.Disk {
	return inventory.Disk{ProbeDisk: model.ProbeDisk{Name: name, Path: "/dev/" + name, Serial: serial, SizeBytes: 1 << 30, LogicalBlockSize: 512}}
}

func TestADiskThatIsNamedIsWaitedFor(t *testing.T) {
	early, late, card := diskCalled("sda", "S-1"), diskCalled("sdb", "S-2"), diskCalled("sdc", "S-3")
	card.Removable = true
	for title, test := range map[string]struct {
		hint     string
		previous *model.RootDisk
		first    []inventory.Disk // what there is before late is found
		found    time.Duration    // when late is found
		chosen   string
		reason   model.Reason
		took     time.Duration
	}{
		"by a hint":                                {hint: "serial=S-2", first: []inventory.Disk{early}, found: 12 * time.Second, chosen: "sdb", took: 12 * time.Second},
		"for 30 s":                                 {hint: "serial=S-2", first: []inventory.Disk{early}, found: time.Minute, reason: model.ReasonRootDeviceMissing, took: 30 * time.Second},
		"for it has the claim's last install":      {previous: &model.RootDisk{Serial: "S-2"}, first: []inventory.Disk{early}, found: 3 * time.Second, chosen: "sdb", took: 3 * time.Second},
		"and one that is gone for 30 s":            {previous: &model.RootDisk{Serial: "S-2"}, first: []inventory.Disk{early}, found: time.Minute, reason: model.ReasonRootDeviceGone, took: 30 * time.Second},
		"and any, where there is none yet":         {found: 2 * time.Second, chosen: "sdb", took: 2 * time.Second},
		"and not where none is named":              {first: []inventory.Disk{card}, found: 2 * time.Second, reason: model.ReasonRootDeviceMissing},
		"and not where the one that is named fits": {hint: "serial=S-1", first: []inventory.Disk{early}, found: 2 * time.Second, chosen: "sda"},
	} {
		t.Run(title, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				i := Installer{
					Disks: func() []inventory.Disk {
						if time.Since(began) < test.found {
							return test.first
						}
						return slices.Concat(test.first, []inventory.Disk{late})
					},
					Use:  func() map[string]string { return nil },
					Look: func(string) (Reader, error) { return nil, unix.ENOENT },
					Log:  slog.New(slog.DiscardHandler),
				}
				var hints []string
				if test.hint != "" {
					hints = []string{test.hint}
				}
				need, unread := model.NeedOf(model.DiskImage{Bytes: 1 << 20, SectorSize: 512}, hints, test.previous)
				if unread != nil {
					t.Fatal(unread)
				}
				chosen, problem := (&task{Installer: i}).await(t.Context(), need)
				reason := model.Reason("")
				if problem != nil {
					reason = problem.Reason
				}
				if took := time.Since(began); chosen.Name != test.chosen || reason != test.reason || took != test.took {
					t.Errorf("%q %q after %v, want %q %q after %v", chosen.Name, reason, took, test.chosen, test.reason, test.took)
				}
			})
		})
	}
}

func TestWhatRestsOnADiskIsTakenDownFirst(t *testing.T) {
	volume, array, cache := inventory.Node{Name: "dm-0", Mapping: "vg-root"}, inventory.Node{Name: "md127", Array: true}, inventory.Node{Name: "bcache0", Cached: true}
	partition := inventory.Node{Name: "sda1"}
	for title, test := range map[string]struct {
		above []inventory.Node
		stuck string        // what is not taken down
		lets  time.Duration // how long the disk is busy after the rest is
		err   error         // what opening answers else than nil
		steps []string
		says  string // "" = it is opened
		took  time.Duration
	}{
		"a partition alone is none": {above: []inventory.Node{partition}, steps: []string{"open"}},
		"in the order of what rests on what": {
			above: []inventory.Node{volume, array, partition}, steps: []string{"dm-0", "md127", "open"},
		},
		"and what lets its disk go late is waited for": {
			above: []inventory.Node{cache}, lets: 1500 * time.Millisecond, steps: []string{"bcache0", "open", "open", "open"}, took: 2 * time.Second,
		},
		"and what stays is named, and nothing that went": {
			above: []inventory.Node{volume, array, partition}, stuck: "md127",
			steps: []string{"dm-0", "md127", "open", "open", "open", "open", "open", "open"}, took: letsGo,
			says: "DiskBusy: disk sda (serial number S-1) cannot be opened for the install: device or resource busy; on it rest md127",
		},
		"and what holds a disk otherwise is not waited for": {
			err: unix.EBUSY, steps: []string{"open"},
			says: "DiskBusy: disk sda (serial number S-1) cannot be opened for the install: device or resource busy",
		},
		"nor one that cannot be opened": {
			above: []inventory.Node{array}, err: unix.EIO, steps: []string{"md127", "open"},
			says: "DiskBusy: disk sda (serial number S-1) cannot be opened for the install: input/output error",
		},
	} {
		t.Run(title, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began, disk := time.Now(), diskCalled("sda", "S-1")
				disk.Above = test.above
				var steps []string
				i := Installer{
					Disks: func() []inventory.Disk {
						return []inventory.Disk{disk, {ProbeDisk: model.ProbeDisk{Path: "/dev/sdz"}, Above: []inventory.Node{volume}}}
					},
					Use:  func() map[string]string { return nil },
					Look: func(string) (Reader, error) { return nil, unix.ENOENT },
					Takedown: func(n inventory.Node) error {
						steps = append(steps, n.Name)
						if n.Name == test.stuck {
							return unix.EBUSY
						}
						disk.Above = slices.DeleteFunc(slices.Clone(disk.Above), func(other inventory.Node) bool { return other == n })
						return nil
					},
					Open: func(string) (Disk, error) {
						steps = append(steps, "open")
						if test.err != nil {
							return nil, test.err
						}
						if test.stuck != "" || time.Since(began) < test.lets {
							return nil, unix.EBUSY
						}
						return newMemoryDisk(0), nil
					},
					Log: slog.New(slog.DiscardHandler),
				}
				r := newReporter(nil, model.ProbeInstall{}, i.Log)
				tk := &task{Installer: i, doc: model.InstallDocument{Image: model.DiskImage{Bytes: 1 << 20, SectorSize: 512}}, report: r}
				_, err := tk.choose(t.Context())
				says := ""
				if f, ok := errors.AsType[*Failure](err); ok {
					says = string(f.Reason) + ": " + f.Message
				}
				if says != test.says {
					t.Errorf("got %s\nwant %s", says, test.says)
				}
				if diff := cmp.Diff(test.steps, steps); diff != "" {
					t.Errorf("steps (-want +got):\n%s", diff)
				}
				if took := time.Since(began); took != test.took {
					t.Errorf("took %v, want %v", took, test.took)
				}
			})
		})
	}
}
