package wipe

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"ingot/model"
)

// medium is what a fake disk stores, and how its firmware clears it.
type medium struct {
	*content
	lies  bool          // it says that it is cleared, and does nothing
	takes time.Duration // for a clearing in the background

	failing bool // the next one in the background fails
	began   time.Time
	how     func([]byte)
}

// zero and noise are what is left on a medium.
func zero(b []byte) { clear(b) }

func noise(b []byte) {
	r := rand.NewChaCha8([32]byte{1})
	_, _ = r.Read(b)
}

func (m *medium) fill(part float64, how func([]byte)) {
	if m.lies {
		return
	}
	m.change(0, int64(part*diskSize), how)
}

func (m *medium) start(how func([]byte)) { m.began, m.how = time.Now(), how }

// state is how far that is, in 65536ths.
func (m *medium) state() (running, failed bool, progress uint16) {
	if m.began.IsZero() {
		return false, false, 0
	}
	if done := time.Since(m.began); done < m.takes {
		return true, false, uint16(done * 65536 / m.takes)
	}
	if m.failing {
		return false, true, 0
	}
	if m.how != nil {
		m.fill(1, m.how)
		m.how = nil
	}
	return false, false, 0xffff
}

// nvmeDisk is an NVMe disk's controller.
type nvmeDisk struct {
	medium
	controller []byte
	namespaces int
	others     []byte // controllers of each namespace that this one does not have
	ignores    bool   // it takes a sanitize, and does not even begin
	restricted bool   // its sanitize that has failed is only ended by another
	formats    error  // what a format fails with
	sanitizes  error  // what starting a sanitize fails with
	action     uint32
	asked      []string // to clear
}

func (d *nvmeDisk) send(c nvmeCommand) error {
	switch c.opcode {
	case nvmeIdentify:
		switch c.dword10 {
		case identifyController:
			copy(c.data, d.controller)
		case activeNamespaces, allocNamespaces:
			n := d.namespaces
			if c.dword10 == allocNamespaces {
				n += len(d.others)
			}
			for i := range n {
				binary.LittleEndian.PutUint32(c.data[4*i:], uint32(i+1))
			}
		case attachedTo:
			c.data[0] = d.others[int(c.namespace)-1-d.namespaces]
		}
		return nil
	case nvmeGetLogPage:
		running, failed, progress := d.state()
		state := uint16(0)
		switch {
		case running:
			state = 2
		case failed:
			state = 3
		case !d.began.IsZero():
			state = 1
		}
		binary.LittleEndian.PutUint16(c.data, progress)
		binary.LittleEndian.PutUint16(c.data[2:], state)
		binary.LittleEndian.PutUint32(c.data[4:], d.action)
		for _, at := range []int{8, 12, 16} {
			binary.LittleEndian.PutUint32(c.data[at:], uint32(d.takes/time.Second))
		}
		return nil
	case nvmeSanitize:
		d.action = c.dword10 & 7
		if d.restricted {
			if d.action == exitFailureMode {
				return nvmeStatus(0x1c)
			}
			d.restricted, d.failing = false, false
		}
		if d.action == exitFailureMode {
			d.asked = append(d.asked, "exit failure mode")
			d.began, d.failing = time.Time{}, false
			return nil
		}
		how := map[uint32]func([]byte){sanitizeByBlock: zero, sanitizeByKey: noise, sanitizeOverwrite: zero}[d.action]
		names := map[uint32]string{sanitizeByBlock: "block", sanitizeByKey: "key", sanitizeOverwrite: "overwrite"}
		d.asked = append(d.asked, "sanitize "+names[d.action])
		if d.sanitizes == nil && !d.ignores {
			d.start(how)
		}
		return d.sanitizes
	case nvmeFormatNVM:
		d.asked = append(d.asked, "format")
		if d.formats == nil {
			d.fill(1, zero)
		}
		return d.formats
	}
	return nvmeStatus(1)
}

// secureWipe wipes one disk in virtual time and returns its result and what was
// told of it.
func secureWipe(t *testing.T, mode string, f fake, disk *content) (model.DiskWipe, []model.DiskProgress) {
	t.Helper()
	var mu sync.Mutex
	var told []model.DiskProgress
	w := Wiper{
		Open: func(p string) (Device, error) { return open(disk, f), nil },
		Watch: func(disks []model.DiskProgress, _ bool) {
			mu.Lock()
			defer mu.Unlock()
			told = append(told, disks[0])
		},
		Log: slog.New(slog.DiscardHandler),
	}
	got := w.Wipe(t.Context(), mode, []Choice{choice("sda")})[0]
	return got, told
}

