package life

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"ingot/bmc/sim/qemu"
	"ingot/features/internal/rig"
	"ingot/model/must"
)

// sshLimit is how long a booted system may take to answer ssh, when other tests use the computer, too.
const sshLimit = time.Minute

// TestLoginOnCloudImage goes from "ingot init" to a shell on the server, with the commands of docs/use-a-server.md. The
// image is of Debian, with its own cloud-init and sshd. The claim has no Secret. ssh gets the user and the address that
// Ingot shows.
func TestLoginOnCloudImage(t *testing.T) {
	rig.SkipIfLate(t)
	rig.NeedMachines(t, rig.ToolMtools, rig.ToolSyslinux, rig.ToolMmdebstrap, rig.ToolSfdisk, rig.ToolMkfsVFAT, rig.ToolQEMUImg, rig.ToolSSH)
	rig.NeedFile(t, "/usr/lib/syslinux/mbr/gptmbr.bin", "syslinux-common")
	on := rig.NewServer(t)
	probe, image := rig.PushProbe(t, on), pushDisk(t, rig.NewImages(t, on), debianImage(t))
	ingot := rig.NewIngot(t, on, network+fmt.Sprintf("discovery: {image: %q}\nboot: {registries: [{host: %q, plain: true}, {host: %q, plain: true}]}\n",
		probe, registryOf(probe), registryOf(image)))
	ingot.Paced = true
	on.Tap("tap0", rig.BridgeName)
	facts := on.StartRack(t, rig.RackOrder{StateDir: t.TempDir(), BMCs: 1, SystemsPerBMC: 1, NetworkFirst: []bool{true}, QEMU: qemu.Machines{
		{Firmware: qemu.FirmwareBIOS, MemoryMiB: 1024, Taps: []string{"tap0"}, Disks: []qemu.Disk{{Bus: qemu.DiskVirtio, SizeMiB: 1024}}},
	}})
	rig.KeepConsole(t, facts.Servers[0])

	for _, who := range []string{"GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"} {
		t.Setenv(who, "ada@example.com")
	}
	home, program := t.TempDir(), rig.Program(t)
	fleet, clone := filepath.Join(home, "fleet"), filepath.Join(home, "clone")
	git := func(args ...string) { rig.MustRun(t, "git", append([]string{"-C", fleet}, args...)...) }
	rig.MustRun(t, program, "init", fleet, "--url", ingot.Repo.URL())
	must.Do(t, os.WriteFile(filepath.Join(fleet, "images.yaml"), []byte(fmt.Sprintf(catalog, image)), 0o600))
	git("add", ".")
	git("commit", "-m", "name the image")
	git("push", "--force", "-u", "origin", "main") // the rig has begun the repository, and Ingot does not run yet
	ingot.CommitRack(t, facts)
	ingot.Start(t)
	ingot.StatusHas(t, bootLimit, "servers/"+facts.Servers[0].Name+".yaml", "state: Available", "powerState: \"Off\"")

	must.Do(t, os.Mkdir(filepath.Join(home, ".ssh"), 0o700))
	key, other := newSSHKey(t, filepath.Join(home, ".ssh/id_ed25519")), newSSHKey(t, filepath.Join(home, "eve"))
	git("clone", "--quiet", ingot.Repo.URL(), clone)
	for _, who := range []string{"user.name", "user.email"} {
		git("-C", clone, "config", who, "ada@example.com")
	}
	page := must.Get(os.ReadFile("../../docs/use-a-server.md"))(t)
	_, typed, _ := strings.Cut(string(page), "```sh\n")
	typed, _, _ = strings.Cut(typed, "```")
	tenant := rig.NewNamespace(t, "tenant") // reaches no daemon
	said, err := tenant.Run(t, cloudLimit+2*bootLimit, "env", "-C", clone, "HOME="+home, "PATH="+filepath.Dir(program)+":"+os.Getenv("PATH"), "sh", "-c", typed)
	if t.Logf("%s\n%s", typed, said); err != nil {
		t.Fatal(err)
	}
	document := ingot.StatusHas(t, rig.Patience, "serverclaims/default/web-1.yaml", "phase: Bound", "reason: Booted", "login: ssh ")
	login := regexp.MustCompile(`login: (ssh debian@10\.77\.1\.\d+)`).FindStringSubmatch(document)
	if login == nil {
		t.Fatalf("the claim shows no user and address:\n%s", document)
	}
	claims := must.Get(on.Get("http://127.0.0.1:8080/claims"))(t)
	wide := must.Get(on.Run(t, rig.Patience, program, "status", "-o", "wide"))(t)
	explained := must.Get(on.Run(t, rig.Patience, program, "explain", "claim", "web-1"))(t)
	for where, text := range map[string]string{"page": claims, "ingot status -o wide": wide, "ingot explain": explained, "README.md": must.Get(ingot.Status("README.md"))(t)} {
		if !strings.Contains(text, login[1]) {
			t.Errorf("%s does not have %q:\n%s", where, login[1], text)
		}
	}

	ssh := func(key string) (string, error) {
		options := strings.Fields("-o BatchMode=yes -o IdentitiesOnly=yes -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o ConnectTimeout=10 -i")
		command := append(append(strings.Fields(login[1]), options...), key, `echo "$(id -un) on $(hostname)"`)
		return on.Run(t, sshLimit, command...)
	}
	rig.Eventually(t, sshLimit, func() error {
		out, err := ssh(key)
		if err != nil || !strings.Contains(out, "debian on web-1\n") {
			return fmt.Errorf("%s: %w\n%s", login[1], err, out)
		}
		return nil
	})
	if out, err := ssh(other); err == nil || !strings.Contains(out, "Permission denied (publickey") {
		t.Errorf("another key: %v\n%s", err, out)
	}
}

// newSSHKey makes a pair of keys, and returns the file of the private one.
func newSSHKey(t *testing.T, file string) string {
	t.Helper()
	rig.MustRun(t, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", file)
	return file
}

// catalog has the name that the page uses, for the release of Debian that the test makes. Its user is left to Ingot.
const catalog = `apiVersion: metal.ironcore.dev/v1alpha1
kind: ImageCatalog
metadata: {name: images}
spec:
  images:
  - {name: debian-13, image: %q}
`
