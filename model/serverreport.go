package model

import "errors"

// ServerReport is what a server reports with its boot ticket: a *ProbeReport, a
// *BootState, a *WipeReport, a *WipeProgress or a *ProbeInstall.
type ServerReport interface{ serverReport() }

func (*ProbeReport) serverReport()  {}
func (*BootState) serverReport()    {}
func (*WipeReport) serverReport()   {}
func (*WipeProgress) serverReport() {}
func (*ProbeInstall) serverReport() {}

// ErrTicketSpent is the error of whoever comes with a boot ticket that is no longer the
// server's, or no longer open.
var ErrTicketSpent = errors.New("the boot ticket is spent")
