package features

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"
	"sigs.k8s.io/yaml"

	"ingot/features/internal/rig"
)

// sshKey is the public key of a person. That of a name with "!" has options.
func sshKey(name string) string {
	seed := sha256.Sum256([]byte(name))
	key, err := ssh.NewPublicKey(ed25519.NewKeyFromSeed(seed[:]).Public())
	if err != nil {
		panic(err) // it is an Ed25519 key
	}
	line := strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key))) + " " + name
	if strings.HasSuffix(name, "!") {
		return "no-pty " + line
	}
	return line
}

func sshKeys(people string) (all []string) {
	for _, name := range names(people) {
		all = append(all, sshKey(name))
	}
	return all
}

func mayLogIn(ctx context.Context, people string) error {
	keys, err := json.Marshal(sshKeys(people))
	siteOf(ctx).sshKeys = fmt.Sprintf(", sshKeys: %s", keys)
	return err
}

// hasSSHKeys compares the keys that a machine was served last: in Ignition for a named user, and in meta-data for the
// default user of cloud-init.
func hasSSHKeys(ctx context.Context, user string, m *machine, people string) error {
	want := slices.Sorted(slices.Values(sshKeys(people)))
	return rig.Within(patience, func() error {
		got, err := siteOf(ctx).servedKeys(m, user)
		if slices.Sort(got); err == nil && !slices.Equal(got, want) {
			err = fmt.Errorf("%s was served the keys %q, want %q", m.name, got, want)
		}
		return err
	})
}

func defaultHasSSHKeys(ctx context.Context, m *machine, people string) error {
	return hasSSHKeys(ctx, "", m, people)
}

func (w *site) servedKeys(m *machine, user string) ([]string, error) {
	if user == "" {
		var meta struct {
			Keys []string `json:"public-keys"`
		}
		seed := m.Seed()
		if seed == nil {
			return nil, fmt.Errorf("%s has no files for cloud-init", m.name)
		}
		err := yaml.Unmarshal([]byte(seed.Files["meta-data"]), &meta)
		return meta.Keys, err
	}
	served := w.boot.exchanges(func(e exchange) bool { return e.uuid == m.UUID() && e.users != nil })
	if len(served) == 0 {
		return nil, fmt.Errorf("%s was served no Ignition with users", m.name)
	}
	return served[len(served)-1].users[user], nil
}

// usersOf are the keys of each user of Ignition.
func usersOf(ignition []byte) map[string][]string {
	var doc struct {
		Passwd struct {
			Users []struct {
				Name string
				Keys []string `json:"sshAuthorizedKeys"`
			}
		}
	}
	if json.Unmarshal(ignition, &doc) != nil || len(doc.Passwd.Users) == 0 {
		return nil
	}
	users := make(map[string][]string)
	for _, u := range doc.Passwd.Users {
		users[u.Name] = u.Keys
	}
	return users
}
