package report

import "ingot/model"

// CleanupStatus is how far the wipe of a server's disks is, as the status branch
// shows it: in steps of ten per cent, so that a wipe costs few commits.
type CleanupStatus struct {
	Mode  string       `json:"mode"`
	Disks []DiskStatus `json:"disks"`
}

// DiskStatus is how far the wipe of one disk is.
type DiskStatus struct {
	Name      string `json:"name"`
	Serial    string `json:"serial,omitempty"`
	SizeBytes uint64 `json:"sizeBytes,omitempty"`
	Method    string `json:"method,omitempty"`
	Percent   *int   `json:"percent,omitempty"` // nil = the disk does not say
	Result    string `json:"result,omitempty"`
}

// cleanupOf is a wipe as the status branch shows it, nil while there is none.
func cleanupOf(w *model.WipeProgress) *CleanupStatus {
	if w == nil {
		return nil
	}
	st := &CleanupStatus{Mode: w.Mode}
	for _, d := range w.Disks {
		st.Disks = append(st.Disks, DiskStatus{d.Name, d.Serial, d.SizeBytes, d.Method, d.Tens(), d.Result})
	}
	return st
}