func capable(oacs, fna byte, sanicap byte) []byte {
	b := make([]byte, identifySize)
	b[256], b[524], b[328] = oacs, fna, sanicap
	return b
}

func TestNVMeDisks(t *testing.T) {
	const format, byKey, block, key, write = 2, 4, 2, 1, 4
	refused := nvmeStatus(2)
	for title, tc := range map[string]struct {
		mode   string
		disk   nvmeDisk
		asked  []string
		method string
	}{
		"secure: sanitize by block": {
			disk:  nvmeDisk{controller: capable(format, 0, block|key), namespaces: 1, medium: medium{takes: time.Hour}},
			asked: []string{"sanitize block"}, method: "nvme-sanitize-block",
		},
		"secure: sanitize by key leaves noise, which is not what was there": {
			disk:  nvmeDisk{controller: capable(0, 0, key), namespaces: 1, medium: medium{takes: time.Second}},
			asked: []string{"sanitize key"}, method: "nvme-sanitize-crypto",
		},
		"secure: a sanitize that is refused gives way to the next": {
			disk:  nvmeDisk{controller: capable(format, 0, block|write), namespaces: 1, sanitizes: refused},
			asked: []string{"sanitize block", "sanitize overwrite", "format"}, method: "nvme-format",
		},
		"secure: a sanitize that fails is got out of": {
			disk:  nvmeDisk{controller: capable(format, 0, block), namespaces: 1, medium: medium{takes: time.Minute, failing: true}},
			asked: []string{"sanitize block", "exit failure mode", "format"}, method: "nvme-format",
		},
		"secure: a disk that lies is overwritten": {
			disk:  nvmeDisk{controller: capable(format, 0, block), namespaces: 1, medium: medium{lies: true}},
			asked: []string{"sanitize block", "format"}, method: "overwrite",
		},
		"secure: a sanitize that is not heard of again has not been": {
			disk:  nvmeDisk{controller: capable(format, 0, block), namespaces: 1, ignores: true},
			asked: []string{"sanitize block", "exit failure mode", "format"}, method: "nvme-format",
		},
		"secure: a namespace that only another machine has is left to it": {
			disk:  nvmeDisk{controller: capable(format|8, 0, block), namespaces: 1, others: []byte{1}},
			asked: []string{"format"}, method: "nvme-format",
		},
		"secure: of several namespaces only its own is formatted": {
			disk:  nvmeDisk{controller: capable(format, 0, block|key|write), namespaces: 2},
			asked: []string{"format"}, method: "nvme-format",
		},
		"secure: of several namespaces that a format reaches none is formatted": {
			disk:   nvmeDisk{controller: capable(format, 0b10, block), namespaces: 2},
			method: "overwrite",
		},
		"quick: a format by key, and the edges": {
			mode:  model.CleanupQuick,
			disk:  nvmeDisk{controller: capable(format, byKey, block), namespaces: 1},
			asked: []string{"format"}, method: "nvme-format-crypto+overwrite-edges",
		},
		"quick: the edges when the format is refused": {
			mode:  model.CleanupQuick,
			disk:  nvmeDisk{controller: capable(format, byKey, 0), namespaces: 1, formats: refused},
			asked: []string{"format"}, method: "overwrite-edges",
		},
	} {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			disk := new(content)
			synctest.Test(t, func(t *testing.T) {
				d := tc.disk
				d.content = disk
				mode := cmp.Or(tc.mode, model.CleanupSecure)
				got, _ := secureWipe(t, mode, fake{own: &nvme{namespace: 1, send: d.send}}, disk)
				if got.Result != model.WipeDone || got.Method != tc.method || got.Error != "" {
					t.Errorf("got %+v, want wiped by %s", got, tc.method)
				}
				if diff := gocmp.Diff(tc.asked, d.asked); diff != "" {
					t.Errorf("asked (-want +got):\n%s", diff)
				}
			})
			if z := zeroed(t, disk); !strings.HasPrefix(z, "0-") || !strings.HasSuffix(z, "80") {
				t.Errorf("MiB that are zero: %q, want the edges at least", z)
			}
			if tc.method != "overwrite-edges" && disk.holdsSecrets() {
				t.Error("the disk still holds data")
			}
		})
	}
}

