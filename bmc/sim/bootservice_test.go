package sim_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"ingot/model"
)

// bootService is a boot service and a registry that behave: what they hand out
// for a server depends on what it is to do.
type bootService struct {
	*httptest.Server
	mu       sync.Mutex
	ignition map[string]string // by UUID; none = no ticket
	script   func(uuid string) string
	asked    []string
	failures map[string]int // answers of 500 that a path still gives

	registrations chan model.ProbeRegistration
	bootStates    chan model.ProbeBootState
	wipes         chan model.ProbeWipe
	progress      chan model.ProbeWipeProgress
	reports       chan model.ProbeInstall
	install       http.Handler // of disk images; nil = none
}

func newBootService(t *testing.T) *bootService {
	b := &bootService{
		ignition: make(map[string]string), failures: make(map[string]int),
		registrations: make(chan model.ProbeRegistration, 100), bootStates: make(chan model.ProbeBootState, 100),
		wipes:    make(chan model.ProbeWipe, 100),
		progress: make(chan model.ProbeWipeProgress, 100), reports: make(chan model.ProbeInstall, 100),
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /ipxe/{uuid}", b.serveScript)
	mux.HandleFunc("GET /image", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "blob "+r.URL.Query().Get("layer")) })
	mux.HandleFunc("GET /ignition/{uuid}", b.serveIgnition)
	mux.HandleFunc("POST /r/tok/register", func(w http.ResponseWriter, r *http.Request) { take(w, r, b.registrations, http.StatusCreated) })
	mux.HandleFunc("POST /r/tok/bootstate", func(w http.ResponseWriter, r *http.Request) { take(w, r, b.bootStates, http.StatusOK) })
	mux.HandleFunc("POST /r/tok/wipe", func(w http.ResponseWriter, r *http.Request) { take(w, r, b.wipes, http.StatusOK) })
	mux.HandleFunc("POST /r/tok/wipe-progress", func(w http.ResponseWriter, r *http.Request) { take(w, r, b.progress, http.StatusCreated) })
	mux.HandleFunc("POST /r/tok/install", func(w http.ResponseWriter, r *http.Request) { take(w, r, b.reports, http.StatusOK) })
	mux.HandleFunc("GET /install/", func(w http.ResponseWriter, r *http.Request) { b.install.ServeHTTP(w, r) })
	b.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if b.fails(r.URL.Path) {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(b.Close)
	return b
}

func (b *bootService) fails(path string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asked = append(b.asked, path)
	b.failures[path]--
	return b.failures[path] >= 0
}

func (b *bootService) fail(path string, times int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failures[path] = times
}

func (b *bootService) requests(path string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := 0
	for _, p := range b.asked {
		if p == path {
			n++
		}
	}
	return n
}

func take[T any](w http.ResponseWriter, r *http.Request, to chan<- T, status int) {
	var v T
	if err := json.NewDecoder(r.Body).Decode(&v); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	to <- v
	w.WriteHeader(status)
}

func (b *bootService) offer(uuid, ignition string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ignition[uuid] = ignition
}

func (b *bootService) serveScript(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	uuid := r.PathValue("uuid")
	if b.script != nil {
		fmt.Fprint(w, b.script(uuid))
		return
	}
	if _, ok := b.ignition[uuid]; !ok {
		http.NotFound(w, r)
		return
	}
	fmt.Fprintf(w, `#!ipxe
set ipxe-svc %s
set kernel-url ${ipxe-svc}/image?layer=kernel
set squashfs-url ${ipxe-svc}/image?layer=squashfs
echo Loading kernel...
kernel ${kernel-url} initrd=initrd gl.ovl=/:tmpfs gl.url=${squashfs-url} gl.live=1 ip=any `+
		`ignition.firstboot=1 ignition.config.url=${ipxe-svc}/ignition/${uuid} ignition.platform.id=metal
initrd /image?layer=initrd
boot
`, b.URL)
}

func (b *bootService) serveIgnition(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	fmt.Fprint(w, b.ignition[r.PathValue("uuid")])
}

// probeIgnition runs metalprobe for uuid; more are further flags.
func (b *bootService) probeIgnition(uuid string, more ...string) string {
	flags := append([]string{"--registry-url=" + b.URL + "/r/tok", "--server-uuid=" + uuid}, more...)
	unit := "[Service]\nExecStart=/usr/bin/ctr run --rm IMAGE metalprobe ./launch.sh " + strings.Join(flags, " ") + "\nRestart=on-failure\n"
	return ignitionJSON(map[string]any{
		"systemd": map[string]any{"units": []any{map[string]any{"name": "metalprobe.service", "enabled": true, "contents": unit}}},
	})
}

func (b *bootService) wipeIgnition(uuid, mode string) string {
	return b.probeIgnition(uuid, "--wipe="+mode, "--report-url="+b.URL+"/r/tok/wipe")
}

func (b *bootService) imageIgnition(uuid string) string {
	line := b.URL + "/r/tok/bootstate " + uuid + "\n"
	return ignitionJSON(map[string]any{"storage": map[string]any{"files": []any{map[string]any{
		"path": "/etc/ingot/bootstate", "mode": 0o600, "contents": packed(line),
	}}}})
}

func ignitionJSON(config map[string]any) string {
	config["ignition"] = map[string]any{"version": "3.4.0"}
	raw, err := json.Marshal(config)
	if err != nil {
		panic(err)
	}
	return string(raw)
}

// packed is contents as Butane packs them: compressed, in a data URL.
func packed(text string) map[string]any {
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	_, _ = w.Write([]byte(text))
	_ = w.Close()
	return map[string]any{"source": "data:;base64," + base64.StdEncoding.EncodeToString(z.Bytes()), "compression": "gzip"}
}
