package ignition

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"ingot/bootsvc/internal/lru"
	"ingot/bootsvc/internal/syntax"
	"ingot/model"
)

// maxSource bounds each thing that a person wrote for a machine, in bytes.
const maxSource = 2 << 20

// sourceCacheSize bounds what is kept of translated sources, in bytes.
const sourceCacheSize = 32 << 20

// plainSpec is the Ignition specification that Ingot's own additions need: the
// oldest, which every Ignition 2 understands.
const plainSpec = "3.0.0"

// Where a claimed server finds what to report to, and the unit that reports.
const (
	bootStateFile = "/etc/ingot/bootstate"
	bootStateUnit = "ingot-bootstate.service"
)

// bootStateUnitContents reports once that the machine is up. The URL carries the
// ticket's token, so it is read from a file that only root may read and handed to
// curl by a pipe, not as an argument that every process could see. The file goes
// once the report was taken, so later boots of an installed system stay silent.
const bootStateUnitContents = `[Unit]
Description=Report to Ingot that this machine is up
Wants=network-online.target
After=network-online.target
ConditionPathExists=` + bootStateFile + `
StartLimitIntervalSec=1h
StartLimitBurst=60

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/bin/sh -c 'read -r url uuid < ` + bootStateFile + ` && printf "url = %%s\\n" "$$url" | curl --config - --fail --silent --show-error --max-time 30 --retry 5 --retry-delay 5 --retry-connrefused --header "Content-Type: application/json" --data "{\\"systemUUID\\":\\"$$uuid\\",\\"booted\\":true}" && rm -f ` + bootStateFile + `'
Restart=on-failure
RestartSec=20

[Install]
WantedBy=multi-user.target
`

// Options are the options of New.
type Options struct {
	// ProbeTemplate is Butane with the fields {{.Image}} and {{.Flags}} of text/template,
	// and {{.SSHPublicKey}} and {{.PasswordHash}}, which upstream's have and which are empty:
	// who wants to log in writes his own. Empty means a template that runs /usr/bin/metalprobe
	// from the boot image.
	ProbeTemplate []byte
	// ProbeTemplateFile has the template, in place of ProbeTemplate; "" = none. While it cannot be
	// read, there is no Ignition for probes, and each call tries to read it again.
	ProbeTemplateFile string
	// ProbeImage is {{.Image}}: the container image that a template runs the probe
	// from. The default template does not need it.
	ProbeImage string
}

// Compiler makes what servers are configured with when they boot. It is safe for
// concurrent use.
type Compiler struct {
	probe   *probeTemplate
	marks   marks                                          // of claims
	sources *lru.Cache[[sha256.Size]byte, *preparedSource] // by source
}

type preparedSource struct {
	doc *document
	err error
}

// New returns a Compiler, or an error that says what is wrong with the
// probe's template.
func New(o Options) (*Compiler, error) {
	probe := &probeTemplate{options: o}
	if _, err := probe.read(); err != nil && !errors.Is(err, errTemplateMissing) {
		return nil, fmt.Errorf("probe template: %w", err)
	}
	return &Compiler{
		probe:   probe,
		marks:   newMarks(fieldBootStateURL, fieldUUID),
		sources: lru.New[[sha256.Size]byte, *preparedSource](sourceCacheSize),
	}, nil
}

// document returns the Ignition of a claimed server: the claim's own source, Butane
// or Ignition JSON, merged with the SSH keys, and with a file and a unit that report the server up.
// It has the source's own version of the Ignition specification.
func (g *Compiler) document(b ClaimBoot) (string, error) {
	c := g.prepared(b)
	if c.err != nil {
		return "", c.err
	}
	return c.doc.fill(map[field]string{
		fieldBootStateURL: b.BootStateURL,
		fieldUUID:         b.UUID,
	}), nil
}

// prepared translates and merges a source, or remembers that it was. Failures are
// remembered too, or a wrong source would cost its translation on every plan.
func (g *Compiler) prepared(b ClaimBoot) *preparedSource {
	source, format := b.value(keyIgnition), b.value(keyFormat)
	own := []string{format, cmp.Or(b.User, model.IgnitionUser)}
	key := sha256.Sum256([]byte(strings.Join(append(append(own, b.SSHKeys...), source), "\x00")))
	if c, ok := g.sources.Get(key); ok {
		return c
	}
	c := &preparedSource{}
	c.doc, c.err = g.prepare([]byte(source), format, func(version string) []byte { return g.additions(version, own[1], b.SSHKeys) })
	cost := 1024
	if c.doc != nil {
		cost += c.doc.size
	}
	g.sources.Put(key, c, cost)
	return c
}

func (g *Compiler) prepare(source []byte, format string, additions func(version string) []byte) (doc *document, err error) {
	defer recoverPanic(&err)
	if len(bytes.TrimSpace(source)) == 0 {
		return newDocument(additions(plainSpec), g.marks)
	}
	user, err := toIgnition(source, format)
	if err != nil {
		return nil, err
	}
	merged, err := user.merge(additions)
	if err != nil {
		return nil, err
	}
	return newDocument(merged, g.marks)
}

// additions is what Ingot adds to a claim's own Ignition, for a version of the
// specification.
func (g *Compiler) additions(version, user string, keys []string) []byte {
	type object = map[string]any
	doc := object{
		"ignition": object{"version": version},
		"storage": object{"files": []object{{
			"path":      bootStateFile,
			"mode":      0o600,
			"overwrite": true,
			"contents": object{
				"source":      "data:," + percentEscape(g.marks[fieldBootStateURL]+" "+g.marks[fieldUUID]+"\n"),
				"compression": "",
			},
		}}},
		"systemd": object{"units": []object{{
			"name":     bootStateUnit,
			"enabled":  true,
			"contents": bootStateUnitContents,
		}}},
	}
	if len(keys) > 0 {
		doc["passwd"] = object{"users": []object{{"name": user, "sshAuthorizedKeys": joinKeys(keys)}}}
	}
	raw, _ := json.Marshal(doc) // maps of strings always marshal
	return raw
}

// checkFill refuses a URL or UUID that is not plain.
func checkFill(url, uuid string) error {
	switch {
	case !syntax.URL(url):
		return fmt.Errorf("the URL to report to must be http or https with a host and a plain path of letters, digits and . _ ~ -")
	case !syntax.UUID(uuid):
		return fmt.Errorf("%q is not a canonical system UUID", syntax.Printable(uuid))
	}
	return nil
}