func TestANamespaceThatNobodyHasIsNotForgotten(t *testing.T) {
	for _, mode := range []string{model.CleanupQuick, model.CleanupSecure} {
		disk := new(content)
		d := nvmeDisk{controller: capable(2|8, 0, 2), namespaces: 1, others: []byte{1, 0}, medium: medium{content: disk}}
		got, _ := secureWipe(t, mode, fake{own: &nvme{namespace: 1, send: d.send}}, disk)
		if got.Result != model.WipeFailed || !strings.Contains(got.Error, "namespace 3 of the disk is attached to no controller") {
			t.Errorf("%s: got %+v, want failed for what is on namespace 3", mode, got)
		}
	}
}

// A disk that is all but empty shows nothing but zeros wherever it is looked at.
func TestADiskThatLiesIsFoundOutThoughItIsAlmostEmpty(t *testing.T) {
	for title, tc := range map[string]struct {
		disk nvmeDisk
		how  string
	}{
		"by a format":   {nvmeDisk{controller: capable(2, 0, 0)}, "format"},
		"by a sanitize": {nvmeDisk{controller: capable(0, 0, 2)}, "sanitize block"},
	} {
		t.Run(title, func(t *testing.T) {
			disk := new(content)
			const secret = 30*mib + 5000
			disk.change(0, diskSize, zero)
			disk.change(secret, 7, func(b []byte) { copy(b, "secret!") })
			for _, a := range sampleAreas(diskSize) {
				if a.offset <= secret && secret < a.offset+a.length {
					t.Fatalf("the secret is where it is looked for, at %d", a.offset)
				}
			}
			synctest.Test(t, func(t *testing.T) {
				d := tc.disk
				d.namespaces, d.medium = 1, medium{content: disk, lies: true}
				got, _ := secureWipe(t, model.CleanupSecure, fake{own: &nvme{namespace: 1, send: d.send}}, disk)
				if got.Method != "overwrite" || got.Result != model.WipeDone || !slices.Equal(d.asked, []string{tc.how}) {
					t.Errorf("got %+v after %q, want overwritten", got, d.asked)
				}
			})
			if disk.holdsSecrets() {
				t.Error("the disk still holds data")
			}
		})
	}
}

func TestProgressGoesForwards(t *testing.T) {
	var told []int
	tracker := &diskTracker{log: slog.New(slog.DiscardHandler)}
	tracker.wipe = newWipeTracker([]Choice{{}}, func(disks []model.DiskProgress, _ bool) { told = append(told, disks[0].Percent) })
	for _, percent := range []int{-1, 0, 30, -1, 20, 30, 120} {
		tracker.report(NVMeSanitizeBlock, percent)
	}
	if diff := gocmp.Diff([]int{-1, 0, 30, 100}, told); diff != "" {
		t.Errorf("percent (-want +got):\n%s", diff)
	}
}

func TestASanitizeThatIsUnderWayIsWaitedFor(t *testing.T) {
	disk := new(content)
	synctest.Test(t, func(t *testing.T) {
		d := nvmeDisk{
			controller: capable(2, 0, 3), namespaces: 1, action: sanitizeByKey,
			medium: medium{content: disk, takes: 10 * time.Minute},
		}
		d.start(noise)
		time.Sleep(4 * time.Minute)
		began := time.Now()
		got, told := secureWipe(t, model.CleanupSecure, fake{own: &nvme{namespace: 1, send: d.send}}, disk)
		if got.Method != "nvme-sanitize-block" || got.Result != model.WipeDone {
			t.Errorf("got %+v, want a sanitize of its own after that", got)
		}
		if took, want := time.Since(began), 16*time.Minute; took < want || took > want+time.Minute {
			t.Errorf("took %v, want %v", took, want)
		}
		if first := told[0]; first.Method != "nvme-sanitize-crypto" {
			t.Errorf("told of %+v first, want what is under way", first)
		}
	})
}

