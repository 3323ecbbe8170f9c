package holder

import (
	"encoding/json"
	"errors"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"ingot/model"
	"ingot/model/must"
)

func TestMayLive(t *testing.T) {
	ours := model.Holder{ID: "us", Host: "h1", Machine: "m1", Boot: "b1", Namespace: "n1"}
	like := func(change func(*model.Holder)) model.Holder {
		h := ours
		h.ID = "them"
		change(&h)
		return h
	}
	same := like(func(*model.Holder) {})
	elsewhere := like(func(h *model.Holder) { h.Host, h.Machine, h.Boot, h.Namespace = "h2", "m2", "b2", "n2" })
	rebooted := like(func(h *model.Holder) { h.Boot = "b0" })
	for name, tt := range map[string]struct {
		theirs    model.Holder
		sameStore bool
		name      Name
		want      bool
	}{
		"a branch without a writer":                      {theirs: model.Holder{}},
		"this process itself":                            {theirs: ours},
		"one on another machine":                         {theirs: elsewhere, want: true},
		"one on another machine, whose store ours is":    {theirs: elsewhere, sameStore: true, want: true},
		"one on another machine with the same host name": {theirs: like(func(h *model.Holder) { h.Machine, h.Boot = "m2", "b2" }), want: true},
		"one before this machine lost power":             {theirs: rebooted},
		"the same, or a copy of this virtual machine":    {theirs: rebooted, sameStore: true, want: true},
		"one on a machine that has the same image as ours": {
			theirs: like(func(h *model.Holder) { h.Host, h.Boot = "h2", "b2" }), want: true,
		},
		"one whose boot is not known":           {theirs: like(func(h *model.Holder) { h.Boot = "" }), name: NameFree, want: true},
		"one whose machine is not known":        {theirs: like(func(h *model.Holder) { h.Machine = "" }), name: NameFree, want: true},
		"one in another network namespace":      {theirs: like(func(h *model.Holder) { h.Namespace = "n2" }), name: NameFree, want: true},
		"one whose name is free":                {theirs: same, sameStore: true, name: NameFree},
		"one whose name could not be asked for": {theirs: same, want: true},
		"one whose name is taken":               {theirs: same, name: NameTaken, want: true},
	} {
		if got := mayLive(tt.theirs, ours, tt.sameStore, tt.name); got != tt.want {
			t.Errorf("%s: it may live: %t, want %t", name, got, tt.want)
		}
	}
}

// A process that is too busy to answer lives.
func TestANameThatDoesNotAnswer(t *testing.T) {
	us := must.Get(ThisHolder())(t)
	fd := must.Get(syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0))(t)
	defer func() { _ = syscall.Close(fd) }()
	must.Do(t, errors.Join(syscall.Bind(fd, &syscall.SockaddrUnix{Name: namePrefix + us.ID}), syscall.Listen(fd, 0)))
	for {
		conn, err := net.Dial("unix", namePrefix+us.ID)
		if errors.Is(err, syscall.EAGAIN) { // its queue is full
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
	}
	if held, err := NameHeld(us.ID); !held || err != nil {
		t.Errorf("held: %t, %v", held, err)
	}
}

func TestThisHolder(t *testing.T) {
	a := must.Get(ThisHolder())(t)
	b := must.Get(ThisHolder())(t)
	if a.ID == b.ID || a.Host == "" {
		t.Errorf("holders %+v and %+v", a, b)
	}
	a.ID = b.ID
	if a != b {
		t.Errorf("two processes of one machine: %+v and %+v", a, b)
	}
	shown := must.Get(json.Marshal(a))(t)
	for _, file := range []string{machineFile, bootFile} {
		raw, err := os.ReadFile(file)
		if secret := strings.TrimSpace(string(raw)); err == nil && secret != "" && strings.Contains(string(shown), secret) {
			t.Errorf("%s shows what %s says", shown, file)
		}
	}
}

