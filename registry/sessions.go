package registry

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"ingot/model"
	"ingot/registry/store"
)

const (
	// maxSessions is how many sessions are kept of one BMC; few BMCs have more.
	maxSessions = 16
	// maxSession is the size of the longest URI and token, in bytes.
	maxSession = 4096
)

// Session is a Redfish session that Ingot has with a BMC. A process that was killed
// leaves its sessions behind, and BMCs have few: the next one uses or deletes them.
type Session struct {
	URI   string
	Token model.Sensitive
}

// storedSession is how a session is kept, within a seal.
type storedSession struct {
	URI   string `json:"uri"`
	Token string `json:"token"`
}

// SaveSession keeps a session, sealed; of those of one BMC the newest 16.
func (r *Registry) SaveSession(ctx context.Context, bmc model.BMCName, uri string, token model.Sensitive) error {
	if uri == "" || len(uri) > maxSession || len(token.Reveal()) > maxSession {
		return fmt.Errorf("save session with %s: its URI has %d bytes and its token %d, allowed are 1 to %d", bmc, len(uri), len(token.Reveal()), maxSession)
	}
	err := r.editSessions(ctx, bmc, func(known []storedSession) []storedSession {
		if i := slices.IndexFunc(known, isAt(uri)); i >= 0 && known[i].Token == token.Reveal() {
			return known
		}
		known = append(slices.DeleteFunc(known, isAt(uri)), storedSession{uri, token.Reveal()})
		return known[max(0, len(known)-maxSessions):]
	})
	if err != nil {
		return fmt.Errorf("save session with %s: %w", bmc, err)
	}
	return nil
}

// DropSession forgets a session, which has ended.
func (r *Registry) DropSession(ctx context.Context, bmc model.BMCName, uri string) error {
	err := r.editSessions(ctx, bmc, func(known []storedSession) []storedSession {
		return slices.DeleteFunc(known, isAt(uri))
	})
	if err != nil {
		return fmt.Errorf("forget session with %s: %w", bmc, err)
	}
	return nil
}

// Sessions returns the sessions that are kept of a BMC, the oldest first. Those that
// were sealed with another key are left out.
func (r *Registry) Sessions(bmc model.BMCName) []Session {
	k := store.Key{Bucket: store.BucketSession, Name: string(bmc)}
	var all []Session
	for _, s := range r.openSessions(k, r.memory.kept(k)) {
		all = append(all, Session{s.URI, model.NewSensitive(s.Token)})
	}
	return all
}

func isAt(uri string) func(storedSession) bool {
	return func(s storedSession) bool { return s.URI == uri }
}

// editSessions makes a change to the sessions of one BMC.
func (r *Registry) editSessions(ctx context.Context, bmc model.BMCName, edit func([]storedSession) []storedSession) error {
	if bmc == "" {
		return fmt.Errorf("the BMC has no name")
	}
	k := store.Key{Bucket: store.BucketSession, Name: string(bmc)}
	return r.write(ctx, func(d *draft) (store.Batch, error) {
		known := r.openSessions(k, d.sealed(k))
		before, err := json.Marshal(known)
		if err != nil {
			return nil, err
		}
		sessions := edit(known)
		if len(sessions) == 0 {
			return store.Batch{{Key: k}}, nil
		}
		after, err := json.Marshal(sessions)
		if err != nil || bytes.Equal(before, after) {
			return nil, err // no two seals are alike, so what is the same is not sealed anew
		}
		return store.Batch{{Key: k, Value: r.sealer.seal(k, after)}}, nil
	})
}

// openSessions returns what was sealed, nothing if it cannot be opened: it is of no use
// then.
func (r *Registry) openSessions(k store.Key, sealed []byte) []storedSession {
	plain, err := r.open(k, sealed)
	if err != nil {
		return nil
	}
	var sessions []storedSession
	if json.Unmarshal(plain, &sessions) != nil {
		return nil
	}
	return sessions
}