func TestProgressIsTold(t *testing.T) {
	disk := new(content)
	synctest.Test(t, func(t *testing.T) {
		d := nvmeDisk{controller: capable(0, 0, 2), namespaces: 1, medium: medium{content: disk, takes: 1000 * time.Second}}
		log := &bytes.Buffer{}
		f := fake{own: &nvme{namespace: 1, send: d.send}}
		var told []model.DiskProgress
		turns := 0
		w := Wiper{
			Open: func(p string) (Device, error) { return open(disk, f), nil },
			Watch: func(disks []model.DiskProgress, turn bool) {
				told = append(told, disks[0])
				if turn {
					turns++
				}
			},
			Log: slog.New(slog.NewTextHandler(log, nil)),
		}
		w.Wipe(t.Context(), model.CleanupSecure, []Choice{choice("sda")})
		for i := 1; i < len(told); i++ {
			if told[i].Percent < told[i-1].Percent && told[i-1].Percent != 100 && told[i].Percent != 0 {
				t.Errorf("%d %% after %d %%", told[i].Percent, told[i-1].Percent)
			}
		}
		want := model.DiskProgress{
			Name: "sda", Serial: "S1", SizeBytes: diskSize,
			Method: "nvme-sanitize-block", Percent: 100, Result: model.WipeDone,
		}
		if diff := gocmp.Diff(want, told[len(told)-1]); diff != "" {
			t.Errorf("last (-want +got):\n%s", diff)
		}
		if turns != 2 { // the method, and that it is done
			t.Errorf("%d turns, want 2", turns)
		}
		text := log.String()
		if n := strings.Count(text, "wipe goes on"); n < 9 || n > 11 {
			t.Errorf("%d lines of progress, want one for each tenth:\n%s", n, text)
		}
		if !strings.Contains(text, "estimate=16m40s") || !strings.Contains(text, "percent=50 left=") {
			t.Errorf("the log does not tell the time:\n%s", text)
		}
	})
}

func TestADiskThatTakesNothingButAnotherSanitizeIsSanitized(t *testing.T) {
	disk := new(content)
	synctest.Test(t, func(t *testing.T) {
		d := nvmeDisk{
			controller: capable(2, 0, 2), namespaces: 1, restricted: true,
			medium: medium{content: disk, failing: true, takes: time.Minute},
		}
		d.began = time.Now()
		time.Sleep(time.Hour)
		f := fake{own: &nvme{namespace: 1, send: d.send}, locked: func() bool {
			running, failed, _ := d.state()
			return running || failed
		}}
		got, _ := secureWipe(t, model.CleanupSecure, f, disk)
		if got.Result != model.WipeDone || got.Method != "nvme-sanitize-block" {
			t.Errorf("got %+v, want sanitized", got)
		}
	})
	if disk.holdsSecrets() {
		t.Error("the disk still holds data")
	}
}

func TestADiskThatNeverEndsIsGivenUp(t *testing.T) {
	disk := new(content)
	synctest.Test(t, func(t *testing.T) {
		d := nvmeDisk{controller: capable(0, 0, 2), namespaces: 1, medium: medium{content: disk, takes: time.Minute}}
		stuck := func(c nvmeCommand) error {
			err := d.send(c)
			if c.opcode == nvmeGetLogPage && !d.began.IsZero() {
				d.began = time.Now() // it begins again and again
			}
			return err
		}
		began := time.Now()
		f := fake{own: &nvme{namespace: 1, send: stuck}, locked: func() bool { return !d.began.IsZero() }}
		got, _ := secureWipe(t, model.CleanupSecure, f, disk)
		if got.Result != model.WipeFailed || !strings.Contains(got.Error, "nvme-sanitize-block: the disk has got no further for 10m0s; ") {
			t.Errorf("got %+v, want failed with both reasons", got)
		}
		if took := time.Since(began); took > 11*time.Minute {
			t.Errorf("took %v", took)
		}
	})
}

// Large disks that know no other sanitize take more than a day.
func TestADiskThatGoesOnIsWaitedFor(t *testing.T) {
	takes := medium{takes: 20 * time.Hour}
	for title, tc := range map[string]struct {
		disk   func(medium) Firmware
		method string
	}{
		"SATA": {func(m medium) Firmware {
			return &ata{send: (&sataDisk{words: map[int]uint16{59: hasOverwrite}, medium: m}).send}
		}, "ata-sanitize-overwrite"},
		"SAS": {func(m medium) Firmware {
			return &scsi{send: (&sasDisk{knows: map[byte]bool{scsiOverwrite: true}, medium: m}).send}
		}, "scsi-sanitize-overwrite"},
	} {
		t.Run(title, func(t *testing.T) {
			disk := new(content)
			synctest.Test(t, func(t *testing.T) {
				m := takes
				m.content = disk
				got, _ := secureWipe(t, model.CleanupSecure, fake{own: tc.disk(m)}, disk)
				if got.Result != model.WipeDone || got.Method != tc.method {
					t.Errorf("got %+v, want wiped by %s", got, tc.method)
				}
			})
		})
	}
}

