package bootsvc

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"

	"ingot/bootsvc/netboot"
	"ingot/model"
)

// RescueScript is an iPXE script of the operator's, and whom it is served to.
type RescueScript struct {
	File string
	Whom *netboot.Rescue // nil = nobody
}

// maxRescueScript bounds the script in bytes.
const maxRescueScript = 64 << 10

// rescueMagic begins every iPXE script.
const rescueMagic = "#!ipxe"

// Read returns the script, whose first line is followed by where the boot service is. The
// file is read each time, so that it can be changed while machines boot.
func (r RescueScript) Read(base string) (string, error) {
	f, err := os.Open(r.File)
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxRescueScript+1))
	switch {
	case err != nil:
		return "", err
	case len(text) > maxRescueScript:
		return "", fmt.Errorf("%s is longer than %d bytes", r.File, maxRescueScript)
	}
	first, rest, ok := bytes.Cut(text, []byte("\n"))
	if !ok || string(bytes.TrimSpace(first)) != rescueMagic {
		return "", fmt.Errorf("%s is no iPXE script: its first line must be %s", r.File, rescueMagic)
	}
	return rescueMagic + "\nset ipxe-svc " + base + "\n" + string(rest), nil
}

// rescueStranger answers a machine that is no known server with the rescue script, if it is
// served to such. What the machine says of itself is not enough: nothing may point to a
// known server at its address either.
func (s *Server) rescueStranger(r *request) bool {
	whom := s.rescue.Whom
	if whom == nil {
		return false
	}
	_, mac, known := s.gate.rules.Near(r.client)
	return !known && whom.Stranger(r.id, mac) && s.serveRescue(r)
}

// serveRescue answers with the rescue script, unless that cannot be read.
func (s *Server) serveRescue(r *request) bool {
	script, err := s.rescue.Read(s.links.of(r))
	if err != nil {
		s.log.Error("the rescue script cannot be served", "err", err)
		return false
	}
	if r.Method == http.MethodGet {
		s.metrics.rescues.Inc()
		if s.gate.refusalLog.allow(loggedRefusal{model.ServerName(r.id), rescued}, s.clock()) {
			s.log.LogAttrs(r.Context(), slog.LevelInfo, "a machine without a boot ticket is served the rescue script",
				slog.String("id", r.id), slog.String("client", r.client.String()))
		}
	}
	r.text(script)
	return true
}

// rescued stands among reasons of refusals, which are logged as rarely, for a machine that was served the
// rescue script.
const rescued = model.TicketRefusal("rescued")

// Check returns why the script cannot be served now.
func (r RescueScript) Check() error {
	if r.File == "" {
		return errors.New("the rescue script is no file")
	}
	_, err := r.Read("http://check")
	return err
}
