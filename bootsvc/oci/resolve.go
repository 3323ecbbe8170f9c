package oci

import (
	"context"
	_ "crypto/sha512" // a digest algorithm that references may use
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/singleflight"
	"oras.land/oras-go/v2/registry/remote/auth"

	"ingot/bootsvc/internal/lru"
	"ingot/model"
)

// Options are the options of New.
type Options struct {
	// Registries are the hosts that images may come from; without any, every host may be used. Link-local
	// and cloud metadata addresses are always refused, and this machine itself unless it is listed or the reference
	// names it literally (localhost, 127.0.0.1, [::1]).
	Registries []Registry
	// ImageDirs are the folders, as absolute paths, that images in OCI image layouts may lie in; empty
	// allows none.
	ImageDirs []string
	// Own are the images that the configuration itself names. Their registries may be on this machine and in the
	// networks of BMCs, like those in Registries.
	Own []string
	// Inside reports whether an address belongs to BMCs, where only listed registries may be; nil = none does.
	Inside func(netip.Addr) bool
	// CAFile holds certificates, in PEM form, that registries are trusted by beside the
	// system's authorities. It is read again when it changes.
	CAFile string
	// CredentialsFile is a docker config.json with pull credentials, which is read again
	// whenever a registry asks for some. Its credential helpers are not run. Empty means
	// anonymous.
	CredentialsFile string
	// Helper gives the credentials of a registry, for a person's own, when there is no
	// CredentialsFile; nil gives none.
	Helper auth.CredentialFunc
	// Pinned returns the image that a reference meant for an architecture when a boot
	// ticket last pinned it, for the time that its registry cannot be reached. It is
	// asked for what this process has not resolved itself; nil means that nothing is
	// known from before.
	Pinned func(ref, architecture string) (model.PinnedImage, bool)
	// Timeout bounds a whole Resolve, and the wait for a registry's next bytes
	// while a layer is streamed. Zero means 30 seconds.
	Timeout time.Duration

	Log        *slog.Logger
	Registerer prometheus.Registerer

	open bool // any registry is as if the configuration named it
}

// Registry is a registry that the configuration lists.
type Registry struct {
	Host  string `json:"host"`  // host or host:port; Docker Hub by any of its names
	Plain bool   `json:"plain"` // use HTTP without TLS
}

// Images resolves image references and fetches layers from their registries. It
// is safe for concurrent use.
type Images struct {
	registries map[string]bool // listed registries, and whether they use HTTP without TLS
	layouts    layouts
	before     func(ref, architecture string) (model.PinnedImage, bool)
	timeout    time.Duration
	log        *slog.Logger
	egress     egress
	blobs      egressTransport // to registries
	files      egressTransport // to the servers of URLs
	retries    *retries
	login      *login
	metrics    metrics
	asking     singleflight.Group
	life       context.Context // ends with Close
	end        context.CancelFunc
	known      *lru.Cache[imageKey, model.PinnedImage] // what references meant last
}

// imageKey is what a resolution depends on.
type imageKey struct{ ref, architecture string }

// New returns Images with no connection made yet. It fails when the list of
// registries or the credentials file cannot be used.
func New(o Options) (*Images, error) {
	i := &Images{
		layouts:    layouts{o.ImageDirs},
		registries: make(map[string]bool),
		before:     o.Pinned,
		timeout:    o.Timeout,
		log:        logger(o.Log),
		metrics:    newMetrics(o.Registerer),
		known:      lru.New[imageKey, model.PinnedImage](256),
	}
	i.life, i.end = context.WithCancel(context.Background())
	if i.before == nil {
		i.before = func(string, string) (model.PinnedImage, bool) { return model.PinnedImage{}, false }
	}
	if i.timeout <= 0 {
		i.timeout = 30 * time.Second
	}
	i.egress = egress{inside: o.Inside, named: registriesOf(o.Own), open: o.open}
	for _, r := range o.Registries {
		host, err := model.ParseRegistry(r.Host)
		if err != nil {
			return nil, fmt.Errorf("boot.registries: %w", err)
		}
		i.registries[host] = r.Plain
		i.egress.named = append(i.egress.named, host)
		if !r.Plain {
			i.egress.here = append(i.egress.here, host)
		}
	}
	credentials := credentialsFile{o.CredentialsFile, o.Helper}
	ofFiles := i.egress
	ofFiles.closed = len(i.registries) > 0
	var err error
	if i.blobs, err = newEgress(i.egress, i.timeout, o.CAFile); err != nil {
		return nil, err
	}
	if i.files, err = newEgress(ofFiles, i.timeout, o.CAFile); err != nil {
		return nil, err
	}
	i.retries = &retries{i.timeout, 250 * time.Millisecond}
	i.login = newLogin(i.retries.transport(i.blobs), credentials)
	return i, nil
}

// Close ends what is being resolved, and drops idle connections to registries. Nothing may
// be asked afterwards.
func (i *Images) Close() {
	i.end()
	i.blobs.next.closeIdle()
	i.files.next.closeIdle()
}

// Resolve returns the image that ref names now, pinned by digest, for
// architecture (amd64, arm64, arm64/v8). An image may have layers that boot from the network and
// a disk: then it is installed, unless whoever asks wants it booted each time. Callers that ask for the same at the
// same time share one answer; only references by digest are remembered. While the
// registry cannot be reached, a tag means what it meant last. Every error is an
// *Error, but for ctx's own end.
func (i *Images) Resolve(ctx context.Context, ref, architecture string) (model.PinnedImage, error) {
	img, err := i.resolve(ctx, ref, architecture)
	if err != nil && ctx.Err() == nil {
		var why *Error
		if img, why = i.recall(ref, architecture, i.explain(ref, err)); why != nil {
			err = i.told(ref, why)
		} else {
			err = nil
		}
	}
	i.metrics.resolved(err)
	if err != nil {
		return model.PinnedImage{}, err
	}
	img.Ref = ref
	return img, nil
}