func TestAnErasureMayTakeAsLongAsTheDiskSays(t *testing.T) {
	for estimate, want := range map[time.Duration]time.Duration{
		0: 6 * time.Hour, time.Second: 10 * time.Minute, time.Hour: 2 * time.Hour, 28 * time.Hour: 56 * time.Hour, // 20 TB
	} {
		if got := eraseTimeout(estimate); got != want {
			t.Errorf("%v: got %v, want %v", estimate, got, want)
		}
	}
}

func TestADiskThatAnswersNoMoreIsGivenUp(t *testing.T) {
	disk := new(content)
	synctest.Test(t, func(t *testing.T) {
		d := nvmeDisk{controller: capable(0, 0, 2), namespaces: 1, medium: medium{content: disk, takes: time.Hour}}
		silent := func(c nvmeCommand) error {
			if c.opcode == nvmeGetLogPage && !d.began.IsZero() {
				return errGone
			}
			return d.send(c)
		}
		began := time.Now()
		f := fake{own: &nvme{namespace: 1, send: silent}, locked: func() bool { return !d.began.IsZero() }}
		got, _ := secureWipe(t, model.CleanupSecure, f, disk)
		if got.Result != model.WipeFailed || !strings.Contains(got.Error, "nvme-sanitize-block: ask how far it is: no such device; ") {
			t.Errorf("got %+v, want failed with both reasons", got)
		}
		if took := time.Since(began); took > time.Minute {
			t.Errorf("took %v", took)
		}
	})
}

// sataDisk is a SATA disk with the security and sanitize feature sets.
type sataDisk struct {
	medium
	words map[int]uint16 // of IDENTIFY DEVICE, but for the states below

	password string // "" = security is not enabled
	locked   bool
	frozen   bool
	attempts int // with a wrong password
	prepared bool
	cut      bool  // power is lost half way through the next erase
	keeps    bool  // it does not give a password up
	sets     error // what setting a password fails with, after it is set
	ignores  bool  // it takes a sanitize, and does nothing
	mute     bool  // its controller does not hand on registers
	erases   error // what erasing fails with
	dead     bool  // power is lost
	asked    []string
}

var errGone = errors.New("no such device")

func (d *sataDisk) identify() []byte {
	b := identify(d.words)
	security := binary.LittleEndian.Uint16(b[256:])
	for bit, set := range map[int]bool{1: d.password != "", 2: d.locked, 3: d.frozen, 4: d.attempts >= 5} {
		if set {
			security |= 1 << bit
		}
	}
	binary.LittleEndian.PutUint16(b[256:], security)
	return b
}

func (d *sataDisk) powerCycle() {
	d.dead, d.prepared, d.frozen, d.attempts = false, false, false, 0
	d.locked = d.password != ""
}

func (d *sataDisk) send(c ataCommand) (ataAnswer, error) {
	if d.dead {
		return ataAnswer{}, errGone
	}
	aborted := ataAnswer{status: 0x51, failure: 4}
	given := ""
	if len(c.data) == ataSector {
		given = strings.TrimRight(string(c.data[2:34]), "\x00")
	}
	if c.command >= ataSetPassword && c.command <= ataDisablePassword && d.frozen {
		return aborted, errAborted
	}
	prepared := d.prepared
	d.prepared = false
	switch c.command {
	case ataIdentify:
		copy(c.data, d.identify())
	case ataSetPassword:
		if d.locked {
			return aborted, errAborted
		}
		d.password = given
		d.asked = append(d.asked, "set password")
		if d.sets != nil {
			return ataAnswer{}, d.sets
		}
	case ataUnlock:
		if given != d.password || d.attempts >= 5 {
			d.attempts++
			return aborted, errAborted
		}
		d.locked = false
		d.asked = append(d.asked, "unlock")
	case ataDisablePassword:
		if d.locked || given != d.password || d.keeps {
			return aborted, errAborted
		}
		d.password = ""
		d.asked = append(d.asked, "disable password")
	case ataErasePrepare:
		d.prepared = true
	case ataEraseUnit:
		return d.eraseUnit(given, prepared, c.data[0]&2 != 0)
	case ataSanitize:
		return d.sanitize(c)
	default:
		return aborted, errAborted
	}
	return ataAnswer{status: 0x50}, nil
}

