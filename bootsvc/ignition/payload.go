package ignition

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"ingot/model"
)

// payloadMark begins a sealed payload that is more than Ignition. No JSON begins so.
const payloadMark = "ingot boot payload 1\n"

// Payload is all that a boot ticket hands out beside its image. Of Ignition and
// NoCloud one is there, or neither for a ticket that is all in its script.
type Payload struct {
	Ignition string `json:"ignition,omitempty"`
	// NoCloud are the files that cloud-init fetches, by name.
	NoCloud map[string]string `json:"noCloud,omitempty"`
	// Script is the claim's own iPXE script, served in the place of Ingot's.
	Script string `json:"script,omitempty"`
	// KernelArguments end the kernel's line in Ingot's script.
	KernelArguments string `json:"kernelArguments,omitempty"`
	// Install is what the probe that Ignition starts writes to a disk, nil if it writes none.
	// Its TableDigest is left to whoever has the table.
	Install *model.InstallDocument `json:"install,omitempty"`
}

// Seal returns the payload as it is kept. Mere Ignition stays what it is.
func (p Payload) Seal() model.Sensitive {
	if p.NoCloud == nil && p.Script == "" && p.KernelArguments == "" && p.Install == nil {
		return model.NewSensitive(p.Ignition)
	}
	var b bytes.Buffer
	b.WriteString(payloadMark)
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(p) // strings always encode
	return model.NewSensitive(b.String())
}

// Open is the inverse of Seal.
func Open(sealed model.Sensitive) (Payload, error) {
	text, marked := strings.CutPrefix(sealed.Reveal(), payloadMark)
	if !marked {
		return Payload{Ignition: text}, nil
	}
	var p Payload
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		return Payload{}, fmt.Errorf("decode boot payload: %w", err)
	}
	return p, nil
}
