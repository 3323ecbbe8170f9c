package registry

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"ingot/model"
	"ingot/registry/store"
)

const (
	// maxPayload bounds what a boot ticket serves, in bytes.
	maxPayload = 4 << 20
	// maxSessions bounds the sessions of one BMC; few BMCs have more.
	maxSessions = 16
	// maxSession bounds the URI and the token of a session, in bytes.
	maxSession = 4096
)

// ErrNotFound is returned for a payload that does not exist.
var ErrNotFound = errors.New("not found")

// Secrets are the values that are stored sealed: what boot tickets serve, and the sessions on BMCs.
type Secrets struct {
	*database
	sealer sealer
}

// CheckPayload returns an error if a payload exceeds 4 MiB.
func CheckPayload(ticketID string, payload model.Sensitive) error {
	if size := len(payload.Reveal()); size > maxPayload {
		return fmt.Errorf("save Ignition of ticket %s: it has %d bytes, allowed are %d", ticketID, size, maxPayload)
	}
	return nil
}

// payloads are the changes that save payloads. A payload that is stored already is not sealed again,
// because two seals of a value differ.
func (s sealer) payloads(d *draft, payloads map[string]model.Sensitive) (b store.Batch) {
	for _, id := range slices.Sorted(maps.Keys(payloads)) {
		k, plain := store.Key{Bucket: store.BucketPayload, Name: id}, []byte(payloads[id].Reveal())
		if old, err := s.open(k, d.sealed(k)); err != nil || !bytes.Equal(old, plain) {
			b = append(b, store.Change{Key: k, Value: s.seal(k, plain)})
		}
	}
	return b
}

// Payload returns what a ticket serves, or ErrNotFound.
func (s *Secrets) Payload(_ context.Context, ticketID string) (model.Sensitive, error) {
	k := store.Key{Bucket: store.BucketPayload, Name: ticketID}
	plain, err := s.sealer.open(k, s.memory.sealed(k))
	if err != nil {
		return model.Sensitive{}, fmt.Errorf("Ignition of ticket %s: %w", ticketID, err) //nolint:staticcheck // Ignition is a name
	}
	return model.NewSensitive(string(plain)), nil
}

// DropPayloads deletes the payloads of all tickets except those to keep.
func (s *Secrets) DropPayloads(ctx context.Context, keep func(ticketID string) bool) error {
	var e encoder
	dropAll(&e, slices.DeleteFunc(s.memory.sealedNames(store.BucketPayload), keep), store.BucketPayload)
	if err := s.write(ctx, always(e.batch)); err != nil {
		return fmt.Errorf("drop Ignition of spent tickets: %w", err)
	}
	return nil
}

// Session is a Redfish session on a BMC. A process that is killed leaves its sessions behind, and BMCs
// have few, so the next process uses or deletes them.
type Session struct {
	URI   string
	Token model.Sensitive
}

// storedSession is the stored form of a session, before it is sealed.
type storedSession struct {
	URI   string `json:"uri"`
	Token string `json:"token"`
}

// SaveSession saves a session. A BMC keeps its newest 16.
func (s *Secrets) SaveSession(ctx context.Context, bmc model.BMCName, uri string, token model.Sensitive) error {
	if uri == "" || len(uri) > maxSession || len(token.Reveal()) > maxSession {
		return fmt.Errorf("save session with %s: its URI has %d bytes and its token %d, allowed are 1 to %d", bmc, len(uri), len(token.Reveal()), maxSession)
	}
	err := s.editSessions(ctx, bmc, func(known []storedSession) []storedSession {
		if slices.Contains(known, storedSession{uri, token.Reveal()}) {
			return known
		}
		known = append(slices.DeleteFunc(known, hasURI(uri)), storedSession{uri, token.Reveal()})
		return known[max(0, len(known)-maxSessions):]
	})
	if err != nil {
		return fmt.Errorf("save session with %s: %w", bmc, err)
	}
	return nil
}

// DropSession deletes a session that has ended.
func (s *Secrets) DropSession(ctx context.Context, bmc model.BMCName, uri string) error {
	err := s.editSessions(ctx, bmc, func(known []storedSession) []storedSession { return slices.DeleteFunc(known, hasURI(uri)) })
	if err != nil {
		return fmt.Errorf("forget session with %s: %w", bmc, err)
	}
	return nil
}

// Sessions returns the sessions of a BMC, the oldest first. Sessions that were sealed with another key are
// left out.
func (s *Secrets) Sessions(bmc model.BMCName) []Session {
	k := store.Key{Bucket: store.BucketSession, Name: string(bmc)}
	var all []Session
	for _, stored := range s.sessions(k, s.memory.sealed(k)) {
		all = append(all, Session{stored.URI, model.NewSensitive(stored.Token)})
	}
	return all
}

func hasURI(uri string) func(storedSession) bool {
	return func(s storedSession) bool { return s.URI == uri }
}

func (s *Secrets) editSessions(ctx context.Context, bmc model.BMCName, change func([]storedSession) []storedSession) error {
	if bmc == "" {
		return errors.New("the BMC has no name")
	}
	k := store.Key{Bucket: store.BucketSession, Name: string(bmc)}
	return s.write(ctx, func(d *draft) (store.Batch, error) {
		known := s.sessions(k, d.sealed(k))
		next := change(slices.Clone(known))
		switch {
		case len(next) == 0:
			return store.Batch{{Key: k}}, nil
		case slices.Equal(known, next):
			return nil, nil
		}
		raw, err := json.Marshal(next)
		return store.Batch{{Key: k, Value: s.sealer.seal(k, raw)}}, err
	})
}

// sessions opens sealed sessions. It returns none if they cannot be opened.
func (s *Secrets) sessions(k store.Key, sealed []byte) (sessions []storedSession) {
	plain, err := s.sealer.open(k, sealed)
	if err != nil || json.Unmarshal(plain, &sessions) != nil {
		return nil
	}
	return sessions
}