func (d *sataDisk) eraseUnit(given string, prepared, enhanced bool) (ataAnswer, error) {
	if !prepared || given != d.password {
		return ataAnswer{status: 0x51, failure: 4}, errAborted
	}
	how := "erase"
	if enhanced {
		how = "erase enhanced"
	}
	d.asked = append(d.asked, how)
	switch {
	case d.cut:
		d.fill(0.5, zero)
		d.cut, d.dead = false, true
		return ataAnswer{}, errGone
	case d.erases != nil:
		return ataAnswer{status: 0x51, failure: 4}, d.erases
	}
	time.Sleep(time.Hour)
	d.fill(1, zero)
	d.password, d.locked = "", false
	return ataAnswer{status: 0x50}, nil
}

func (d *sataDisk) sanitize(c ataCommand) (ataAnswer, error) {
	keys := map[uint16]uint64{cryptoScrambleExt: 0x43727970, blockEraseExt: 0x426b4572, overwriteExt: 0x4f5700000000}
	switch {
	case c.feature == sanitizeStatusExt:
		if c.count == clearFailed {
			d.failing, d.began = false, time.Time{}
			d.asked = append(d.asked, "clear failure")
		}
		running, failed, progress := d.state()
		if failed {
			return ataAnswer{status: 0x51, failure: 4, address: 1}, errAborted
		}
		r := ataAnswer{status: 0x50, count: 1 << 15, address: uint64(progress)}
		switch {
		case d.mute:
			r = ataAnswer{}
		case running:
			r.count = 1 << 14
		case d.ignores:
			r.count = 0
		}
		return r, nil
	case d.locked || c.address != keys[c.feature]:
		return ataAnswer{status: 0x51, failure: 4}, errAborted
	}
	names := map[uint16]string{
		cryptoScrambleExt: "crypto scramble", blockEraseExt: "block erase", overwriteExt: "overwrite",
	}
	d.asked = append(d.asked, names[c.feature])
	if d.ignores {
		return ataAnswer{status: 0x50}, nil
	}
	d.start(map[uint16]func([]byte){cryptoScrambleExt: noise, blockEraseExt: zero, overwriteExt: zero}[c.feature])
	return ataAnswer{status: 0x50}, nil
}

const (
	hasSecurity  = 1 << 0
	hasEnhanced  = 1 << 5
	hasScramble  = 1<<12 | 1<<13
	hasBlock     = 1<<12 | 1<<15
	hasOverwrite = 1<<12 | 1<<14
)

