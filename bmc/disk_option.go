package bmc

import (
	"context"
	"slices"
	"strings"

	"ingot/model"
)

// enableDisks switches on those boot options of a machine that are of disks and off. There is
// firmware that switches off what an installer has added, and then boots from no disk, whatever
// the override says. It is an attempt: what a BMC does not show, or refuses, stays as it is. The
// error is that it is no longer the machine that is meant.
func (c *client) enableDisks(ctx context.Context, t model.SystemTarget) error {
	options := path(c.state(t.URI).boot.Options.ID)
	if options == "" {
		return nil
	}
	var off []member
	err := c.eachBootOption(ctx, options, func(m member, o bootOption) bool {
		if o.BootOptionEnabled != nil && !*o.BootOptionEnabled && o.isDisk() {
			off = append(off, m)
		}
		return true
	})
	if err != nil {
		c.log.Debug("whether a boot option is off cannot be read", "system", t.URI, "err", err)
	}
	if _, err := c.identify(ctx, t); err != nil { // reading the options may have taken minutes
		return err
	}
	for _, m := range off {
		if _, err := c.write(ctx, t.URI, m.uri, map[string]any{"BootOptionEnabled": true}); err != nil {
			c.log.Warn("the boot option of a disk is off, and cannot be switched on", "option", m.uri, "err", err)
			continue
		}
		c.log.Info("the boot option of a disk was off, and is switched on", "option", m.uri)
	}
	return nil
}

// diskNodes begin the node of a disk in a device path as text (UEFI 2.10 §10.6).
var diskNodes = []string{"HD(", "NVMe(", "Sata(", "Ata(", "Scsi(", "SAS(", "SasEx(", "UFS(", "eMMC("}

func (o bootOption) isDisk() bool {
	return slices.ContainsFunc(strings.Split(o.UefiDevicePath, "/"), func(node string) bool {
		return slices.ContainsFunc(diskNodes, func(disk string) bool { return strings.HasPrefix(node, disk) })
	})
}
