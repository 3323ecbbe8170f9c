package proposal

import "ingot/model"

// Firmware is what DHCP learned of the server's firmware when it last booted from the
// network, nil if nothing.
func Firmware(s *Server) *model.BootFirmware {
	if p := s.Observed.Progress[s.Name]; p != nil {
		return p.Firmware
	}
	return nil
}
