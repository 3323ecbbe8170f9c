package daemon

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"ingot/bootsvc"
	"ingot/bootsvc/dhcp"
	"ingot/bootsvc/diskimage"
	"ingot/bootsvc/ignition"
	"ingot/bootsvc/imagecache"
	"ingot/bootsvc/oci"
	"ingot/cmd/daemon/adapter"
)

// makeBoots makes what prepares boots, and the boot service.
func (d *daemon) makeBoots(bootURL, registryURL string) (err error) {
	o := &d.opts
	images := o.Images()
	images.Inside, images.Pinned = d.isBMC, adapter.LastPinned(d.registry.Observed)
	images.Log, images.Registerer = d.log, d.metrics
	d.images, err = oci.New(images)
	if err != nil {
		return err
	}
	compiler, err := ignition.New(ignition.Options{ProbeTemplateFile: o.Discovery.IgnitionTemplateFile, ProbeImage: o.Discovery.Image})
	if err != nil {
		return fmt.Errorf("discovery.ignitionTemplateFile: %w", err)
	}
	if err = d.openCache(); err != nil {
		return err
	}
	if err = d.openDisks(); err != nil {
		return err
	}
	d.boots = &adapter.Boots{
		Registry: d.registry, Images: d.images, Cache: d.cache, Disks: d.disks, Log: d.log, Ignition: compiler,
		RegistryURL: registryURL, Desired: d.desired,
	}
	if slices.ContainsFunc(o.DHCP, dhcp.Network.Boots) {
		d.boots.UnsignedLoader = d.network.loaders.Unsigned
	}
	d.bootsvc, err = bootsvc.NewServer(bootsvc.Options{
		URL: bootURL, URLFromHost: o.Boot.URL == "", Tickets: d.boots, Token: d.registry.TokenKey.Config, Images: d.images,
		Cache: d.cache, DiskImages: d.boots, Loaders: d.network.loaders, Files: d.files, AddressRules: d.clients.addressRules(), DiskBoot: d.boots.DiskBoot,
		Rescue: bootsvc.RescueScript{File: o.Boot.Rescue.Script, Whom: d.rescue},
		Settle: func(ctx context.Context) { d.network.stages.Settle(ctx) }, Told: d.clients.followAddress, Log: d.log, Registerer: d.metrics, Clock: d.clock,
	})
	return err
}

// keepFree is how much of their disk the caches of images leave free, in bytes: the store is on the
// same one unless they have folders of their own, and nothing goes on once it cannot be written.
const keepFree = 1 << 30

// openCache opens the cache of image layers.
func (d *daemon) openCache() (err error) {
	dir := d.opts.Boot.CacheDir
	if dir == "" {
		dir = filepath.Join(d.opts.State.Dir, "images")
	}
	d.inUse = &adapter.Pins{Observed: d.registry.Observed}
	d.cache, err = imagecache.Open(imagecache.Options{
		Dir: dir, MaxBytes: int64(d.opts.Boot.CacheSize), KeepFree: keepFree, MaxFetches: d.opts.Boot.MaxConcurrentDownloads, Spare: d.inUse.Spare,
		Log: d.log, Registerer: d.metrics,
	})
	if err != nil {
		return fmt.Errorf("boot.cacheDir: %w", err)
	}
	return nil
}

// openDisks opens the cache of disk images.
func (d *daemon) openDisks() (err error) {
	dir := d.opts.Boot.DiskCacheDir
	if dir == "" {
		dir = filepath.Join(d.opts.State.Dir, "disks")
	}
	d.disks, err = diskimage.Open(diskimage.Options{
		Dir: dir, MaxBytes: int64(d.opts.Boot.DiskCacheSize), KeepFree: keepFree, MaxImageBytes: int64(d.opts.Boot.MaxImageSize), Spare: d.inUse.Spare,
		Log: d.log, Registerer: d.metrics,
	})
	if err != nil {
		return fmt.Errorf("boot.diskCacheDir: %w", err)
	}
	return nil
}
