package main

import (
	"net"
	"strings"
)

// notifySystemd tells the service manager of a change of state, such as READY=1, if it
// wants to know (sd_notify(3)).
func notifySystemd(socket, state string) error {
	if socket == "" {
		return nil
	}
	if name, ok := strings.CutPrefix(socket, "@"); ok {
		socket = "\x00" + name
	}
	c, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }() // what was written has gone
	_, err = c.Write([]byte(state))
	return err
}
