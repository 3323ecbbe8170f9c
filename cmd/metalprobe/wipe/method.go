package wipe

import (
	"slices"
	"time"

	"ingot/model"
)

// Method is a method of clearing a disk. Reports show its name.
type Method string

// The methods: those of a disk's own firmware, of the kernel, and of this program.
const (
	NVMeSanitizeBlock     Method = "nvme-sanitize-block"
	NVMeSanitizeCrypto    Method = "nvme-sanitize-crypto"
	NVMeSanitizeOverwrite Method = "nvme-sanitize-overwrite"
	NVMeFormat            Method = "nvme-format"        // Secure Erase Settings: user data erase
	NVMeFormatCrypto      Method = "nvme-format-crypto" // Secure Erase Settings: cryptographic erase

	ATASanitizeBlock     Method = "ata-sanitize-block"
	ATASanitizeCrypto    Method = "ata-sanitize-crypto"
	ATASanitizeOverwrite Method = "ata-sanitize-overwrite"
	ATAErase             Method = "ata-security-erase"
	ATAEraseEnhanced     Method = "ata-security-erase-enhanced"

	SCSISanitizeBlock     Method = "scsi-sanitize-block"
	SCSISanitizeCrypto    Method = "scsi-sanitize-crypto"
	SCSISanitizeOverwrite Method = "scsi-sanitize-overwrite"

	Discard       Method = "blkdiscard"    // what is read afterwards is up to the disk
	SecureDiscard Method = "blksecdiscard" // copies of the data are cleared as well
	ZeroOut       Method = "blkzeroout"    // the medium holds zeros afterwards

	Overwrite      Method = "overwrite"
	OverwriteEdges Method = "overwrite-edges"
)

// Abilities is what a disk says that its firmware can do. The zero value is that of a
// disk that says nothing.
type Abilities struct {
	// Offers are the methods that the firmware supports. An offered method may yet be
	// withheld now.
	Offers []Method
	// Withheld says why offered methods must not be used.
	Withheld map[Method]string
	// Estimate is how long the disk says that a method takes, where it says so.
	Estimate map[Method]time.Duration
	// Locked says why nothing can clear the disk as it is, "" if something can.
	Locked string
}

// preference is the order in which methods are tried for a wipe of the whole disk.
// Methods that reach cells without an address come first. Among these, methods that
// cannot leave a disk unusable after a power failure come first: a sanitize continues
// by itself, a security erase leaves the disk locked until the next wipe.
var preference = []Method{
	NVMeSanitizeBlock, NVMeSanitizeCrypto, NVMeSanitizeOverwrite, NVMeFormat, NVMeFormatCrypto,
	ATASanitizeBlock, ATASanitizeCrypto, ATASanitizeOverwrite, ATAEraseEnhanced, ATAErase,
	SCSISanitizeBlock, SCSISanitizeCrypto, SCSISanitizeOverwrite,
	SecureDiscard, ZeroOut, Overwrite,
}

// methods lists the methods to try in the given mode, until one works. For a quick wipe
// they are only an addition: the edges are overwritten after them in any case.
func (a Abilities) methods(mode string) []Method {
	var list []Method
	if mode != model.CleanupSecure {
		// A format that does more than to erase a key may take hours.
		if a.usable(NVMeFormatCrypto) {
			list = append(list, NVMeFormatCrypto)
		}
		return append(list, Discard)
	}
	for _, m := range preference {
		if !m.firmware() || a.usable(m) {
			list = append(list, m)
		}
	}
	return list
}

// usable reports whether the firmware offers a method that is not withheld.
func (a Abilities) usable(m Method) bool {
	return slices.Contains(a.Offers, m) && a.Withheld[m] == ""
}

func (m Method) firmware() bool {
	switch m {
	case Discard, SecureDiscard, ZeroOut, Overwrite, OverwriteEdges:
		return false
	default:
		return true
	}
}

func (a *Abilities) withhold(why string, methods ...Method) {
	if a.Withheld == nil {
		a.Withheld = make(map[Method]string)
	}
	for _, m := range methods {
		a.Withheld[m] = why
	}
}

// offer notes a method with the disk's estimate of its time, 0 if there is none.
func (a *Abilities) offer(m Method, estimate time.Duration) {
	a.Offers = append(a.Offers, m)
	if estimate > 0 {
		if a.Estimate == nil {
			a.Estimate = make(map[Method]time.Duration)
		}
		a.Estimate[m] = estimate
	}
}
