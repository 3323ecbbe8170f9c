package config

import (
	"testing"
	"time"
)

func TestAge(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"90d": 90 * day, "1d": day, "0d": 0, "0": 0, "0s": 0, "36h": 36 * time.Hour, " 7d ": 7 * day,
	} {
		var a Age
		if err := a.UnmarshalText([]byte(text)); err != nil || time.Duration(a) != want {
			t.Errorf("%q is %v, %v", text, time.Duration(a), err)
		}
	}
	for _, text := range []string{"", "d", "90", "-1d", "1.5d", "90 days", "1000000d", "99999999999999999999d"} {
		var a Age
		if err := a.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q is taken for %v", text, time.Duration(a))
		}
	}
	for age, want := range map[Age]string{Age(90 * day): "90d", 0: "0s", Age(90 * time.Minute): "1h30m0s"} {
		if got := age.String(); got != want {
			t.Errorf("%d is written %q, want %q", age, got, want)
		}
		var back Age
		if err := back.UnmarshalText([]byte(want)); err != nil || back != age {
			t.Errorf("%q is read as %v, %v", want, back, err)
		}
	}
}

func TestHowMuchHistoryIsKeptIsReadFromTheFile(t *testing.T) {
	for text, want := range map[string]Age{"keep: 90d": Age(90 * day), "keep: 0": 0, "keep: 0s": 0, "branch: x": 0} {
		got, problem := load(t, "git: {url: /srv/metal.git}\nstatus: {"+text+"}\n")
		if problem != "" || got.Status.Keep != want {
			t.Errorf("%s: got %v, problem %s", text, got.Status.Keep, problem)
		}
	}
	_, problem := load(t, "git: {url: /srv/metal.git}\nstatus: {keep: 90}\n")
	if want := `ingot.yaml:2:16: status.keep: "90" is no age; write a whole number of days, such as 90d`; problem != want {
		t.Errorf("got  %s\nwant %s", problem, want)
	}
}
