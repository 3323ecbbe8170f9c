package signing

import (
	"bytes"
	"crypto"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	pgperrors "github.com/ProtonMail/go-crypto/openpgp/errors"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
)

const armorBegin = "-----BEGIN PGP "

// addOpenPGP reads the keys of a file, armored or not.
func (k *Keys) addOpenPGP(_ string, content []byte) error {
	entities, err := readEntities(content)
	if err != nil {
		return err
	}
	for _, e := range entities {
		if e.PrivateKey != nil {
			return errors.New("it holds a private key, which does not belong here: take it away and put the public one here, by gpg --export")
		}
		if err := weakEntity(e); err != nil {
			return fmt.Errorf("key of %s: %w", entityName(e), err)
		}
	}
	k.openpgp = append(k.openpgp, entities...)
	return nil
}

// readEntities reads OpenPGP keys. Unlike openpgp.ReadKeyRing it passes none over.
func readEntities(content []byte) (openpgp.EntityList, error) {
	blocks := []io.Reader{bytes.NewReader(content)}
	if bytes.Contains(content, []byte(armorBegin)) {
		blocks = nil
		for i, text := range strings.Split(string(content), armorBegin) {
			if i == 0 {
				continue // what is before the first block
			}
			block, err := armor.Decode(strings.NewReader(armorBegin + text))
			if err != nil {
				return nil, fmt.Errorf("it is damaged: %w", err)
			}
			blocks = append(blocks, block.Body)
		}
	}
	var entities openpgp.EntityList
	for _, block := range blocks {
		packets := packet.NewReader(block)
		for {
			e, err := openpgp.ReadEntity(packets)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return nil, fmt.Errorf("it is no OpenPGP key: %w", err)
			}
			entities = append(entities, e)
		}
	}
	if len(entities) == 0 {
		return nil, errors.New("it holds no OpenPGP key")
	}
	return entities, nil
}

func entityName(e *openpgp.Entity) string {
	if id := e.PrimaryIdentity(); id != nil {
		return strings.Join(strings.Fields(id.Name), " ")
	}
	return fingerprint(e)
}

func fingerprint(e *openpgp.Entity) string { return fmt.Sprintf("%X", e.PrimaryKey.Fingerprint) }

// weakEntity says why a key, or a part of it that may sign, is not good enough.
func weakEntity(e *openpgp.Entity) error {
	if err := weakOpenPGP(e.PrimaryKey); err != nil {
		return err
	}
	for _, sub := range e.Subkeys {
		if sub.Sig.FlagsValid && sub.Sig.FlagSign {
			if err := weakOpenPGP(sub.PublicKey); err != nil {
				return err
			}
		}
	}
	return nil
}

func weakOpenPGP(key *packet.PublicKey) error {
	switch key.PubKeyAlgo {
	case packet.PubKeyAlgoRSA, packet.PubKeyAlgoRSASignOnly:
		if bits, err := key.BitLength(); err != nil || bits < minRSABits {
			return fmt.Errorf("RSA keys need at least %d bits", minRSABits)
		}
		return nil
	case packet.PubKeyAlgoECDSA, packet.PubKeyAlgoEdDSA, packet.PubKeyAlgoEd25519, packet.PubKeyAlgoEd448:
		return nil
	default:
		return errors.New("its algorithm is too weak or not known: use ed25519, ECDSA or RSA")
	}
}

// strongHashes are what a signature may be made over. SHA-1 is not among them: two commits
// with one signature can be made.
var strongHashes = []crypto.Hash{crypto.SHA256, crypto.SHA384, crypto.SHA512, crypto.SHA3_256, crypto.SHA3_512}

