package model

import "errors"

// ServerReport is what a server reports with its boot ticket: a *ProbeReport, a
// *BootState, a *WipeReport or a *WipeProgress.
type ServerReport interface{ serverReport() }

func (*ProbeReport) serverReport()  {}
func (*BootState) serverReport()    {}
func (*WipeReport) serverReport()   {}
func (*WipeProgress) serverReport() {}

// ErrTicketSpent is the error of whoever comes with a boot ticket that is no longer the
// server's, or no longer open.
var ErrTicketSpent = errors.New("the boot ticket is spent")
