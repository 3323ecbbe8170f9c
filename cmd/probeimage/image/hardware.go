package image

// wanted are the modules for the hardware of servers and virtual machines: network cards,
// disks and their controllers, their buses, and the power button. The modules on which
// these depend are added by themselves; and what an install mounts. There is nothing for USB, to which no disks or
// network cards of a server are attached.
var wanted = []string{
	// Buses, and other hardware of a platform.
	"virtio_pci", "virtio_mmio", "hv_vmbus", "vmd", "button", "evdev",
	// Algorithms that drivers request from the kernel's crypto by another name.
	"crc32c_generic", "crc32c_intel", "crct10dif_generic", "crct10dif_pclmul", "crc64_rocksoft",

	// Ethernet, by maker: Intel, Broadcom, NVIDIA, Emulex, Chelsio, Cisco, QLogic,
	// Solarflare, Aquantia, Realtek, AMD, Netronome, Pensando, and those of arm64
	// servers; then those of virtual machines.
	"e1000", "e1000e", "igb", "igc", "igbvf", "ixgbe", "ixgbevf", "i40e", "iavf", "ice", "idpf", "fm10k",
	"tg3", "bnx2", "bnx2x", "bnxt_en",
	"mlx4_en", "mlx5_core",
	"be2net", "cxgb4", "cxgb4vf", "enic", "qede", "qlcnic", "netxen_nic",
	"sfc", "sfc_siena", "atlantic", "r8169", "amd_xgbe", "nfp", "ionic",
	"hns3", "hclge", "hns_enet_drv", "nicpf", "nicvf", "rvu_nicpf", "mvneta", "mvpp2", "fsl_dpaa2_eth", "macb", "xgene_enet",
	"virtio_net", "vmxnet3", "hv_netvsc", "ena", "gve", "mana", "xen_netfront",

	// Disks and controllers.
	"sd_mod", "nvme", "ahci", "ata_piix", "ata_generic", "sata_mv", "sata_sil24",
	"megaraid_sas", "mpt3sas", "mpi3mr", "mptsas", "mptspi", "hpsa", "smartpqi", "aacraid", "arcmsr", "isci", "mvsas", "pm80xx",
	"hisi_sas_v3_hw", "3w_sas",
	"virtio_blk", "virtio_scsi", "vmw_pvscsi", "hv_storvsc", "xen_blkfront",
	"mmc_block", "sdhci_pci", "sdhci_acpi",

	// What an install mounts: the EFI system partition, with the character sets that FAT asks
	// for, the firmware's variables, and filesystems of images that take a seed. Btrfs, which
	// Flatcar's OEM filesystem may be, is larger than all of these together and is left out.
	"vfat", "nls_cp437", "nls_ascii", "nls_iso8859_1", "nls_utf8", "efivarfs", "ext4",
}
