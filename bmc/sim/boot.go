package sim

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"ingot/bmc/sim/internal/delay"
	"ingot/model"
)

// stageSquashfs is fetched by the initial RAM disk.
const stageSquashfs model.BootStage = "squashfs"

// Bounds on what a machine fetches, in bytes and time.
const (
	maxBlob       = 8 << 30
	scriptTimeout = 30 * time.Second
	blobTimeout   = 10 * time.Minute
	postTimeout   = 10 * time.Second
)

// Ignition, and an initial RAM disk that fetches its system, asks again when it gets no
// answer or one from 500 on, more and more rarely.
const (
	ignitionAttempts  = 60
	ignitionFirstWait = 100 * time.Millisecond
	ignitionLastWait  = time.Second
)

func choice(o bootOverride, followed, networkFirst bool) []BootSource {
	switch {
	case followed && o.fromNetwork():
		return []BootSource{BootFromNetwork, BootFromDisk}
	case followed && o.fromDisk(), !networkFirst:
		return []BootSource{BootFromDisk}
	}
	return []BootSource{BootFromNetwork, BootFromDisk}
}

// boot is what the machine does from power or a restart on.
func (p pretended) boot(ctx context.Context, life uint64) {
	if !p.during(life, func() { p.progress = progressFirmware }) || !delay.Wait(ctx, p.delays().Firmware) {
		return
	}
	from, address := p.firmware(life)
	b := &booting{host: host(p), life: life}
	for _, source := range from {
		if ctx.Err() != nil {
			return
		}
		if source == BootFromDisk {
			b.fromDisk(ctx)
			return
		}
		if b.fromNetwork(ctx, address) {
			return
		}
	}
}

// firmware reads the override, which is used up by that, and says what to boot
// from, and what a network boot asks for first.
func (p pretended) firmware(life uint64) (from []BootSource, address string) {
	byDHCP := p.rack().BootURL() + "/ipxe/" + p.uuid
	p.during(life, func() {
		address = p.override.address(byDHCP)
		from = p.startBoot()
	})
	return from, address
}

// bootOrder is what the firmware would boot from if it started now; the caller
// holds mu.
func (s *mainboard) bootOrder() []BootSource {
	order := choice(s.override, !s.faults.has(FaultOverrideIgnored), s.startsWith())
	if !s.bootsDisk() {
		return []BootSource{BootFromNetwork}
	}
	return order
}

// startBoot is what the firmware does when it starts: it takes over the boot order that is
// pending, reads the override, uses it up, and begins a boot from what is returned; the caller holds mu.
func (s *mainboard) startBoot() []BootSource {
	from := s.bootOrder()
	s.networkFirst, s.nextFirst = s.startsWith(), nil
	s.boots.add(BootRecord{At: time.Now(), From: from[0]})
	if s.override.Enabled == "Once" {
		s.override.Enabled, s.override.Target = noOverride.Enabled, noOverride.Target
		s.keep()
	}
	return from
}

// booting is one boot while it is under way. It implements network.
type booting struct {
	host
	life uint64
}

func (b *booting) record(change func(*BootRecord)) {
	b.during(b.life, func() { change(b.boots.last()) })
}

func (b *booting) reached(stage model.BootStage) {
	b.record(func(r *BootRecord) { r.Stages = append(r.Stages, stage) })
}

// fetched notes that something was fetched, and its SHA-256 in hexadecimal.
func (b *booting) fetched(stage model.BootStage, address, sum string) {
	b.during(b.life, func() {
		b.log(Event{Kind: EventFetched, What: "fetched " + string(stage), Stage: stage, URL: address, Digest: "sha256:" + sum})
	})
}

func (b *booting) ends(o Outcome, err error) {
	b.record(func(r *BootRecord) {
		r.Outcome = o
		what := "boot: " + string(o)
		if err != nil {
			r.Error = err.Error()
			what += ": " + r.Error
		}
		b.note(what)
	})
}

