package daemon

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"ingot/bootsvc"
	"ingot/bootsvc/cachedir"
	"ingot/bootsvc/dhcp"
	"ingot/bootsvc/diskimage"
	"ingot/bootsvc/ignition"
	"ingot/bootsvc/imagecache"
	"ingot/bootsvc/oci"
	"ingot/cmd/daemon/adapter"
	"ingot/model"
)

func (d *daemon) makeBoots(bootURL, registryURL string, compiler *ignition.Compiler) (err error) {
	o := &d.opts
	images := o.Images()
	images.Inside, images.Pinned = d.isBMC, adapter.LastPinned(d.registry.Observed)
	images.Log, images.Registerer = d.log, d.metrics
	d.images, err = oci.New(images)
	if err != nil {
		return err
	}
	if err = d.openCache(); err != nil {
		return err
	}
	keys, _ := model.ParseSSHKeys(strings.Join(o.Boot.SSHKeys, "\n"))
	d.boots = &adapter.Boots{
		Registry: d.registry, Images: d.images, Cache: d.cache, Disks: d.disks, Log: d.log, Ignition: compiler,
		RegistryURL: registryURL, Desired: d.desired, SSHKeys: keys,
	}
	if slices.ContainsFunc(o.DHCP, dhcp.Network.Boots) {
		d.boots.UnsignedLoader = d.network.loaders.Unsigned
	}
	d.bootsvc, err = bootsvc.NewServer(bootsvc.Options{
		URL: bootURL, URLFromHost: o.Boot.URL == "", Tickets: d.boots, Token: d.registry.TokenKey.Config, Images: d.images,
		Cache: d.cache, DiskImages: d.boots, Loaders: d.network.loaders, Files: d.files, AddressRules: d.clients.addressRules(), DiskBoot: d.boots.DiskBoot,
		Rescue: bootsvc.RescueScript{File: o.Boot.Rescue, Whom: d.rescue},
		Settle: func(ctx context.Context) { d.network.stages.Settle(ctx) }, Told: d.clients.followAddress, Log: d.log, Registerer: d.metrics, Clock: d.clock,
	})
	return err
}

// keepFree is how many bytes of its disk the image cache leaves free: the store is on the same disk unless the cache
// has a folder of its own, and nothing goes on once the store cannot be written.
const keepFree = 1 << 30

// openCache opens the cache of image layers and disk images.
func (d *daemon) openCache() (err error) {
	d.inUse = &adapter.Pins{Observed: d.registry.Observed}
	d.cacheDir, err = cachedir.Open(cachedir.Options{
		Path:     cmp.Or(d.opts.Boot.CacheDir, filepath.Join(d.opts.State.Dir, "images")),
		MaxBytes: int64(d.opts.Boot.CacheSize), KeepFree: keepFree, Pinned: d.inUse.Spare, Registerer: d.metrics,
	})
	if err != nil {
		return fmt.Errorf("boot.cacheDir: %w", err)
	}
	if d.cache, err = imagecache.Open(imagecache.Options{Dir: d.cacheDir, Log: d.log, Registerer: d.metrics}); err != nil {
		return err
	}
	d.disks, err = diskimage.Open(diskimage.Options{Dir: d.cacheDir, Log: d.log, Registerer: d.metrics})
	return err
}
