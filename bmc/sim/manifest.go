package sim

import (
	"fmt"
	"net"
	"strconv"

	"ingot/model"
)

// Manifests are what a user would commit for this rack, by path: each BMC with
// the labels rack and slot, and its credentials in plain text. An address changes
// with FaultNewAddress.
func (r *Rack) Manifests() map[string]string {
	files := make(map[string]string, 2*len(r.bmcs))
	for _, b := range r.bmcs {
		files["bmcs/"+string(b.name)+".yaml"] = b.manifest()
		files["secrets/"+string(b.name)+".yaml"] = b.secretManifest()
	}
	return files
}

func (b *BMC) manifest() string {
	host, port, _ := net.SplitHostPort(b.Addr())
	return fmt.Sprintf(`apiVersion: %s
kind: %s
metadata:
  name: %s
  labels:
    rack: rack1
    slot: "%02d"
spec:
  access:
    macAddress: %s
    ip: %s
  bmcSecretRef:
    name: %s
  protocol:
    name: Redfish
    scheme: https
    port: %s
`, model.APIVersion, model.KindBMC, b.name, b.number, strconv.Quote(b.mac), strconv.Quote(host), b.name, port)
}

func (b *BMC) secretManifest() string {
	return fmt.Sprintf(`apiVersion: %s
kind: %s
metadata:
  name: %s
stringData:
  username: %s
  password: %s
`, model.APIVersion, model.KindBMCSecret, b.name, strconv.Quote(b.rack.opts.Username), strconv.Quote(b.rack.opts.Password.Reveal()))
}
