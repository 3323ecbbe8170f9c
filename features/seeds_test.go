package features

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"ingot/bmc/sim"
	"ingot/model"
)

// What the manifests of examples/seeds say: each machine's UUID and BMC, and its addresses.
const (
	seedUUID  = "123e4567-e89b-12d3-a456-426614174000"
	seedIP    = "192.168.100.10"
	seedImage = "my-osimage:latest"
)

// seedManifests commits each manifest of examples/seeds as it stands, but for addresses and the
// image, and what they name and do not hold: an Endpoint, the password and the Ignition.
func seedManifests(ctx context.Context) error {
	w := siteOf(ctx)
	w.uuids = []string{seedUUID}
	w.bmcNetworks = `networks: [{prefix: "127.0.0.0/8", plain: true}], `
	err := w.wire([]map[string]string{{"SERVER": "my-server", "BMC": "my-bmc"}, {"SERVER": "other", "BMC": "my-bmc-inline"}})
	if err != nil {
		return err
	}
	plain := w.withoutTLS(w.bmcs["my-bmc"])
	files := make(map[string]string)
	paths, err := filepath.Glob("../examples/seeds/*.yaml")
	if err != nil {
		return err
	}
	if len(paths) != 6 {
		return fmt.Errorf("examples/seeds has %d manifests, want 6", len(paths))
	}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, address := filepath.Base(path), w.bmcs["my-bmc-inline"].Addr()
		switch {
		case strings.HasSuffix(name, "-my-bmc.yaml"):
			address = plain
		case strings.HasPrefix(name, "000-endpoint-"):
			address = "192.0.2.1:0" // all BMCs are at one address here, which only one Endpoint can have
		}
		if strings.HasSuffix(name, "-serverclaim-my-server-claim.yaml") {
			name = claimPath("my-server-claim")
		}
		files[name] = placed(string(data), address, w.image["linux"])
	}
	host, _, _ := net.SplitHostPort(plain)
	endpoint := object(model.KindEndpoint, "my-bmc-endpoint", nil)
	spec(endpoint)["macAddress"], spec(endpoint)["ip"] = w.bmcs["my-bmc"].MAC(), host
	ignition := w.ignitionOf("my-server-claim")
	ignition["metadata"].(map[string]any)["name"] = "my-ignition-secret"
	files["operator.yaml"] = text(endpoint, secretOf("my-bmc-secret"), ignition)
	if _, err := w.repo.Commit(files, "what our user handed us"); err != nil {
		return err
	}
	_, err = begun(ctx)
	return err
}

func placed(manifest, address, image string) string {
	host, port, _ := net.SplitHostPort(address)
	return strings.NewReplacer(seedIP, host, "port: 8000", "port: "+port, seedImage, image).Replace(manifest)
}

func (w *site) withoutTLS(bmc *sim.BMC) string {
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "https", Host: bmc.Addr()})
	proxy.Transport = &http.Transport{TLSClientConfig: &tls.Config{
		InsecureSkipVerify: true, // nobody signed its certificate: it is known by its fingerprint
		VerifyConnection: func(c tls.ConnectionState) error {
			if sum := sha256.Sum256(c.PeerCertificates[0].Raw); hex.EncodeToString(sum[:]) != bmc.Fingerprint() {
				return errors.New("another BMC answers")
			}
			return nil
		},
	}}
	server := httptest.NewServer(proxy)
	w.clients = append(w.clients, server.Close)
	return server.Listener.Addr().String()
}