func TestSATADisks(t *testing.T) {
	for title, tc := range map[string]struct {
		mode   string
		disk   sataDisk
		asked  []string
		method string
		err    string // "" = wiped
	}{
		"a sanitize, rather than a password": {
			disk:  sataDisk{words: map[int]uint16{59: hasBlock, 128: hasSecurity}, medium: medium{takes: time.Minute}},
			asked: []string{"block erase"}, method: "ata-sanitize-block",
		},
		"a key that is thrown away": {
			disk:  sataDisk{words: map[int]uint16{59: hasScramble}, medium: medium{takes: time.Second}},
			asked: []string{"crypto scramble"}, method: "ata-sanitize-crypto",
		},
		"a sanitize that fails": {
			disk:  sataDisk{words: map[int]uint16{59: hasBlock, 128: hasSecurity}, medium: medium{takes: time.Minute, failing: true}},
			asked: []string{"block erase", "clear failure", "set password", "erase"}, method: "ata-security-erase",
		},
		"a sanitize that is not heard of again": {
			disk:  sataDisk{words: map[int]uint16{59: hasBlock, 128: hasSecurity}, ignores: true},
			asked: []string{"block erase", "clear failure", "set password", "erase"}, method: "ata-security-erase",
		},
		"a controller that does not tell how far a sanitize is": {
			disk:  sataDisk{words: map[int]uint16{59: hasBlock, 128: hasSecurity}, mute: true},
			asked: []string{"clear failure", "set password", "erase"}, method: "ata-security-erase",
		},
		"a password that stays on the disk": {
			disk:  sataDisk{words: map[int]uint16{128: hasSecurity}, erases: errAborted, keeps: true},
			asked: []string{"set password", "erase"},
			err:   "the disk keeps the password that Ingot set",
		},
		"a password that is set though the disk says otherwise": {
			disk:  sataDisk{words: map[int]uint16{128: hasSecurity}, sets: errGone},
			asked: []string{"set password", "disable password"}, method: "overwrite",
		},
		"an erase with a password that is gone afterwards": {
			disk:  sataDisk{words: map[int]uint16{128: hasSecurity | hasEnhanced, 90: 30}},
			asked: []string{"set password", "erase enhanced"}, method: "ata-security-erase-enhanced",
		},
		"an erase that fails leaves no password": {
			disk:   sataDisk{words: map[int]uint16{128: hasSecurity}, erases: errAborted},
			asked:  []string{"set password", "erase", "disable password"},
			method: "overwrite",
		},
		"a disk that lies": {
			disk:  sataDisk{words: map[int]uint16{128: hasSecurity}, medium: medium{lies: true}},
			asked: []string{"set password", "erase"}, method: "overwrite",
		},
		"a disk that is frozen is overwritten": {
			disk: sataDisk{words: map[int]uint16{128: hasSecurity}, frozen: true}, method: "overwrite",
		},
		"a disk with another's password that is unlocked is overwritten": {
			disk: sataDisk{words: map[int]uint16{128: hasSecurity}, password: "hers"}, method: "overwrite",
		},
		"a disk with another's password that is locked has failed": {
			disk: sataDisk{words: map[int]uint16{128: hasSecurity}, password: "hers", locked: true},
			err:  "locked by an ATA password that is not Ingot's",
		},
		"a disk that is locked and frozen says so": {
			disk: sataDisk{words: map[int]uint16{128: hasSecurity}, password: wipePassword, locked: true, frozen: true},
			err:  "the firmware has frozen its security",
		},
		"a quick wipe of a disk that an erase left locked": {
			mode:   model.CleanupQuick,
			disk:   sataDisk{words: map[int]uint16{128: hasSecurity}, password: wipePassword, locked: true},
			asked:  []string{"unlock", "disable password"},
			method: "overwrite-edges",
		},
	} {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			disk := new(content)
			synctest.Test(t, func(t *testing.T) {
				d := tc.disk
				d.content = disk
				mode := cmp.Or(tc.mode, model.CleanupSecure)
				f := fake{own: &drive{ata: &ata{send: d.send}}, locked: func() bool { return d.locked }}
				got, _ := secureWipe(t, mode, f, disk)
				switch {
				case tc.err != "" && (got.Result != model.WipeFailed || !strings.Contains(got.Error, tc.err)):
					t.Errorf("got %+v, want failed: %s", got, tc.err)
				case tc.err == "" && (got.Result != model.WipeDone || got.Method != tc.method):
					t.Errorf("got %+v, want wiped by %s", got, tc.method)
				}
				if diff := gocmp.Diff(tc.asked, d.asked); diff != "" {
					t.Errorf("asked (-want +got):\n%s", diff)
				}
				if tc.err == "" && d.password == wipePassword {
					t.Error("the disk keeps Ingot's password")
				}
			})
			if tc.err == "" && tc.mode == "" && disk.holdsSecrets() {
				t.Error("the disk still holds data")
			}
		})
	}
}

func TestADiskThatLostPowerInItsEraseIsWipedAfterwards(t *testing.T) {
	disk := new(content)
	synctest.Test(t, func(t *testing.T) {
		d := &sataDisk{words: map[int]uint16{128: hasSecurity}, cut: true, medium: medium{content: disk}}
		f := fake{own: &drive{ata: &ata{send: d.send}}, locked: func() bool { return d.dead || d.locked }}
		if got, _ := secureWipe(t, model.CleanupSecure, f, disk); got.Result != model.WipeFailed {
			t.Fatalf("got %+v of a disk without power", got)
		}
		if !disk.holdsSecrets() {
			t.Fatal("the erase was not cut off")
		}
		d.powerCycle()
		if !d.locked {
			t.Fatal("the disk is not locked")
		}
		got, _ := secureWipe(t, model.CleanupSecure, f, disk)
		if got.Result != model.WipeDone || got.Method != "ata-security-erase" || d.password != "" {
			t.Errorf("got %+v with password %q, want wiped with none", got, d.password)
		}
		want := []string{"set password", "erase", "unlock", "disable password", "set password", "erase"}
		if diff := gocmp.Diff(want, d.asked); diff != "" {
			t.Errorf("asked (-want +got):\n%s", diff)
		}
	})
	if disk.holdsSecrets() {
		t.Error("the disk still holds data")
	}
}

// sasDisk is a SAS disk that knows some service actions of SANITIZE.
type sasDisk struct {
	medium
	knows map[byte]bool
	reset int // how many times it says first that it was reset
	asked []byte
}

