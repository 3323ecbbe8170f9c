package sim

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"ingot/model"
)

// store keeps what outlives a restart of the rack: a file for each BMC and each
// server. Without a folder it keeps nothing.
type store struct{ dir string }

type keptBMC struct {
	Address     string `json:"address,omitempty"`
	Certificate []byte `json:"certificate,omitempty"` // DER
	Key         []byte `json:"key,omitempty"`         // PKCS #8
}

type keptServer struct {
	Running  bool               `json:"running,omitempty"` // its installed system runs
	Disk     *Disk              `json:"disk,omitempty"`
	Override bootOverride       `json:"override"`
	Contents map[string]Content `json:"contents,omitempty"`
	Seed     *model.InstallSeed `json:"seed,omitempty"`
	Said     bool               `json:"said,omitempty"`
}

func (st store) prepare() error {
	if st.dir == "" {
		return nil
	}
	if err := os.MkdirAll(st.dir, 0o700); err != nil {
		return fmt.Errorf("folder for state: %w", err)
	}
	return nil
}

func (st store) bmc(name model.BMCName) (kept keptBMC, err error) {
	err = st.read("bmc-"+string(name), &kept)
	return kept, err
}

func (st store) saveBMC(name model.BMCName, address string, cert *tls.Certificate) error {
	if st.dir == "" {
		return nil
	}
	key, err := x509.MarshalPKCS8PrivateKey(cert.PrivateKey)
	if err != nil {
		return fmt.Errorf("keep key of BMC %s: %w", name, err)
	}
	return st.write("bmc-"+string(name), keptBMC{Address: address, Certificate: cert.Certificate[0], Key: key})
}

func (st store) server(name model.ServerName) (kept keptServer, err error) {
	err = st.read("server-"+string(name), &kept)
	return kept, err
}

func (st store) saveServer(name model.ServerName, kept keptServer) error {
	return st.write("server-"+string(name), kept)
}

func (k keptBMC) certificateOrNew(host string) (*tls.Certificate, error) {
	if len(k.Certificate) == 0 {
		return newCertificate(host)
	}
	key, err := x509.ParsePKCS8PrivateKey(k.Key)
	if err != nil {
		return nil, fmt.Errorf("kept key: %w", err)
	}
	return &tls.Certificate{Certificate: [][]byte{k.Certificate}, PrivateKey: key}, nil
}

func (st store) path(name string) string { return filepath.Join(st.dir, name+".json") }

// read fills in what was kept under name; nothing kept is no error.
func (st store) read(name string, into any) error {
	if st.dir == "" {
		return nil
	}
	raw, err := os.ReadFile(st.path(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read kept state: %w", err)
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return fmt.Errorf("read kept state: %s: %w", st.path(name), err)
	}
	return nil
}

// write keeps v under name, whole or not at all.
func (st store) write(name string, v any) error {
	if st.dir == "" {
		return nil
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("keep state: %w", err)
	}
	tmp := st.path(name) + ".tmp"
	if err := os.WriteFile(tmp, raw, 0o600); err != nil {
		return fmt.Errorf("keep state: %w", err)
	}
	if err := os.Rename(tmp, st.path(name)); err != nil {
		return fmt.Errorf("keep state: %w", err)
	}
	return nil
}
