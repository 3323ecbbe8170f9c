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
	"time"

	"ingot/model"
)

func TestJudge(t *testing.T) {
	ours := model.Holder{ID: "us", Host: "h1", Machine: "m1", Boot: "b1", Namespace: "n1"}
	like := func(change func(*model.Holder)) model.Holder {
		h := ours
		h.ID = "them"
		change(&h)
		return h
	}
	same := like(func(*model.Holder) {})
	elsewhere := like(func(h *model.Holder) { h.Host, h.Machine, h.Boot, h.Namespace = "h2", "m2", "b2", "n2" })
	container := like(func(h *model.Holder) { h.Host, h.Machine, h.Boot, h.Namespace = "c0ffee", "", "b1", "n2" })
	lastOn := func(machine string) model.Holder { return model.Holder{ID: "them", Machine: machine} }
	other := model.Holder{ID: "other", Machine: "m1"}
	rebooted := like(func(h *model.Holder) { h.Boot = "b0" })

	tests := map[string]struct {
		theirs, last model.Holder
		name         Name
		want         Life
	}{
		"a branch that nobody wrote, while our store had one": {
			theirs: model.Holder{},
			last:   other, name: NameFree, want: Dead,
		},
		"one on another machine of the same name": {
			theirs: like(func(h *model.Holder) { h.Machine, h.Boot = "m2", "b2" }),
			name:   NameUnknown, want: PerhapsAlive,
		},
		"a branch that nobody wrote": {theirs: model.Holder{}, name: NameUnknown, want: Dead},
		"this process itself":        {theirs: ours, name: NameUnknown, want: Dead},
		"one on another machine":     {theirs: elsewhere, name: NameUnknown, want: PerhapsAlive},
		"one on another machine, while our store had another": {
			theirs: elsewhere,
			last:   other, name: NameUnknown, want: PerhapsAlive,
		},
		"the store's last one":                       {theirs: same, last: lastOn("m1"), name: NameFree, want: Dead},
		"the store's last one, in another container": {theirs: container, last: lastOn(""), name: NameUnknown, want: Dead},
		"the last one of a store that was copied to this machine": {
			theirs: elsewhere,
			last:   lastOn("m2"), name: NameUnknown, want: PerhapsAlive,
		},
		"the last one of a store that was copied on this machine": {
			theirs: same,
			last:   lastOn("m1"), name: NameTaken, want: Alive,
		},
		"one before this machine lost power": {theirs: rebooted, name: NameUnknown, want: Dead},
		"one on a machine that has the same image as ours": {
			theirs: like(func(h *model.Holder) { h.Host, h.Boot = "h2", "b2" }),
			name:   NameUnknown, want: PerhapsAlive,
		},
		"one whose boot is not known": {
			theirs: like(func(h *model.Holder) { h.Boot = "" }),
			name:   NameFree, want: PerhapsAlive,
		},
		"one whose machine is not known": {
			theirs: like(func(h *model.Holder) { h.Machine = "" }),
			name:   NameFree, want: PerhapsAlive,
		},
		"one in another network namespace": {
			theirs: like(func(h *model.Holder) { h.Namespace = "n2" }),
			name:   NameFree, want: PerhapsAlive,
		},
		"one whose name is free":                {theirs: same, name: NameFree, want: Dead},
		"one whose name could not be asked for": {theirs: same, name: NameUnknown, want: PerhapsAlive},
		"one whose name is taken":               {theirs: same, name: NameTaken, want: Alive},
		"a name that is taken where it says nothing of the holder": {
			theirs: elsewhere,
			name:   NameTaken, want: PerhapsAlive,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, why := Judge(test.theirs, ours, test.last, test.name)
			if got != test.want || why == "" {
				t.Errorf("judged %d, %q, want %d", got, why, test.want)
			}
		})
	}

	// What neither of two knows of itself is not the same of both.
	unknown := map[string]struct {
		forget       func(*model.Holder)
		theirs, last model.Holder
		want         Life
	}{
		"machine": {forget: func(h *model.Holder) { h.Machine = "" }, theirs: same, want: PerhapsAlive},
		"machine, of another boot": {
			forget: func(h *model.Holder) { h.Machine = "" },
			theirs: rebooted, want: PerhapsAlive,
		},
		"machine, the store's last": {
			forget: func(h *model.Holder) { h.Machine = "" },
			theirs: same, last: lastOn("m1"), want: Dead,
		},
		"boot":      {forget: func(h *model.Holder) { h.Boot = "" }, theirs: same, want: PerhapsAlive},
		"namespace": {forget: func(h *model.Holder) { h.Namespace = "" }, theirs: same, want: PerhapsAlive},
	}
	for name, test := range unknown {
		t.Run("unknown "+name, func(t *testing.T) {
			we := ours
			test.forget(&test.theirs)
			test.forget(&we)
			if got, why := Judge(test.theirs, we, test.last, NameFree); got != test.want {
				t.Errorf("judged %d, %q, want %d", got, why, test.want)
			}
		})
	}
}

