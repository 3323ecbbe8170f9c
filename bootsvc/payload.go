package bootsvc

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"ingot/model"
)

// payloadMark begins a sealed payload that is more than Ignition. No JSON begins so.
const payloadMark = "ingot boot payload 1\n"

// payload is all that a boot ticket hands out beside its image. Of Ignition and
// NoCloud one is there, or neither for a ticket that is all in its script.
type payload struct {
	Ignition string `json:"ignition,omitempty"`
	// NoCloud are the files that cloud-init fetches, by name.
	NoCloud map[string]string `json:"noCloud,omitempty"`
	// Script is the claim's own iPXE script, served in the place of Ingot's.
	Script string `json:"script,omitempty"`
	// KernelArguments end the kernel's line in Ingot's script.
	KernelArguments string `json:"kernelArguments,omitempty"`
}

// seal returns the payload as it is kept. Mere Ignition stays what it is.
func (p payload) seal() model.Sensitive {
	if p.NoCloud == nil && p.Script == "" && p.KernelArguments == "" {
		return model.NewSensitive(p.Ignition)
	}
	var b bytes.Buffer
	b.WriteString(payloadMark)
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(p) // strings always encode
	return model.NewSensitive(b.String())
}

// openPayload is the inverse of seal.
func openPayload(sealed model.Sensitive) (payload, error) {
	text, marked := strings.CutPrefix(sealed.Reveal(), payloadMark)
	if !marked {
		return payload{Ignition: text}, nil
	}
	var p payload
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		return payload{}, fmt.Errorf("decode boot payload: %w", err)
	}
	return p, nil
}

// manner is what a payload means for the boot script. It holds no secret, and is
// remembered by ticket, for a ticket's payload never changes.
type manner struct {
	own       bool // the script is the claim's own
	last      bool // nothing of Ingot's is fetched after it
	noCloud   bool // cloud-init configures the machine
	arguments string
}

func (p payload) manner() manner {
	return manner{
		own:       p.Script != "",
		last:      p.Script != "" && p.Ignition == "" && p.NoCloud == nil,
		noCloud:   p.NoCloud != nil,
		arguments: p.KernelArguments,
	}
}
