package sim

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base32"
	"encoding/binary"
	"fmt"
	"math/big"
	"net"
	"time"

	"github.com/google/uuid"
)

// identity is what a machine's UUID, MAC addresses and serial number are made of:
// the same for the same seed and name.
type identity [sha256.Size]byte

func (r *Rack) identity(name string) identity {
	return sha256.Sum256(fmt.Appendf(nil, "%d/%s", r.opts.Seed, name))
}

// uuid returns a version 4 UUID, as random as the identity.
func (id identity) uuid() string {
	u := uuid.UUID(id[:16])
	u[6] = u[6]&0x0f | 0x40
	u[8] = u[8]&0x3f | 0x80
	return u.String()
}

// bmcPort is the port number of a BMC's own interface.
const bmcPort = 15

// mac returns the MAC address of a port (0 to 15) of a system (0 to 63) of the
// number-th BMC (1 to 8192), behind a vendor's prefix. No two are the same.
func (r *Rack) mac(number, system, port int) string {
	n := uint32(number-1)<<10 | uint32(system)<<4 | uint32(port)
	// An odd factor and an exclusive or are reversible in 24 bits: they scatter
	// the numbers, as those of real machines are, and keep them apart.
	n = n*0x9e3779b1 ^ uint32(r.opts.Seed)*0x85ebca77
	return fmt.Sprintf("%s:%02x:%02x:%02x", r.kind.macPrefix, byte(n>>16), byte(n>>8), byte(n))
}

// serial returns a serial number of ten letters and digits.
func (id identity) serial() string { return id.part(19) }

// part returns ten letters and digits that differ with n, below 26.
func (id identity) part(n int) string {
	sum := sha256.Sum256(append(id[:], byte(n)))
	return base32.StdEncoding.EncodeToString(sum[:])[:10]
}

// newCertificate makes the kind of certificate that BMCs come with: their own.
func newCertificate(host string) (*tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make key: %w", err)
	}
	var serial [8]byte
	_, _ = rand.Read(serial[:]) // never fails, see crypto/rand
	template := x509.Certificate{
		SerialNumber: new(big.Int).SetUint64(binary.BigEndian.Uint64(serial[:]) | 1),
		Subject:      pkix.Name{CommonName: host, Organization: []string{"Simulated BMC"}},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().AddDate(10, 0, 0),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IPAddresses:  []net.IP{net.ParseIP(host)},
		DNSNames:     []string{"localhost"},
	}
	der, err := x509.CreateCertificate(rand.Reader, &template, &template, &key.PublicKey, key)
	if err != nil {
		return nil, fmt.Errorf("make certificate: %w", err)
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}
