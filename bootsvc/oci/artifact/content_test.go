package artifact

import (
	"strings"
	"testing"

	"ingot/bootsvc/oci"
)

func program(machine string) string {
	return "MZ" + strings.Repeat("\x00", 0x3a) + "\x40\x00\x00\x00PE\x00\x00" + machine
}

func TestCheckStart(t *testing.T) {
	bzImage := strings.Repeat("\x00", 0x202) + "HdrS"
	armImage := strings.Repeat("\x00", 56) + "ARM\x64"
	amd64, arm64, i386 := program("\x64\x86"), program("\x64\xaa"), program("\x4c\x01")
	for name, tc := range map[string]struct{ mediaType, arch, start, want string }{
		"bzImage":                      {oci.MediaKernel, "amd64", bzImage, ""},
		"bzImage for arm64":            {oci.MediaKernel, "arm64", bzImage, "it is for amd64, not for arm64"},
		"arm64 Image":                  {oci.MediaKernel, "arm64", armImage, ""},
		"arm64 Image for amd64":        {oci.MediaKernel, "amd64", armImage, "it is for arm64, not for amd64"},
		"UEFI program as kernel":       {oci.MediaKernel, "arm64", arm64, ""},
		"text as kernel":               {oci.MediaKernel, "amd64", "hello world", `it begins with "hello wo": expected a Linux kernel`},
		"web page as kernel":           {oci.MediaKernel, "amd64", "\n<HTML>", "it is an HTML page"},
		"empty kernel":                 {oci.MediaKernel, "amd64", "", "it is empty"},
		"UEFI program":                 {oci.MediaUKI, "amd64", amd64, ""},
		"UEFI program of 32 bits":      {oci.MediaUKI, "amd64", i386, "it is for machine type 0x14c, not for amd64"},
		"UEFI program for amd64":       {oci.MediaUKI, "arm64", amd64, "it is for amd64, not for arm64"},
		"kernel without a PE header":   {oci.MediaUKI, "amd64", bzImage, "expected a UEFI program"},
		"program that ends early":      {oci.MediaUKI, "amd64", amd64[:0x44], "expected a UEFI program"},
		"program header out of bounds": {oci.MediaUKI, "amd64", "MZ" + strings.Repeat("\xff", 0x40), "expected a UEFI program"},
		"cpio":                         {oci.MediaInitramfs, "amd64", "070701", ""},
		"gzip":                         {oci.MediaInitramfs, "amd64", "\x1f\x8b\x08", ""},
		"zstd":                         {oci.MediaInitramfs, "arm64", "\x28\xb5\x2f\xfd", ""},
		"xz":                           {oci.MediaInitramfs, "amd64", "\xfd7zXZ\x00", ""},
		"web page as initramfs":        {oci.MediaInitramfs, "amd64", "<!doctype HTML>", "it is an HTML page"},
		"random bytes as initramfs":    {oci.MediaInitramfs, "amd64", "\x01\x02", `it begins with "\x01\x02": expected an initramfs`},
		"squashfs":                     {oci.MediaSquashfs, "amd64", "hsqs", ""},
		"text as squashfs":             {oci.MediaSquashfs, "amd64", "text", "expected a squashfs"},
	} {
		t.Run(name, func(t *testing.T) {
			switch err := CheckStart(tc.mediaType, tc.arch, []byte(tc.start)); {
			case tc.want == "" && err != nil:
				t.Errorf("got %v", err)
			case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}
