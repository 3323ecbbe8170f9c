package main

import (
	"net"
	"path/filepath"
	"testing"
	"time"

	"ingot/model/must"
)

func TestTheServiceManagerIsTold(t *testing.T) {
	for _, name := range []string{filepath.Join(t.TempDir(), "notify"), "@ingot-" + filepath.Base(t.TempDir()) + t.Name()} {
		socket := must.Get(net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"}))(t)
		defer socket.Close()
		if err := notifySystemd(name, "READY=1"); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got := make([]byte, 64)
		_ = socket.SetReadDeadline(time.Now().Add(5 * time.Second))
		n, err := socket.Read(got)
		if err != nil || string(got[:n]) != "READY=1" {
			t.Errorf("%s was told %q, %v", name, got[:n], err)
		}
	}
	if err := notifySystemd("", "READY=1"); err != nil {
		t.Errorf("without a service manager: %v", err)
	}
}
