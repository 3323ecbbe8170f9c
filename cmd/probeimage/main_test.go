package main

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ingot/cmd/probeimage/image"
)

func TestParse(t *testing.T) {
	o, reference, err := parse([]string{"--flavour=cloud", "--push", "127.0.0.1:5000/probe:1"}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	want := image.Options{Out: "dist/probe", Arch: "amd64", Flavour: "cloud", Version: "dev", Arguments: image.DefaultArguments}
	if diff := cmp.Diff(want, o); diff != "" || reference != "127.0.0.1:5000/probe:1" {
		t.Errorf("reference %s, options (-want +got):\n%s", reference, diff)
	}
	if _, _, err := parse([]string{"now"}, io.Discard); err == nil || !strings.Contains(err.Error(), `"now" is not expected`) {
		t.Errorf("an argument: %v", err)
	}
}

func TestShow(t *testing.T) {
	var b bytes.Buffer
	show(&b, image.Result{Release: "6.1", Kernel: "k", Initramfs: "i", Layout: "oci", Sizes: image.Sizes{Kernel: 8e6, Initramfs: 12.1e6}})
	want := "kernel        8.0 MB  k\ninitramfs    12.1 MB  i\ntogether     20.1 MB  Linux 6.1\nOCI layout            oci:latest\n"
	if b.String() != want {
		t.Errorf("got\n%swant\n%s", b.String(), want)
	}
}
