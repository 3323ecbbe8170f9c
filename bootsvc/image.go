package bootsvc

import (
	"context"
	_ "crypto/sha512" // a digest algorithm that references may use
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/prometheus/client_golang/prometheus"
	"oras.land/oras-go/v2/errdef"
	"oras.land/oras-go/v2/registry"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/credentials"
	"oras.land/oras-go/v2/registry/remote/errcode"

	"ingot/model"
)

// Reasons for which an image cannot be used.
const (
	ReasonInvalidReference = "InvalidReference"   // the text is no image reference
	ReasonForbidden        = "RegistryNotAllowed" // allow list, or an address that is never a registry
	ReasonUnauthorized     = "Unauthorized"       // the registry wants other credentials
	ReasonNotFound         = "NotFound"           // no such repository, tag or digest
	ReasonUnreachable      = "RegistryUnreachable"
	ReasonNoArchitecture   = "NoArchitecture"
	ReasonValidationFailed = "ValidationFailed" // the image is there but cannot be booted
)

// ImageError says why an image cannot be used.
type ImageError struct {
	Ref     string // as the person wrote it
	Reason  string // one of the Reason… constants
	Message string // for a person
	Err     error  // what lies beneath, or nil
}

// Error implements error.
func (e *ImageError) Error() string {
	if e.Ref == "" {
		return e.Message
	}
	return fmt.Sprintf("image %s: %s", e.Ref, e.Message)
}

// Unwrap returns what lies beneath.
func (e *ImageError) Unwrap() error { return e.Err }

// invalid returns an ImageError for an image that is there but cannot be booted.
func invalid(format string, args ...any) *ImageError {
	return &ImageError{Reason: ReasonValidationFailed, Message: fmt.Sprintf(format, args...)}
}

// ImageOptions are the options of NewImages.
type ImageOptions struct {
	// AllowedRegistries are the registries, host or host:port, that images may come
	// from; they are compared exactly, after lower-casing and with Docker Hub's
	// names taken for one. Empty allows every registry. Whatever the list says,
	// link-local and cloud metadata addresses are refused, and this machine itself
	// unless the reference names it literally (localhost, 127.0.0.1, [::1]).
	AllowedRegistries []string
	// PlainHTTP says which registries are spoken to without TLS; nil means none.
	// Those on this machine always are.
	PlainHTTP func(registry string) bool
	// CredentialsFile is a docker config.json with pull credentials. Its credential
	// helpers are not run. Empty means anonymous.
	CredentialsFile string
	// Timeout bounds a whole Resolve, and the wait for a registry's next bytes
	// while a layer is streamed. Zero means 30 seconds.
	Timeout time.Duration

	Log        *slog.Logger
	Registerer prometheus.Registerer
}

// Images resolves image references and fetches layers from their registries. It
// is safe for concurrent use.
type Images struct {
	allowed   []string
	plainHTTP func(string) bool
	timeout   time.Duration
	log       *slog.Logger
	client    *auth.Client
	metrics   imageMetrics
	flights   flights[imageKey, model.PinnedImage]
	pinned    *lru[imageKey, model.PinnedImage] // of references by digest only
}

// imageKey is what a resolution depends on.
type imageKey struct{ ref, architecture string }

// NewImages returns Images with no connection made yet. It fails when the allow
// list or the credentials file cannot be used.
func NewImages(o ImageOptions) (*Images, error) {
	i := &Images{
		plainHTTP: o.PlainHTTP,
		timeout:   o.Timeout,
		log:       logger(o.Log),
		metrics:   newImageMetrics(o.Registerer),
		pinned:    newLRU[imageKey, model.PinnedImage](256),
	}
	if i.timeout <= 0 {
		i.timeout = 30 * time.Second
	}
	for _, entry := range o.AllowedRegistries {
		host, err := normalRegistry(entry)
		if err != nil {
			return nil, fmt.Errorf("allowed registries: %w", err)
		}
		i.allowed = append(i.allowed, host)
	}
	i.client = &auth.Client{
		Client: &http.Client{Transport: newTransport(i.timeout)},
		Header: http.Header{"User-Agent": {"ingot"}},
		Cache:  auth.NewCache(),
	}
	if o.CredentialsFile == "" {
		return i, nil
	}
	store, err := credentials.NewFileStore(o.CredentialsFile)
	if err != nil {
		return nil, fmt.Errorf("read registry credentials %s: %w", o.CredentialsFile, err)
	}
	i.client.Credential = credentials.Credential(store)
	return i, nil
}

// Close drops idle connections to registries.
func (i *Images) Close() { i.client.Client.CloseIdleConnections() }

// Resolve returns the image that ref names now, pinned by digest, for
// architecture (amd64, arm64, arm64/v8). Callers that ask for the same at the
// same time share one answer; only references by digest are remembered. Every
// error is an *ImageError, but for ctx's own end.
func (i *Images) Resolve(ctx context.Context, ref, architecture string) (model.PinnedImage, error) {
	img, err := i.resolve(ctx, ref, architecture)
	if err != nil && ctx.Err() == nil {
		err = i.explain(ref, err)
	}
	i.metrics.resolved(err)
	if err != nil {
		return model.PinnedImage{}, err
	}
	img.Ref = ref
	return img, nil
}