func (b *booting) fromDisk(ctx context.Context) {
	var report *bootStateRun
	b.record(func(r *BootRecord) {
		if b.disk == nil {
			r.From, r.Outcome = BootFromNothing, OutcomeNoDevice
			b.log(Event{Kind: EventNoDevice, What: "no bootable device"})
			return
		}
		r.From, r.Outcome = BootFromDisk, OutcomeDisk
		b.system, b.progress = systemOS, progressOS
		b.logDisk(EventDiskBoot, "runs from disk "+b.disk.Image, "")
		b.keep()
		if !b.said {
			report = seedReport(ctx, b.seed)
		}
	})
	if report == nil || !delay.Wait(ctx, b.delays().Boot) || !b.sayBooted(ctx, report) {
		return
	}
	b.during(b.life, func() {
		b.said = true
		b.keep()
	})
}

// fromNetwork reports false when the network has nothing for this machine and the
// firmware is to go on.
func (b *booting) fromNetwork(ctx context.Context, address string) bool {
	sh := shell{net: b, vars: b.settings()}
	img, err := sh.boot(ctx, address)
	switch {
	case ctx.Err() != nil:
		return true
	case errors.Is(err, errHung):
		b.ends(OutcomeHung, nil)
		return true
	case err != nil:
		b.record(func(r *BootRecord) {
			r.Error = err.Error()
			b.log(Event{Kind: EventNetworkGone, What: "leaves the network: " + r.Error})
		})
		return false
	}
	b.kernel(ctx, img)
	return true
}

func (s host) settings() map[string]string {
	_, _, arch := s.build.Hardware.architecture()
	return map[string]string{
		"uuid": s.uuid, "serial": s.serial, "manufacturer": s.rack().kind.manufacturer, "product": s.model,
		"net0/mac": s.MAC(0), "netX/mac": s.MAC(0), "mac": s.MAC(0), "net1/mac": s.MAC(1),
		"net0/ip": s.ip(0), "ip": s.ip(0), "hostname": string(s.name),
		"platform": "efi", "buildarch": arch, "version": "1.21.1",
	}
}

// errHung is how a fault makes a boot hang.
var errHung = errors.New("hung")

func (b *booting) script(ctx context.Context, address string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, scriptTimeout)
	defer cancel()
	raw, err := persist(ctx, b, func() ([]byte, error) { return b.fetch(ctx, address, "iPXE/1.21.1+", maxScript) })
	if err != nil {
		return "", err
	}
	b.reached(model.StageScript)
	b.fetched(model.StageScript, address, sha256Of(raw))
	if b.faults.has(FaultHangAfterScript) {
		return "", errHung
	}
	return string(raw), nil
}

func (b *booting) load(ctx context.Context, stage model.BootStage, address string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, blobTimeout)
	defer cancel()
	resp, err := persist(ctx, b, func() (*http.Response, error) { return b.get(ctx, address, "iPXE/1.21.1+") })
	if err != nil {
		return "", err
	}
	defer drain(resp.Body)
	hash := sha256.New()
	n, err := io.Copy(hash, io.LimitReader(resp.Body, maxBlob+1))
	switch {
	case err != nil:
		return "", fmt.Errorf("fetch %s: %w", stage, err)
	case n > maxBlob:
		return "", fmt.Errorf("fetch %s: more than %d bytes", stage, int64(maxBlob))
	}
	sum := hex.EncodeToString(hash.Sum(nil))
	b.reached(stage)
	b.fetched(stage, address, sum)
	if stage == model.StageKernel && b.faults.has(FaultHangAfterKernel) {
		return "", errHung
	}
	return "sha256:" + sum, nil
}

// netbootTries is how often the firmware asks a boot server that does not answer, or
// is not ready, before it goes on to the next boot device.
const netbootTries = 3

// persist tries to fetch something as firmware does.
func persist[T any](ctx context.Context, b *booting, try func() (T, error)) (T, error) {
	for n := 1; ; n++ {
		v, err := try()
		if err == nil || n == netbootTries || !passing(err) || !delay.Wait(ctx, b.delays().NetworkRetry) {
			return v, err
		}
		b.during(b.life, func() { b.note("the boot server does not answer: tries again") })
	}
}