func (d *sasDisk) send(c scsiCommand) error {
	switch c.cdb[0] {
	case scsiMaintenance:
		c.data[1] = 1
		if d.knows[c.cdb[5]] {
			c.data[1] = 3
		}
	case scsiRequestSense:
		switch running, failed, progress := d.state(); {
		case d.reset > 0:
			d.reset--
			copy(c.data, fixed(6, 0x2900))
		case running:
			copy(c.data, fixed(2, 0x041b, 0x80, byte(progress>>8), byte(progress)))
		case failed:
			copy(c.data, fixed(3, 0x3103))
		default:
			copy(c.data, fixed(0, 0))
		}
	case scsiSanitize:
		action := c.cdb[1] & 0x1f
		d.asked = append(d.asked, action)
		if action == scsiExitFailure {
			d.failing, d.began = false, time.Time{}
			return nil
		}
		d.start(map[byte]func([]byte){scsiCryptoErase: noise}[action])
		if d.how == nil {
			d.how = zero
		}
	}
	return nil
}

func TestSASDisks(t *testing.T) {
	for title, tc := range map[string]struct {
		disk   sasDisk
		asked  []byte
		method string
	}{
		"sanitize by key": {
			sasDisk{knows: map[byte]bool{scsiCryptoErase: true, scsiOverwrite: true}, medium: medium{takes: time.Minute}},
			[]byte{scsiCryptoErase}, "scsi-sanitize-crypto",
		},
		"sanitize that fails": {
			sasDisk{knows: map[byte]bool{scsiBlockErase: true, scsiOverwrite: true}, medium: medium{takes: time.Minute, failing: true}},
			[]byte{scsiBlockErase, scsiExitFailure, scsiOverwrite}, "scsi-sanitize-overwrite",
		},
		"a reset is told of first": {
			sasDisk{knows: map[byte]bool{scsiBlockErase: true}, reset: 3, medium: medium{takes: time.Minute}},
			[]byte{scsiBlockErase}, "scsi-sanitize-block",
		},
		"no sanitize": {sasDisk{}, nil, "overwrite"},
	} {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			disk := new(content)
			synctest.Test(t, func(t *testing.T) {
				d := tc.disk
				d.content = disk
				none := func(ataCommand) (ataAnswer, error) { return ataAnswer{}, errAborted }
				got, _ := secureWipe(t, model.CleanupSecure, fake{own: &drive{ata: &ata{send: none}, scsi: &scsi{send: d.send}}}, disk)
				if got.Result != model.WipeDone || got.Method != tc.method {
					t.Errorf("got %+v, want wiped by %s", got, tc.method)
				}
				if diff := gocmp.Diff(tc.asked, d.asked); diff != "" {
					t.Errorf("asked (-want +got):\n%s", diff)
				}
			})
			if disk.holdsSecrets() {
				t.Error("the disk still holds data")
			}
		})
	}
}

// A SAS disk that hangs on two expanders is there twice.
func TestPathsToOneDiskAreWipedInTurn(t *testing.T) {
	disk := new(content)
	synctest.Test(t, func(t *testing.T) {
		d := sasDisk{knows: map[byte]bool{scsiOverwrite: true}, medium: medium{content: disk, takes: time.Hour}}
		var one sync.Mutex
		send := func(c scsiCommand) error {
			one.Lock()
			defer one.Unlock()
			if running, _, _ := d.state(); running && c.cdb[0] == scsiSanitize {
				return errAborted
			}
			return d.send(c)
		}
		busy := func() bool {
			one.Lock()
			defer one.Unlock()
			running, _, _ := d.state()
			return running
		}
		none := func(ataCommand) (ataAnswer, error) { return ataAnswer{}, errAborted }
		w := Wiper{
			Open: func(string) (Device, error) {
				return open(disk, fake{own: &drive{ata: &ata{send: none}, scsi: &scsi{send: send}}, locked: busy}), nil
			},
			Log: slog.New(slog.DiscardHandler),
		}
		paths := []Choice{choice("sda"), choice("/dev/sdx"), choice("sda")}
		paths[0].Disk.WWID, paths[2].Disk.WWID = "naa.5000c500a0a0a0a0", "naa.5000c500a0a0a0a0"
		paths[1].Result = model.WipeSkipped
		paths[2].Disk.Name = "sdb"
		for n, got := range w.Wipe(t.Context(), model.CleanupSecure, paths) {
			if n != 1 && (got.Result != model.WipeDone || got.Method != "scsi-sanitize-overwrite" || got.Name != paths[n].Disk.Name) {
				t.Errorf("path %d: got %+v", n, got)
			}
		}
	})
}
