package model

import (
	"strings"
	"testing"
)

func TestDigestsAreKeyed(t *testing.T) {
	const plain = "sha256:42c77778b9a5f8aeba9eb968e5412ef0e1a6a3183ff066fe47de4ac7578bc4c7"
	ours, theirs := NewDigestKey([]byte(strings.Repeat("a", 32))), NewDigestKey([]byte(strings.Repeat("b", 32)))
	// What is on record is compared with this for years: the form is not to change.
	const want = "n0a7cf142:ed8f873c2c78cd33993b689490237676ee0567d0bda7bf65fe291cccd440e894"
	if got := ours.For("team-a").Sum(plain); got != want || !ours.Made(got) {
		t.Errorf("the digest is %s, want %s", got, want)
	}
	for title, other := range map[string]string{
		"the digest under another key": theirs.Sum(plain),
		"that of another namespace":    ours.For("team-b").Sum(plain),
		"the digest of something else": ours.Sum(plain + "0"),
		"the plain digest":             plain,
	} {
		if other == ours.Sum(plain) {
			t.Errorf("%s is the same", title)
		}
	}
	if !ours.Made(ours.Sum(plain)) || ours.Made(theirs.Sum(plain)) || ours.Made(plain) || ours.Made("") {
		t.Error("digests under our key are not told from others")
	}
}

func TestWithoutKeyDigestsStayAsTheyAre(t *testing.T) {
	var none DigestKey
	if got := none.Sum("sha256:00"); got != "sha256:00" || !none.Made(got) || none.Made("k00000000:00") {
		t.Errorf("without a key the digest is %s", got)
	}
}
