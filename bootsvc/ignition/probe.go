package ignition

import (
	_ "embed"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"text/template"

	"ingot/bootsvc/internal/syntax"
	"ingot/model"
)

// defaultProbeTemplate runs the probe that the boot image holds.
//
//go:embed probe.bu
var defaultProbeTemplate []byte

// ProbeBoot is what the Ignition of a discovery or a cleanup is made from.
type ProbeBoot struct {
	UUID        string          // canonical system UUID
	RegistryURL string          // where probes report to, without token
	Token       model.Sensitive // of the boot ticket
	Purpose     model.TicketPurpose
	CleanupMode string // of PurposeCleanup: none, quick or secure
}

// ForProbe returns the Ignition that starts metalprobe on a server.
func (g *Compiler) ForProbe(b ProbeBoot) (model.Sensitive, error) {
	flags, err := probeFlags(b)
	if err != nil {
		return model.Sensitive{}, fmt.Errorf("ignition of a %s: %w", strings.ToLower(string(b.Purpose)), err)
	}
	probe, err := g.probe.read()
	if err != nil {
		return model.Sensitive{}, err
	}
	return model.NewSensitive(probe.fill(map[field]string{fieldFlags: flags})), nil
}

// probeFlags returns metalprobe's command line.
func probeFlags(b ProbeBoot) (string, error) {
	base := strings.TrimRight(b.RegistryURL, "/")
	if err := checkFill(base, b.UUID); err != nil {
		return "", err
	}
	if !syntax.Token(b.Token.Reveal()) {
		return "", errors.New("the boot ticket's token is not made of lower-case letters and digits")
	}
	url := base + "/r/" + b.Token.Reveal()
	flags := "--registry-url=" + url + " --server-uuid=" + b.UUID
	switch b.Purpose {
	case model.PurposeDiscovery:
		return flags, nil
	case model.PurposeCleanup:
		switch b.CleanupMode {
		case model.CleanupNone, model.CleanupQuick, model.CleanupSecure:
			return flags + " --wipe=" + b.CleanupMode + " --report-url=" + url + "/wipe", nil
		}
		return "", fmt.Errorf("cleanup mode %q is not none, quick or secure", syntax.Printable(b.CleanupMode))
	case model.PurposeClaim:
	}
	return "", fmt.Errorf("purpose %q boots no probe", syntax.Printable(string(b.Purpose)))
}

// errTemplateMissing is why there is no Ignition for probes while the template's file cannot be read.
var errTemplateMissing = errors.New("discovery.ignitionTemplateFile cannot be read")

// probeTemplate is the probe's template, translated once it could be read.
type probeTemplate struct {
	options Options

	mu       sync.Mutex
	document *document // nil = it was not read yet
}

// read returns the translated template. It is errTemplateMissing while the file cannot be read.
func (p *probeTemplate) read() (*document, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.document != nil {
		return p.document, nil
	}
	o := p.options
	if o.ProbeTemplateFile != "" {
		text, err := os.ReadFile(o.ProbeTemplateFile)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errTemplateMissing, err)
		}
		o.ProbeTemplate = text
	}
	d, err := newProbeDocument(o)
	if err == nil {
		p.document = d
	}
	return d, err
}

// newProbeDocument translates the probe's template, which costs milliseconds, so
// that a ticket costs microseconds.
func newProbeDocument(o Options) (*document, error) {
	if err := checkProbeOptions(o); err != nil {
		return nil, err
	}
	text := o.ProbeTemplate
	if len(text) == 0 {
		text = defaultProbeTemplate
	}
	t, err := template.New("probe").Parse(string(text))
	if err != nil {
		return nil, err
	}
	m := newMarks(fieldFlags)
	var butane strings.Builder
	err = t.Execute(&butane, struct{ Image, Flags, SSHPublicKey, PasswordHash string }{
		Image: o.ProbeImage, Flags: m[fieldFlags],
	})
	if err != nil {
		return nil, err
	}
	user, err := toIgnition([]byte(butane.String()), formatButane)
	if err != nil {
		return nil, err
	}
	d, err := newDocument(user.raw, m)
	if err != nil {
		return nil, err
	}
	if !d.has(fieldFlags) {
		return nil, errors.New("it has no {{.Flags}}, so no server could report; give them to metalprobe")
	}
	return d, nil
}

// checkProbeOptions refuses values that could mean something to YAML.
func checkProbeOptions(o Options) error {
	if o.ProbeImage != "" {
		if _, err := model.ParseImageReference(o.ProbeImage); err != nil {
			return fmt.Errorf("probe image: %w", err)
		}
	}
	if len(o.ProbeTemplate) > maxSource {
		return fmt.Errorf("it has more than %d bytes", maxSource)
	}
	return nil
}

func (d *document) has(f field) bool {
	for _, p := range d.parts {
		if p.field == f {
			return true
		}
	}
	return false
}
