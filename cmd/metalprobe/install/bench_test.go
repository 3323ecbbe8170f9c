package install

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"ingot/model"
	"ingot/model/must"
	"ingot/model/testtool"
)

// BenchmarkInstall installs an image on a block device, and has dd write the same bytes to the
// same device: an install is to reach 0.8 of its speed.
func BenchmarkInstall(b *testing.B) {
	const mebibytes = 512
	device := loopDevice(b, mebibytes+64)
	image := denseImage(b, mebibytes)
	file := filepath.Join(b.TempDir(), "image")
	must.Do(b, os.WriteFile(file, image, 0o600))
	d := serve(b, image)
	d.doc.MayOverwrite = true
	b.Run("install", func(b *testing.B) {
		b.SetBytes(int64(len(image)))
		for b.Loop() {
			if err := onDevice(b, d, device).Run(b.Context(), d.url(), "uuid"); err != nil {
				b.Fatal(err)
			}
			if last, _ := d.outcome(); last.Reason != "" {
				b.Fatalf("install failed: %+v", last)
			}
			d.doc.Install += "i" // or it would be recognised
		}
	})
	for _, flags := range [][]string{{"conv=fsync"}, {"oflag=direct"}} {
		b.Run("dd "+flags[0], func(b *testing.B) {
			b.SetBytes(int64(len(image)))
			for b.Loop() {
				args := append([]string{"if=" + file, "of=" + device, "bs=4M", "status=none"}, flags...)
				if out, err := exec.Command("dd", args...).CombinedOutput(); err != nil {
					b.Fatalf("%v: %s", err, out)
				}
			}
		})
	}
}

// denseImage is an image without zeros, that can be compressed as programs can.
func denseImage(t testing.TB, mebibytes int) []byte {
	image := imageOf(t, mebibytes, 512)
	random := image[mebibyte : 2*mebibyte]
	for at := 2 * mebibyte; at < len(image)-mebibyte; at += 4096 {
		copy(image[at:], random[at/4096*97%(mebibyte/2):][:2048]) // half of it random, half zeros
		image[at+2048] = byte(at >> 12)
	}
	return image
}

// installIn and installFrom have a process of this test install, on a device, what is at a URL.
const (
	installIn   = "INGOT_TEST_INSTALL_DEVICE"
	installFrom = "INGOT_TEST_INSTALL_URL"
)

func TestMemoryOfAnInstall(t *testing.T) {
	if os.Getenv(installIn) != "" {
		installAlone(t)
		return
	}
	if testtool.RaceDetector {
		t.Skip("the race detector takes more memory than the install")
	}
	const most = 40 << 10 // KiB
	device := loopDevice(t, 192)
	d := serve(t, denseImage(t, 160))
	child := exec.Command(os.Args[0], "-test.run=^TestMemoryOfAnInstall$", "-test.v")
	child.Env = append(os.Environ(), installIn+"="+device, installFrom+"="+d.url())
	out, err := child.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	_, text, _ := strings.Cut(string(out), "VmHWM:")
	var kibibytes int
	if _, err := fmt.Sscan(text, &kibibytes); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	t.Logf("an install took %d KiB", kibibytes)
	if kibibytes > most {
		t.Errorf("an install took %d KiB of memory, at most %d are allowed", kibibytes, most)
	}
}

// installAlone installs in this process, and prints what memory it had at most.
func installAlone(t *testing.T) {
	d := &daemon{doc: model.InstallDocument{Image: model.DiskImage{SectorSize: 512}}}
	machine := onDevice(t, d, os.Getenv(installIn))
	// a fake daemon of this process takes the reports
	must.Do(t, machine.Run(t.Context(), os.Getenv(installFrom), "uuid"))
	if last, _ := d.outcome(); last.Stage != model.DiskRebooting || last.Reason != "" {
		t.Fatalf("last report: %+v", last)
	}
	status := must.Get(os.ReadFile("/proc/self/status"))(t)
	t.Logf("%s", status)
}
