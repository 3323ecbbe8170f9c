package daemon

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"

	"ingot/bootsvc/imagecache"
	"ingot/model"
	"ingot/reconcile/report"
)

// maxLeaseRows is how many leases are shown at most: to read them keeps DHCP waiting.
const maxLeaseRows = 50_000

// listsKept is how long rows that are in no report are shown again.
const listsKept = time.Second

// kept are rows that were read a short while ago.
type kept[R any] struct {
	mu   sync.Mutex
	rows []R
	made time.Time
}

// get returns the rows, read again if they are old.
func (k *kept[R]) get(now time.Time, read func() []R) []R {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.made.IsZero() || now.Sub(k.made) >= listsKept {
		k.rows, k.made = read(), now
	}
	return k.rows
}

// Leases implements admin.Fleet.
func (f *fleet) Leases() []report.LeaseRow {
	d := f.daemon
	if d.clients.dhcp == nil {
		return nil
	}
	now := d.clock()
	return f.leases.get(now, func() []report.LeaseRow {
		leases, _ := d.clients.dhcp.Leases(maxLeaseRows)
		return report.LeaseRows(leases, d.clients.ownerOf, now)
	})
}

// ownerOf returns which server has a MAC address, "" for none.
func (c *clients) ownerOf(mac string) model.ServerName {
	holder, _ := c.registry.Boots.Find(mac)
	return holder.Server
}

// Pools implements admin.Fleet.
func (f *fleet) Pools() []report.PoolRow {
	d := f.daemon
	return f.pools.get(d.clock(), func() []report.PoolRow { return report.PoolRows(d.network.pools()) })
}

// Images implements admin.Fleet.
func (f *fleet) Images() []report.ImageRow {
	d := f.daemon
	return f.images.get(d.clock(), func() []report.ImageRow {
		return imageRows(d.cache.Contents(), partsOf(d.registry.Observed()), d.inUse.Spare)
	})
}

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

func imageRows(contents []imagecache.Content, parts map[string]imagePart, pinned func(digest string) bool) []report.ImageRow {
	rows := make([]report.ImageRow, len(contents))
	for i, c := range contents {
		rows[i] = report.ImageRow{
			Row: report.Row{Name: c.Digest, State: report.ImageComplete}, Image: cmp.Or(parts[c.Digest].image, c.From),
			Part: parts[c.Digest].part, Size: c.Size, Fetched: c.Fetched, Used: c.Used, Pinned: pinned(c.Digest),
		}
		if c.Fetched < c.Size {
			rows[i].State = report.ImageFetching
		}
	}
	slices.SortFunc(rows, func(a, b report.ImageRow) int { return strings.Compare(a.Name, b.Name) })
	return rows
}