// passing reports whether firmware asks again: there was no answer, or one that says
// that the server is not ready.
func passing(err error) bool {
	status, answered := errors.AsType[statusError](err)
	return !answered || status.code == http.StatusServiceUnavailable
}

func sha256Of(raw []byte) string {
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}

// get requests address and returns the answer if it is 200.
func (s host) get(ctx context.Context, address, agent string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, fmt.Errorf("fetch: %w", err)
	}
	req.Header.Set("User-Agent", agent)
	if agent == ignitionAgent {
		req.Header.Set("Accept", "application/vnd.coreos.ignition+json;version=3.5.0, */*;q=0.1")
	}
	resp, err := s.web().Do(req)
	if err != nil {
		return nil, fmt.Errorf("fetch: %w", err)
	}
	if resp.StatusCode != http.StatusOK {
		drain(resp.Body)
		return nil, statusError{what: "GET " + req.URL.Redacted(), code: resp.StatusCode}
	}
	return resp, nil
}

// statusError is an answer that is not the one hoped for.
type statusError struct {
	what string
	code int
}

func (e statusError) Error() string {
	return e.what + ": " + strconv.Itoa(e.code) + " " + http.StatusText(e.code)
}

func (s host) fetch(ctx context.Context, address, agent string, limit int64) ([]byte, error) {
	resp, err := s.get(ctx, address, agent)
	if err != nil {
		return nil, err
	}
	defer drain(resp.Body)
	raw, err := io.ReadAll(io.LimitReader(resp.Body, limit+1))
	if err != nil {
		return nil, fmt.Errorf("fetch: %w", err)
	}
	if int64(len(raw)) > limit {
		return nil, fmt.Errorf("fetch %s: more than %d bytes", resp.Request.URL.Redacted(), limit)
	}
	return raw, nil
}

// kernel runs what the script booted until it, or this life, ends.
func (b *booting) kernel(ctx context.Context, img image) {
	b.during(b.life, func() { b.progress = progressKernel })
	what, sum, err := b.userland(ctx, img)
	switch {
	case ctx.Err() != nil:
		return
	case err != nil: // an emergency shell: the machine stays as it is
		b.ends(OutcomeFailed, err)
		return
	}
	if !delay.Wait(ctx, b.delays().Boot) {
		return
	}
	if what.probe != nil {
		b.runs(systemProbe, OutcomeProbe)
		b.during(b.life, func() { b.log(Event{Kind: EventProbeRuns, What: "the probe runs"}) })
		b.probe(ctx, *what.probe)
		return
	}
	b.install(img, sum)
	b.sayBooted(ctx, what.bootState)
}

func (b *booting) runs(sys system, o Outcome) {
	b.during(b.life, func() { b.system, b.progress = sys, progressOS })
	b.ends(o, nil)
}

// ignitionAgent is the name under which Ignition fetches.
const ignitionAgent = "Ignition/2.26.0"

// userland fetches what the kernel line names and reads what is to be run. sum is
// the SHA-256 of the Ignition, in hexadecimal.
func (b *booting) userland(ctx context.Context, img image) (p program, sum string, err error) {
	if address := img.argument("gl.url"); address != "" {
		if err := b.squashfs(ctx, address); err != nil {
			return program{}, "", err
		}
	}
	address := img.argument("ignition.config.url")
	if address == "" || b.faults.has(FaultConfiguresItself) {
		return program{}, "", nil
	}
	raw, err := b.ignition(ctx, address)
	if err != nil {
		return program{}, "", err
	}
	b.reached(model.StageIgnition)
	config, err := parseIgnition(ctx, raw, b.ignition)
	if err != nil {
		return program{}, "", err
	}
	p, err = config.program(ctx, b.ignition)
	return p, sha256Of(raw), err
}

