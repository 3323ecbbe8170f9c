package machine

import (
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"ingot/cmd/metalprobe/modules"
)

// fakeDrivers are drivers of a kernel that notes what is loaded. One in refused is
// not taken.
func fakeDrivers(refused ...string) (*drivers, func() []string) {
	var mu sync.Mutex
	var order []string
	d := &drivers{
		index: modules.Index{
			Modules: map[string][]string{
				"virtio": {}, "virtio_ring": {"virtio"}, "virtio_net": {"virtio", "virtio_ring", "net_failover"}, "net_failover": {},
				"virtio_scsi": {"scsi_mod", "virtio", "virtio_ring"}, "scsi_mod": {},
			},
			Aliases: []modules.Alias{
				{Pattern: "virtio:d00000001v*", Module: "virtio_net"},
				{Pattern: "virtio:d00000008v*", Module: "virtio_scsi"},
			},
		},
		params: map[string]string{"virtio_net": "napi_tx=0"},
		log:    slog.New(slog.DiscardHandler), loaded: make(map[string]*loading),
	}
	d.insert = func(name, params string) error {
		mu.Lock()
		defer mu.Unlock()
		if slices.Contains(refused, name) {
			return errors.New("exec format error")
		}
		order = append(order, strings.TrimSpace(name+" "+params))
		return nil
	}
	return d, func() []string { return order }
}

func TestDriversAreLoadedAfterWhatTheyNeed(t *testing.T) {
	d, order := fakeDrivers()
	d.want("virtio:d00000001v00001AF4")
	d.want("virtio:d00000008v00001AF4")
	d.want("virtio:d00000001v00001AF4") // a second card
	d.want("pci:of-no-use")
	want := []string{"virtio", "virtio_ring", "net_failover", "virtio_net napi_tx=0", "scsi_mod scan=sync", "virtio_scsi"}
	if diff := cmp.Diff(want, order()); diff != "" {
		t.Errorf("loaded (-want +got):\n%s", diff)
	}
}

func TestParametersOfModules(t *testing.T) {
	d := &drivers{params: map[string]string{"libata": "force=1:noncq", "nvme": "poll_queues=1"}}
	for name, want := range map[string]string{
		"libata": "ignore_hpa=1 force=1:noncq", "scsi_mod": "scan=sync", "nvme": "poll_queues=1", "ahci": "",
	} {
		if got := d.parameters(name); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

func TestADriverThatLacksWhatItNeedsIsNotLoaded(t *testing.T) {
	d, order := fakeDrivers("virtio_ring")
	err := d.load("virtio_net")
	if err == nil || !strings.Contains(err.Error(), "virtio_ring, which virtio_net needs: exec format error") {
		t.Errorf("got %v", err)
	}
	if diff := cmp.Diff([]string{"virtio"}, order()); diff != "" {
		t.Errorf("loaded (-want +got):\n%s", diff)
	}
}

func TestNewsOfDevices(t *testing.T) {
	for title, tc := range map[string]struct {
		message  string
		modalias string
		ok       bool
	}{
		"a device that needs a driver": {
			message:  "add@/devices/x\x00ACTION=add\x00SUBSYSTEM=scsi\x00MODALIAS=scsi:t-0x00\x00SEQNUM=1\x00",
			modalias: "scsi:t-0x00", ok: true,
		},
		"a device that needs none": {message: "add@/devices/x\x00ACTION=add\x00SUBSYSTEM=net\x00", modalias: "", ok: true},
		"a device that has gone": {
			message: "remove@/devices/x\x00ACTION=remove\x00MODALIAS=scsi:t-0x00\x00", modalias: "scsi:t-0x00",
			ok: false,
		},
		"another daemon's message": {message: "libudev\x00\xfe\xed", modalias: "", ok: false},
		"nothing":                  {message: "", modalias: "", ok: false},
	} {
		if modalias, ok := added(tc.message); modalias != tc.modalias || ok != tc.ok {
			t.Errorf("%s: %q, %v", title, modalias, ok)
		}
	}
}

func TestHardwareHasSettledWhenNothingIsHeardOfIt(t *testing.T) {
	for title, tc := range map[string]struct {
		busy, news, want time.Duration
	}{
		"a quiet machine":                   {0, 0, quiet},
		"a disk that comes late":            {0, 250 * time.Millisecond, 250*time.Millisecond + quiet},
		"a driver that takes long":          {10 * time.Second, 0, 10 * time.Second},
		"a driver that never comes to ends": {time.Hour, 0, settleFor},
	} {
		t.Run(title, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d, _ := fakeDrivers()
				began := time.Now()
				d.last.Store(began.UnixNano())
				if tc.busy > 0 {
					d.busy.Add(1)
					time.AfterFunc(tc.busy, func() { d.busy.Add(-1) })
				}
				time.AfterFunc(tc.news, func() { d.last.Store(time.Now().UnixNano()) })
				d.settle(t.Context())
				if took := time.Since(began); took < tc.want || took > tc.want+quiet/3 {
					t.Errorf("settled after %v, want %v", took, tc.want)
				}
			})
		})
	}
}