func (i *Images) resolve(ctx context.Context, ref, architecture string) (model.PinnedImage, error) {
	r, err := ParseReference(ref)
	if err != nil {
		return model.PinnedImage{}, &ImageError{Reason: ReasonInvalidReference, Message: err.Error(), Err: err}
	}
	if err := i.allow(r); err != nil {
		return model.PinnedImage{}, err
	}
	key := imageKey{r.String(), architecture}
	if img, ok := i.pinned.get(key); ok {
		return img, nil
	}
	return i.flights.do(ctx, key, func() (model.PinnedImage, error) {
		ctx, cancel := context.WithTimeout(ctx, i.timeout)
		defer cancel()
		img, err := i.walk(ctx, r, architecture)
		if err == nil && r.Digest != "" {
			i.pinned.put(key, img, 1)
		}
		return img, err
	})
}

// allow refuses registries that are not on the allow list, and addresses that
// are never registries.
func (i *Images) allow(r Reference) error {
	if len(i.allowed) > 0 && !slices.Contains(i.allowed, r.Registry) {
		return &ImageError{Reason: ReasonForbidden, Message: fmt.Sprintf(
			"registry %s is not allowed; boot.allowedRegistries has %s", r.Registry, strings.Join(i.allowed, ", "))}
	}
	host := hostname(r.Registry)
	if err := checkHost(host, loopbackHost(host)); err != nil {
		return &ImageError{Reason: ReasonForbidden, Message: fmt.Sprintf("registry %s: %v", r.Registry, err), Err: err}
	}
	return nil
}

// walk follows r through indexes to the manifest for architecture.
func (i *Images) walk(ctx context.Context, r Reference, architecture string) (model.PinnedImage, error) {
	repo := i.repository(r)
	ctx = withLocal(ctx, r.Registry)
	at := r.Digest
	if at == "" {
		at = r.Tag
	}
	for depth := 0; ; depth++ {
		m, sum, err := i.manifest(ctx, repo, at)
		if err != nil {
			return model.PinnedImage{}, err
		}
		if !m.index() {
			img, err := m.pin()
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
		at = d.Digest
	}
}

// manifest fetches the manifest at a tag or digest and verifies it.
func (i *Images) manifest(ctx context.Context, repo *remote.Repository, at string) (manifest, string, error) {
	desc, body, err := repo.Manifests().FetchReference(ctx, at)
	if err != nil {
		return manifest{}, "", err
	}
	defer body.Close()
	raw, err := io.ReadAll(io.LimitReader(body, maxManifest+1))
	switch {
	case err != nil:
		return manifest{}, "", err
	case len(raw) > maxManifest:
		return manifest{}, "", invalid("the manifest is larger than %d bytes", maxManifest)
	}
	sum := desc.Digest
	if !validDigest(sum.String()) || sum != sum.Algorithm().FromBytes(raw) {
		return manifest{}, "", invalid("the registry sent a manifest that does not have its digest %s", clean(sum.String()))
	}
	m, err := parseManifest(raw, desc.MediaType)
	if err != nil {
		return manifest{}, "", &ImageError{Reason: ReasonValidationFailed, Message: err.Error(), Err: err}
	}
	return m, sum.String(), nil
}

// open starts to fetch a layer. The bytes are not verified yet.
func (i *Images) open(ctx context.Context, r Reference, layer *model.Layer) (io.ReadCloser, error) {
	return i.repository(r).Blobs().Fetch(withLocal(ctx, r.Registry), ocispec.Descriptor{
		Digest: digest.Digest(layer.Digest),
		Size:   layer.Size,
	})
}

func (i *Images) repository(r Reference) *remote.Repository {
	return &remote.Repository{
		Client:           i.client,
		Reference:        registry.Reference{Registry: r.Registry, Repository: r.Repository},
		PlainHTTP:        loopbackHost(hostname(r.Registry)) || i.plainHTTP != nil && i.plainHTTP(r.Registry),
		MaxMetadataBytes: maxManifest,
	}
}

// explain turns what went wrong with ref into an ImageError for people. URLs are
// left out: those that registries redirect to may carry signatures.
func (i *Images) explain(ref string, err error) error {
	var known *ImageError
	var answer *errcode.ErrorResponse
	var link *url.Error
	e := &ImageError{Ref: clean(ref), Reason: ReasonUnreachable, Err: err}
	switch {
	case errors.As(err, &known):
		e.Reason, e.Message = known.Reason, err.Error()
	case errors.Is(err, errForbiddenAddress):
		e.Reason, e.Message = ReasonForbidden, errForbiddenAddress.Error()
	case errors.Is(err, auth.ErrBasicCredentialNotFound):
		e.Reason, e.Message = ReasonUnauthorized, "the registry asks for credentials and there are none for it"
	case errors.As(err, &answer):
		e.Reason, e.Message = explainStatus(answer.StatusCode)
	case errors.Is(err, errdef.ErrNotFound):
		e.Reason, e.Message = explainStatus(http.StatusNotFound)
	case errors.Is(err, context.DeadlineExceeded):
		e.Message = fmt.Sprintf("the registry did not answer within %s", i.timeout)
	case errors.As(err, &link):
		e.Message = "the registry cannot be reached: " + clean(link.Err.Error())
	default:
		e.Message = "the registry cannot be used: " + clean(err.Error())
	}
	return e
}

// explainStatus says what a registry's answer means.
func explainStatus(code int) (reason, message string) {
	switch code {
	case http.StatusUnauthorized, http.StatusForbidden:
		return ReasonUnauthorized, fmt.Sprintf("the registry refuses access (%d): the image does not exist, or the credentials are missing or wrong", code)
	case http.StatusNotFound:
		return ReasonNotFound, "the registry has no such repository, tag or digest"
	}
	return ReasonUnreachable, fmt.Sprintf("the registry answered %d %s", code, http.StatusText(code))
}

// logger returns log, or one that discards.
func logger(log *slog.Logger) *slog.Logger {
	if log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return log
}