// ignition fetches a configuration as Ignition does. Errors do not show the URL,
// which may hold a token.
func (b *booting) ignition(ctx context.Context, address string) ([]byte, error) {
	wait := ignitionFirstWait
	for attempt := 1; ; attempt++ {
		raw, err := b.ignitionOnce(ctx, address)
		status, answered := errors.AsType[statusError](err)
		refused := answered && status.code < http.StatusInternalServerError
		switch {
		case err == nil:
			b.fetched(model.StageIgnition, address, sha256Of(raw))
			return raw, nil
		case refused:
			return nil, statusError{what: "fetch Ignition", code: status.code}
		case attempt == ignitionAttempts || !delay.Wait(ctx, wait):
			return nil, fmt.Errorf("fetch Ignition: no answer in %d attempts", attempt)
		}
		wait = min(2*wait, ignitionLastWait)
	}
}

// squashfs fetches the system that an initial RAM disk goes on with.
func (b *booting) squashfs(ctx context.Context, address string) error {
	wait := ignitionFirstWait
	for attempt := 1; ; attempt++ {
		_, err := b.load(ctx, stageSquashfs, address)
		if err == nil || !passing(err) || attempt == ignitionAttempts || !delay.Wait(ctx, wait) {
			return err
		}
		wait = min(2*wait, ignitionLastWait)
	}
}

func (b *booting) ignitionOnce(ctx context.Context, address string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, scriptTimeout)
	defer cancel()
	return b.fetch(ctx, address, ignitionAgent, maxIgnition)
}

// install writes what was booted to the disk, and runs it.
func (b *booting) install(img image, sum string) {
	b.during(b.life, func() {
		now := time.Now()
		b.clearDisk(b.diskSerial(0))
		b.disk = &Disk{Image: img.kernel, IgnitionSHA256: sum, InstalledAt: now}
		b.installs.add(Install{Image: img.kernel, IgnitionSHA256: sum, At: now})
		b.logDisk(EventInstalled, "installed "+img.kernel, "")
		b.system, b.progress = systemOS, progressOS
		b.keep()
	})
	b.ends(OutcomeInstalled, nil)
}

// sayBooted posts the boot state until it is taken, as the unit that Ingot adds
// to a claim's Ignition does, and reports whether it was. A system that cloud-init
// configures posts it again with how that ended.
func (b *booting) sayBooted(ctx context.Context, to *bootStateRun) bool {
	if to == nil || b.faults.has(FaultBootStateSilent) {
		return false
	}
	body := model.ProbeBootState{SystemUUID: to.uuid, Booted: true}
	b.until(ctx, "boot state", func() error { return b.post(ctx, to.url, body) })
	if to.cloudInit && delay.Wait(ctx, b.delays().Boot) {
		body.CloudInit = b.cloudInit()
		b.until(ctx, "how cloud-init ended", func() error { return b.post(ctx, to.url, body) })
	}
	return ctx.Err() == nil
}

// cloudInit is how cloud-init ends on the machine, in its words.
func (b *booting) cloudInit() *model.ProbeCloudInit {
	var told model.ProbeCloudInit
	if b.faults.has(FaultCloudInitFails) {
		told.V1.ModulesFinal.Errors = []string{"('scripts_user', RuntimeError('Runparts: 1 failures (runcmd) in 1 attempted commands'))"}
	}
	return &told
}

// until does try until it succeeds, more and more rarely, at most every 5 s.
func (b *booting) until(ctx context.Context, what string, try func() error) {
	const longest = 5 * time.Second
	for wait := ignitionFirstWait; ; wait = min(2*wait, longest) {
		err := try()
		if ctx.Err() != nil {
			return
		}
		b.posted(what, err)
		if err == nil || !delay.Wait(ctx, wait) {
			return
		}
	}
}

func (b *booting) posted(what string, err error) {
	b.during(b.life, func() {
		if err != nil {
			b.note("post " + what + ": " + err.Error())
			return
		}
		b.note("posted " + what)
	})
}

// withoutURL is what failed but not where: the path may hold a token.
func withoutURL(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err
	}
	return err
}