func TestDigestOfWhatIsNotKnown(t *testing.T) {
	for _, text := range []string{"", "uninitialized"} {
		if got := digest("machine", text); got != "" {
			t.Errorf("digest of %q is %q", text, got)
		}
	}
	if digest("machine", "x") == digest("boot", "x") || len(digest("machine", "x")) != 32 {
		t.Error("digests of two kinds are the same, or of another length")
	}
}

const nameVariable = "INGOT_TEST_HOLD_NAME"

func TestMain(m *testing.M) {
	if id := os.Getenv(nameVariable); id != "" {
		if _, err := HoldName(id); err != nil {
			os.Exit(1)
		}
		_, _ = os.Stdout.WriteString("held\n")
		select {}
	}
	os.Exit(m.Run())
}

func TestANameEndsWithItsProcess(t *testing.T) {
	us := must.Get(ThisHolder())(t)
	them := us
	them.ID = strings.Repeat("a", 10) + us.ID
	held := func(want bool) {
		t.Helper()
		if got, err := NameHeld(them.ID); got != want || err != nil {
			t.Errorf("held: %t, %v, want %t", got, err, want)
		}
	}
	held(false)
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), nameVariable+"="+them.ID)
	out := must.Get(cmd.StdoutPipe())(t)
	must.Do(t, cmd.Start())
	must.Get(out.Read(make([]byte, 8)))(t)
	for range 3 {
		held(true)
	}
	if us.Machine != "" && us.Boot != "" && us.Namespace != "" {
		if !MayLive(them, us, false) {
			t.Error("taken for dead")
		}
	}
	must.Do(t, cmd.Process.Kill())
	_ = cmd.Wait() // it was killed
	held(false)
	if us.Machine != "" && us.Boot != "" && us.Namespace != "" {
		if MayLive(them, us, false) {
			t.Error("taken for alive")
		}
	}
}

func TestHasDied(t *testing.T) {
	us := must.Get(ThisHolder())(t)
	us.Machine, us.Boot, us.Namespace = "m1", "b1", "n1"
	other := us
	other.ID = strings.Repeat("b", 10) + us.ID
	elsewhere, rebooted, unknown := other, other, other
	elsewhere.Machine, rebooted.Boot, unknown.Boot = "m2", "b0", ""
	for name, tt := range map[string]struct {
		owner string
		want  bool
	}{
		"one that has ended":          {owner: Owner(other), want: true},
		"one on another machine":      {owner: Owner(elsewhere)},
		"one before a reboot":         {owner: Owner(rebooted)},
		"one whose boot is not known": {owner: Owner(unknown)},
		"a name of another form":      {owner: us.Host + "/" + other.ID},
	} {
		if got := HasDied(tt.owner, us); got != tt.want {
			t.Errorf("%s: %t, want %t", name, got, tt.want)
		}
	}
	if HasDied(Owner(other), unknown) {
		t.Error("a process that does not know where it runs takes another for dead")
	}
	held := must.Get(HoldName(other.ID))(t)
	defer held.Close()
	if HasDied(Owner(other), us) {
		t.Error("a living process is taken for dead")
	}
}

func TestANameIsHeldOnce(t *testing.T) {
	us := must.Get(ThisHolder())(t)
	name := must.Get(HoldName(us.ID))(t)
	if second, err := HoldName(us.ID); err == nil {
		second.Close()
		t.Error("held twice")
	}
	if err := name.Close(); err != nil {
		t.Error(err)
	}
	if held, err := NameHeld(us.ID); held || err != nil {
		t.Errorf("held after it was closed: %t, %v", held, err)
	}
}

func TestWhatIsNoID(t *testing.T) {
	for _, id := range []string{"", "A", "a b", "a/b", "a\x00b", strings.Repeat("a", maxID+1)} {
		if _, err := NameHeld(id); err == nil {
			t.Errorf("%q was looked for", id)
		}
	}
}
