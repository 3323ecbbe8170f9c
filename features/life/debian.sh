#!/usr/bin/env bash
# Makes an ordinary cloud image of Debian in the folder $1: disk.raw, which BIOS and UEFI boot.
# It has a GPT with an EFI system partition and a root filesystem, and cloud-init, as the
# images that Debian publishes. No filesystem is mounted; it takes root for mmdebstrap.
set -euo pipefail
mkdir -p "$1"
cd "$1"

packages=linux-image-cloud-amd64,initramfs-tools,systemd-sysv,udev,dbus,iproute2,cloud-init,cloud-guest-utils,e2fsprogs,netbase,openssh-server
mmdebstrap --mode=root --variant=minbase --include="$packages" \
	--aptopt='Acquire::Languages "none"' \
	--dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
	bookworm root

echo 'LABEL=root / ext4 defaults,x-systemd.growfs 0 1' > root/etc/fstab
: > root/etc/machine-id
echo 'locale: false' > root/etc/cloud/cloud.cfg.d/90-locale.cfg # package locales is missing
ln -sf /lib/systemd/system/systemd-networkd.service root/etc/systemd/system/multi-user.target.wants/systemd-networkd.service
rm -rf root/var/cache/apt/archives/*.deb root/var/lib/apt/lists/* root/etc/resolv.conf
arguments="root=LABEL=root ro console=ttyS0,115200 panic=10"

# The EFI system partition: BIOS starts syslinux in it, UEFI the loader of systemd.
truncate --size=96M esp
mkfs.vfat -n ESP esp
mmd -i esp ::/EFI ::/EFI/BOOT ::/loader ::/loader/entries ::/syslinux
mcopy -i esp root/boot/vmlinuz-* ::/vmlinuz
mcopy -i esp root/boot/initrd.img-* ::/initrd.img
printf 'title Debian\nlinux /vmlinuz\ninitrd /initrd.img\noptions %s\n' "$arguments" | mcopy -i esp - ::/loader/entries/debian.conf
printf 'SERIAL 0 115200\nDEFAULT debian\nPROMPT 0\nLABEL debian\nLINUX /vmlinuz\nINITRD /initrd.img\nAPPEND %s\n' "$arguments" | mcopy -i esp - ::/syslinux/syslinux.cfg
mkdir loader
(cd loader && apt-get download -q systemd-boot-efi && dpkg-deb -x systemd-boot-efi_*.deb .)
mcopy -i esp loader/usr/lib/systemd/boot/efi/systemd-bootx64.efi ::/EFI/BOOT/BOOTX64.EFI
syslinux --install --directory syslinux esp

truncate --size=544M root.ext4
mke2fs -q -t ext4 -L root -d root root.ext4

# 1 MiB for the partition table, the two filesystems, 1 MiB for the table's copy.
truncate --size=642M disk.raw
sfdisk --quiet disk.raw <<TABLE
label: gpt
start=1MiB, size=96MiB, type=uefi, attrs=LegacyBIOSBootable
size=544MiB, type=linux
TABLE
dd if=/usr/lib/syslinux/mbr/gptmbr.bin of=disk.raw bs=440 count=1 conv=notrunc status=none
dd if=esp of=disk.raw bs=1M seek=1 conv=notrunc,sparse status=none
dd if=root.ext4 of=disk.raw bs=1M seek=97 conv=notrunc,sparse status=none
rm -rf root esp loader root.ext4
