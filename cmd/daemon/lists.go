package daemon

import (
	"cmp"
	"strings"
	"sync"
	"time"

	"ingot/bootsvc/imagecache"
	"ingot/model"
	"ingot/reconcile/report/query"
)

// maxLeaseRows is how many leases are shown at most: to read them keeps DHCP waiting.
const maxLeaseRows = 50_000

// listsKept is for how long rows that are made of no report are shown again.
const listsKept = time.Second

// kept are rows that were made a short while ago.
type kept[R any] struct {
	mu   sync.Mutex
	rows []R
	made time.Time
}

// get returns the rows, made anew if they are old.
func (k *kept[R]) get(now time.Time, read func() []R) []R {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.made.IsZero() || now.Sub(k.made) >= listsKept {
		k.rows, k.made = read(), now
	}
	return k.rows
}

// Networks implements admin.Fleet and page.Fleet.
func (f *fleet) Networks() []string {
	networks := f.daemon.opts.DHCP
	names := make([]string, len(networks))
	for i := range networks {
		names[i] = networks[i].Name
	}
	return names
}

// Leases implements admin.Fleet.
func (f *fleet) Leases() []*query.Lease {
	d := f.daemon
	if d.dhcp == nil {
		return nil
	}
	now := d.clock()
	return f.leases.get(now, func() []*query.Lease {
		leases, _ := d.dhcp.Leases(maxLeaseRows)
		return query.LeaseRows(leases, d.ownerOf, now)
	})
}

// ownerOf returns which server has a MAC address, "" for none.
func (d *daemon) ownerOf(mac string) string {
	holder, _ := d.registry.Find(mac)
	return string(holder.Server)
}

// Pools implements admin.Fleet.
func (f *fleet) Pools() []*query.Pool {
	d := f.daemon
	return f.pools.get(d.clock(), func() []*query.Pool { return query.PoolRows(d.pools()) })
}

// Images implements admin.Fleet.
func (f *fleet) Images() []*query.Image {
	d := f.daemon
	return f.images.get(d.clock(), func() []*query.Image {
		return imageRows(d.cache.Contents(), partsOf(d.registry.Observed()), d.inUse.Spare)
	})
}

// imagePart is what of an image a blob is.
type imagePart struct {
	image, part string
	armed       time.Time
}

// partsOf says which part of which image boot tickets pin each digest for, that of the newest
// ticket.
func partsOf(o *model.Observed) map[string]imagePart {
	parts := make(map[string]imagePart)
	for _, rec := range o.Servers {
		if rec.Boot.Ticket == nil {
			continue
		}
		img := &rec.Boot.Ticket.Image
		for _, l := range []struct {
			name  string
			layer *model.Layer
		}{{"kernel", img.Kernel}, {"initrd", img.Initrd}, {"squashfs", img.Squashfs}, {"uki", img.UKI}} {
			if l.layer == nil {
				continue
			}
			now, is := imagePart{img.Ref, l.name, rec.Boot.Ticket.ArmedAt}, parts[l.layer.Digest]
			if is.image == "" || cmp.Or(now.armed.Compare(is.armed), strings.Compare(is.image, now.image)) > 0 {
				parts[l.layer.Digest] = now
			}
		}
	}
	return parts
}

// imageRows are the rows of what is in the cache of images.
func imageRows(contents []imagecache.Content, parts map[string]imagePart, pinned func(digest string) bool) []*query.Image {
	rows := make([]*query.Image, len(contents))
	for i, c := range contents {
		row := &query.Image{
			Common: query.Common{Name: c.Digest, State: query.ImageComplete}, Image: cmp.Or(parts[c.Digest].image, c.From),
			Part: parts[c.Digest].part, Size: c.Size, Fetched: c.Fetched, Used: c.Used, Pinned: pinned(c.Digest),
		}
		if c.Fetched < c.Size {
			row.State = query.ImageFetching
		}
		rows[i] = query.Images.Ready(row)
	}
	return query.Images.Sorted(rows)
}
