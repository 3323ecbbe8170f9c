package access

import (
	"crypto/tls"
	"fmt"
)

// parsePair reads a certificate, with those that it is signed by, and its key.
func parsePair(content [][]byte) (*tls.Certificate, error) {
	pair, err := tls.X509KeyPair(content[0], content[1])
	if err != nil {
		return nil, fmt.Errorf("certFile and keyFile are no certificate with its key: %w; both are PEM, and certFile begins with the "+
			"certificate of this machine", err)
	}
	return &pair, nil
}