// Only one that is known to be dead may not live.
func TestMayLive(t *testing.T) {
	ours := model.Holder{ID: "us", Host: "h1", Machine: "m1", Boot: "b1", Namespace: "n1"}
	elsewhere := model.Holder{ID: "them", Host: "h2", Machine: "m2", Boot: "b2", Namespace: "n2"}
	unasked := ours
	unasked.ID = "no ID, so its name cannot be asked for"
	for name, test := range map[string]struct {
		theirs, last model.Holder
		want         bool
	}{
		"one on another machine":             {theirs: elsewhere, want: true},
		"one whose name cannot be asked for": {theirs: unasked, want: true},
		"the store's last one":               {theirs: elsewhere, last: model.Holder{ID: "them"}},
	} {
		t.Run(name, func(t *testing.T) {
			if may, why := MayLive(test.theirs, ours, test.last); may != test.want {
				t.Errorf("may live: %t, %s", may, why)
			}
		})
	}
}

// A process that is too busy to answer lives.
func TestANameThatDoesNotAnswer(t *testing.T) {
	us, err := ThisHolder(0, 0)
	if err != nil {
		t.Fatal(err)
	}
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Close(fd) }()
	if err := errors.Join(syscall.Bind(fd, &syscall.SockaddrUnix{Name: namePrefix + us.ID}), syscall.Listen(fd, 0)); err != nil {
		t.Fatal(err)
	}
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
	a, err := ThisHolder(time.Minute, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	b, err := ThisHolder(time.Minute, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if a.ID == b.ID || a.Interval != time.Minute || a.TakeOverAfter != time.Hour || a.Host == "" {
		t.Errorf("holders %+v and %+v", a, b)
	}
	a.ID = b.ID
	if a != b {
		t.Errorf("two processes of one machine: %+v and %+v", a, b)
	}
	shown, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
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

// nameVariable has this test's program hold a name until it is killed.
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
	us, err := ThisHolder(time.Minute, 0)
	if err != nil {
		t.Fatal(err)
	}
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
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 8)); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		held(true)
	}
	if us.Machine != "" && us.Boot != "" && us.Namespace != "" {
		if may, why := MayLive(them, us, model.Holder{}); !may {
			t.Errorf("taken for dead: %s", why)
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	held(false)
	if us.Machine != "" && us.Boot != "" && us.Namespace != "" {
		if may, why := MayLive(them, us, model.Holder{}); may {
			t.Errorf("taken for alive: %s", why)
		}
	}
}

func TestANameIsHeldOnce(t *testing.T) {
	us, err := ThisHolder(0, 0)
	if err != nil {
		t.Fatal(err)
	}
	name, err := HoldName(us.ID)
	if err != nil {
		t.Fatal(err)
	}
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
