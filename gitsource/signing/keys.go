package signing

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"golang.org/x/crypto/ssh"

	"ingot/gitsource/smallfile"
)

// Limits of a folder of keys.
const (
	maxKeyFile = 1 << 20 // bytes; OpenPGP keys may carry many certifications
	maxKeys    = 1000
)

// allowedSigners is the name of a file as ssh-keygen(1) has it, "ALLOWED SIGNERS".
const allowedSigners = "allowed_signers"

// Keys are the keys that may sign.
type Keys struct {
	openpgp openpgp.EntityList
	ssh     []sshKey
}

// sshKey is an SSH key that may sign within a time; a zero time is no bound.
type sshKey struct {
	name          string
	key           ssh.PublicKey
	after, before time.Time
}

// Load reads the keys in a folder: *.asc and *.gpg are OpenPGP keys, *.pub SSH keys, and
// allowed_signers is what ssh-keygen and git know by this name. Others are not looked at. A
// file that is wrong is an error, for a key that is left out unseen would be missed when it
// is needed.
func Load(dir string) (*Keys, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("read the folder of keys: %w", err)
	}
	keys := &Keys{}
	for _, e := range entries {
		read := reader(e.Name())
		if read == nil {
			continue
		}
		name := filepath.Join(dir, e.Name())
		content, err := readFile(name)
		if err == nil {
			err = read(keys, e.Name(), content)
		}
		if err != nil {
			return nil, fmt.Errorf("key file %s: %w", name, err)
		}
		if len(keys.openpgp)+len(keys.ssh) > maxKeys {
			return nil, fmt.Errorf("folder %s holds more than %d keys", dir, maxKeys)
		}
	}
	if len(keys.openpgp)+len(keys.ssh) == 0 {
		return nil, fmt.Errorf("folder %s holds no key that may sign: it needs *.asc, *.gpg, *.pub or %s", dir, allowedSigners)
	}
	return keys, nil
}

// reader returns how a file of the name is read, nil if it is none of keys.
func reader(name string) func(*Keys, string, []byte) error {
	switch {
	case strings.HasPrefix(name, "."): // also what mounts of Kubernetes add
		return nil
	case name == allowedSigners:
		return (*Keys).addAllowedSigners
	}
	switch filepath.Ext(name) {
	case ".asc", ".gpg":
		return (*Keys).addOpenPGP
	case ".pub":
		return (*Keys).addPublicKeys
	}
	return nil
}

func readFile(name string) ([]byte, error) {
	content, err := smallfile.Read(name, maxKeyFile)
	if err == nil && strings.TrimSpace(string(content)) == "" {
		err = errors.New("it is empty")
	}
	return content, smallfile.Cause(err)
}

// Names are the keys for people, those of OpenPGP first.
func (k *Keys) Names() []string {
	var names []string
	for _, e := range k.openpgp {
		names = append(names, entityName(e))
	}
	for _, s := range k.ssh {
		names = append(names, s.name)
	}
	return names
}