func (i *Images) resolve(ctx context.Context, ref, architecture string) (model.PinnedImage, error) {
	r, err := model.ParseImageReference(ref)
	if err != nil {
		return model.PinnedImage{}, &Error{Reason: model.ReasonInvalidReference, Message: err.Error(), Err: err}
	}
	if err := i.allow(r); err != nil {
		return model.PinnedImage{}, err
	}
	key := imageKey{r.String(), architecture}
	if img, ok := i.known.Get(key); ok && r.Digest != "" {
		return img, nil
	}
	// It goes on when who asked first leaves, for others wait for the same.
	answer := i.asking.DoChan(key.architecture+" "+key.ref, func() (_ any, err error) {
		defer func() {
			if p := recover(); p != nil { // nobody else would, in this goroutine
				err = fmt.Errorf("internal error: %v", p)
			}
		}()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), i.timeout)
		defer cancel()
		defer context.AfterFunc(i.life, cancel)()
		return i.walk(ctx, r, architecture)
	})
	select {
	case <-ctx.Done():
		return model.PinnedImage{}, ctx.Err()
	case a := <-answer:
		img, _ := a.Val.(model.PinnedImage)
		if a.Err == nil {
			i.known.Put(key, img, 1)
		}
		return img, a.Err
	}
}

// recall returns what a reference meant last, when why is that its registry cannot be
// reached: a rack boots on while its registry is down.
func (i *Images) recall(ref, architecture string, why *Error) (model.PinnedImage, *Error) {
	r, err := model.ParseImageReference(ref)
	if err != nil || why.Reason != model.ReasonRegistryUnreachable {
		return model.PinnedImage{}, why
	}
	img, ok := i.known.Get(imageKey{r.String(), architecture})
	if !ok {
		img, ok = i.before(ref, architecture)
	}
	if !ok {
		return model.PinnedImage{}, why
	}
	i.log.Warn("image cannot be resolved: the digest resolved last is used", "image", ref, "digest", img.Digest, "err", why)
	return img, nil
}

// Allowed returns why the configuration does not allow the image of a claim, and nil if it does. It sends no request.
func (i *Images) Allowed(image string) error {
	if u, err := model.ParseImageURL(image); err == nil {
		_, _, err = i.Client(u)
		return err
	}
	r, err := model.ParseImageReference(image)
	if err == nil && r.Layout != "" {
		_, _, err = i.layouts.allowed(r)
		return err
	}
	if err != nil {
		return err
	}
	return i.allow(r)
}

// allow refuses registries that are not on the allow list, and addresses that
// are never registries.
func (i *Images) allow(r model.ImageReference) error {
	if r.Layout != "" {
		return nil // layouts opens nothing else
	}
	_, listed := i.registries[r.Registry]
	return i.allowHost("registry "+r.Registry, i.base(r).Host, listed)
}

// allowHost refuses a host that the list does not have, and addresses where no images are.
func (i *Images) allowHost(who, address string, listed bool) error {
	if !listed && len(i.registries) > 0 {
		return &Error{Reason: model.ReasonRegistryNotAllowed, Message: fmt.Sprintf(
			"%s is not allowed; boot.registries has %s", who, strings.Join(slices.Sorted(maps.Keys(i.registries)), ", "))}
	}
	host := hostname(address)
	err := checkHost(host, loopbackHost(host))
	if addr, literal := hostAddr(host); err == nil && literal == nil {
		err = i.egress.check(addr, address)
	}
	if err != nil {
		return &Error{Reason: model.ReasonRegistryNotAllowed, Message: fmt.Sprintf("%s: %v", who, err), Err: err}
	}
	return nil
}

// plain reports whether a registry is used without TLS: as the list has it, and otherwise on this machine.
func (i *Images) plain(registry string) bool {
	if plain, listed := i.registries[registry]; listed {
		return plain
	}
	return OnThisMachine(registry)
}

// walk follows r through indexes to the manifest for architecture.
func (i *Images) walk(ctx context.Context, r model.ImageReference, architecture string) (model.PinnedImage, error) {
	at, disk := r.Digest, false
	if at == "" {
		at = r.Tag
	}
	for depth := 0; ; depth++ {
		m, sum, err := i.manifest(ctx, r, at)
		if err != nil {
			return model.PinnedImage{}, &askError{err}
		}
		if !m.index() {
			img, err := m.pin(disk)
			img.Repository, img.Digest, img.Architecture = r.Name(), sum, architecture
			return img, err
		}
		if depth == maxIndexDepth {
			return model.PinnedImage{}, invalid("indexes lie more than %d deep", maxIndexDepth)
		}
		d, err := m.choose(architecture)
		if err != nil {
			return model.PinnedImage{}, err
		}
		at, disk = d.Digest, markedAsDisk(d)
	}
}

func logger(log *slog.Logger) *slog.Logger {
	if log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return log
}

// registriesOf returns the registries of references; what is none is left out.
func registriesOf(refs []string) []string {
	var all []string
	for _, ref := range refs {
		if r, err := model.ParseImageReference(ref); err == nil && r.Layout == "" {
			all = append(all, r.Registry)
		}
	}
	return all
}
