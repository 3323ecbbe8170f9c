package addresses

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	"ingot/bootsvc/netboot"
	"ingot/model"
)

// Loaders are the kinds of boot loaders that Git gives servers and network cards.
type Loaders struct {
	Desired func() *model.Desired // nil while Git was not read

	mu     sync.Mutex // guards what is below
	of     *model.Desired
	byCard map[string]netboot.LoaderKind // by MAC address
}

// Kind returns the kind for a server, "" if Git gives none; else that of the network card
// that asks.
func (l *Loaders) Kind(server model.ServerName, mac string) netboot.LoaderKind {
	d := l.Desired()
	if d == nil {
		return ""
	}
	var own netboot.LoaderKind
	if s := d.Servers[server]; s != nil {
		own = netboot.LoaderKind(s.Annotations[model.AnnotationBootLoader])
	}
	return cmp.Or(own, l.ofCard(d, mac))
}

func (l *Loaders) ofCard(d *model.Desired, mac string) netboot.LoaderKind {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.of != d {
		l.of, l.byCard = d, make(map[string]netboot.LoaderKind)
		for _, name := range slices.Sorted(maps.Keys(d.Endpoints)) { // of several with one card, the last that has a kind
			e := d.Endpoints[name]
			if kind := e.Annotations[model.AnnotationBootLoader]; kind != "" && e.Spec.MACAddress != "" {
				l.byCard[e.Spec.MACAddress] = netboot.LoaderKind(kind)
			}
		}
	}
	return l.byCard[mac]
}
