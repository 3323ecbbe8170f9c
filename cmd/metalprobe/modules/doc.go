// Package modules says which kernel modules an initramfs holds, what each needs
// and which hardware each is for. The image's builder writes an Index, and the
// machine's init reads it: it does what depmod and modprobe do elsewhere.
package modules