// verifyOpenPGP verifies a signature as git makes it by gpg.
func (k *Keys) verifyOpenPGP(payload []byte, signature string, now time.Time) (Signer, error) {
	raw, sig, err := readSignature(signature)
	if err != nil {
		return Signer{}, fmt.Errorf("has an OpenPGP signature that cannot be read: %w", err)
	}
	key := fmt.Sprintf("OpenPGP key %016X", *sig.IssuerKeyId)
	if !slices.Contains(strongHashes, sig.Hash) {
		return Signer{}, fmt.Errorf("is signed with %s over %s, which is too weak: sign with SHA-256 or better", key, sig.Hash)
	}
	config := &packet.Config{Time: func() time.Time { return now }}
	_, entity, err := openpgp.VerifyDetachedSignature(k.openpgp, bytes.NewReader(payload), bytes.NewReader(raw), config)
	by := Signer{Key: key}
	if entity != nil {
		by.Name = entityName(entity)
	}
	switch {
	case err == nil:
		by.Key = "OpenPGP key " + fingerprint(entity)
		return by, nil
	case errors.Is(err, pgperrors.ErrUnknownIssuer):
		return Signer{}, fmt.Errorf("is signed with %s, which is none of the allowed keys, or may not sign", key)
	case errors.Is(err, pgperrors.ErrKeyExpired):
		return Signer{}, fmt.Errorf("is signed by %s, whose key is expired", by)
	case errors.Is(err, pgperrors.ErrKeyRevoked):
		return Signer{}, fmt.Errorf("is signed by %s, whose key is revoked", by)
	case errors.Is(err, pgperrors.ErrSignatureExpired) && sig.CreationTime.After(now):
		return Signer{}, fmt.Errorf("is signed by %s on %s, which is in the future", by, day(sig.CreationTime))
	case errors.Is(err, pgperrors.ErrSignatureExpired):
		return Signer{}, fmt.Errorf("is signed by %s, with a signature that is expired", by)
	}
	return Signer{}, fmt.Errorf("claims to be signed with %s, but the signature is not of this content: %w", key, err)
}

func readSignature(armored string) ([]byte, *packet.Signature, error) {
	block, err := armor.Decode(strings.NewReader(armored))
	if err != nil {
		return nil, nil, err
	}
	raw, err := io.ReadAll(io.LimitReader(block.Body, maxSignature))
	if err != nil {
		return nil, nil, err
	}
	rest := bytes.NewReader(raw)
	p, err := packet.Read(rest)
	if err != nil {
		return nil, nil, err
	}
	sig, ok := p.(*packet.Signature)
	switch {
	case !ok || rest.Len() > 0:
		return nil, nil, errors.New("it is not one signature")
	case sig.SigType != packet.SigTypeBinary:
		return nil, nil, errors.New("it is not a signature of a document")
	case sig.IssuerKeyId == nil:
		return nil, nil, errors.New("it does not say whose it is")
	}
	return raw, sig, nil
}

// parsePrivateOpenPGP returns what signs with an armored OpenPGP private key.
func parsePrivateOpenPGP(content []byte) (func([]byte) (string, error), error) {
	entities, err := readEntities(content)
	if err != nil {
		return nil, err
	}
	if len(entities) != 1 {
		return nil, fmt.Errorf("it holds %d keys: export the one to sign with", len(entities))
	}
	e := entities[0]
	key, ok := e.SigningKey(time.Now())
	switch {
	case !ok:
		return nil, errors.New("it holds no key that may sign now: it is expired, revoked, or for something else")
	case key.PrivateKey == nil || key.PrivateKey.Dummy():
		return nil, errors.New("it holds no private key: export it by gpg --armor --export-secret-keys")
	case key.PrivateKey.Encrypted:
		return nil, errors.New("it needs a passphrase, for which nobody can be asked: take it off by gpg --change-passphrase, or use another key")
	}
	if err := weakOpenPGP(key.PublicKey); err != nil {
		return nil, err
	}
	return func(payload []byte) (string, error) {
		var b strings.Builder
		err := openpgp.ArmoredDetachSign(&b, e, bytes.NewReader(payload), &packet.Config{DefaultHash: crypto.SHA512})
		return b.String(), err
	}, nil
}
