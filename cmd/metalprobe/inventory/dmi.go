package inventory

import "ingot/model"

// system reads the kernel's copy of SMBIOS types 0 to 2. A machine without SMBIOS, as
// many with a device tree, has none of it.
func (h *Host) system() model.ProbeSystemInfo {
	id := func(name string) string { return h.text("sys/class/dmi/id", name) }
	return model.ProbeSystemInfo{
		BIOSInformation: model.ProbeBIOS{
			Vendor: id("bios_vendor"), Version: id("bios_version"), Date: id("bios_date"),
		},
		SystemInformation: model.ProbeSystem{
			Manufacturer: id("sys_vendor"), ProductName: id("product_name"), Version: id("product_version"),
			SerialNumber: id("product_serial"), UUID: id("product_uuid"),
			SKUNumber: id("product_sku"), Family: id("product_family"),
		},
		BoardInformation: model.ProbeBoard{
			Manufacturer: id("board_vendor"), Product: id("board_name"), Version: id("board_version"),
			SerialNumber: id("board_serial"), AssetTag: id("board_asset_tag"),
		},
	}
}
