package ignition

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"ingot/model"
	"ingot/model/must"
)

var twoKeys = []string{"ssh-ed25519 AAAA a", "ssh-ed25519 BBBB b"}

func withKeys(b ClaimBoot) ClaimBoot {
	b.SSHKeys = append(twoKeys[:2:2], twoKeys[0]) // the configuration may have a key of the claim
	return b
}

// keysOf returns the keys that Ignition gives to each user.
func keysOf(t *testing.T, ignition string) map[string][]string {
	t.Helper()
	var doc struct {
		Passwd struct {
			Users []struct {
				Name string
				Keys []string `json:"sshAuthorizedKeys"`
			}
		}
	}
	must.Do(t, json.Unmarshal([]byte(ignition), &doc))
	all := make(map[string][]string)
	for _, u := range doc.Passwd.Users {
		all[u.Name] = u.Keys
	}
	return all
}

func TestSSHKeysInIgnition(t *testing.T) {
	const butane = "variant: fcos\nversion: 1.5.0\npasswd: {users: [{name: %s, ssh_authorized_keys: [ssh-ed25519 OWN, ssh-ed25519 AAAA a]}]}\n"
	for name, tc := range map[string]struct {
		source, user string
		want         map[string][]string
	}{
		"without a Secret":              {want: map[string][]string{"core": twoKeys}},
		"user of the image":             {user: "debian", want: map[string][]string{"debian": twoKeys}},
		"JSON without users":            {source: `{"ignition":{"version":"3.4.0"}}`, want: map[string][]string{"core": twoKeys}},
		"the same user of the source":   {source: strings.Replace(butane, "%s", "core", 1), want: map[string][]string{"core": {"ssh-ed25519 OWN", "ssh-ed25519 AAAA a", "ssh-ed25519 BBBB b"}}},
		"another user of the source":    {source: strings.Replace(butane, "%s", "alice", 1), want: map[string][]string{"alice": {"ssh-ed25519 OWN", "ssh-ed25519 AAAA a"}, "core": twoKeys}},
		"a source that replaces itself": {source: `{"ignition":{"version":"3.4.0","config":{"replace":{"source":"https://example.com/a.ign"}}}}`, want: map[string][]string{"core": twoKeys}},
	} {
		t.Run(name, func(t *testing.T) {
			b := withKeys(claimBoot(tc.source, ""))
			b.User = tc.user
			got := keysOf(t, opened(t, b).Ignition)
			if len(got) != len(tc.want) {
				t.Errorf("got the users %v, want %v", got, tc.want)
			}
			for user, want := range tc.want {
				slices.Sort(got[user])
				if want = slices.Sorted(slices.Values(want)); !slices.Equal(got[user], want) {
					t.Errorf("user %s has %q, want %q", user, got[user], want)
				}
			}
		})
	}
}

func TestSSHKeysAreNotCachedWithTheSource(t *testing.T) {
	g := newIgnition(t, Options{})
	with := must.Get(g.ForClaim(withKeys(claimBoot("", ""))))(t)
	without := must.Get(g.ForClaim(claimBoot("", "")))(t)
	if !strings.Contains(with.Reveal(), "AAAA") || strings.Contains(without.Reveal(), "AAAA") {
		t.Error("one compiler gives the keys of one claim to another, or none")
	}
}

func TestSSHKeysInCloudInit(t *testing.T) {
	own := []string{"ssh-rsa OWN"}
	all := slices.Concat(own, twoKeys)
	for name, tc := range map[string]struct {
		user, meta string
		want       []string
		key        string // of meta-data that stays
	}{
		"a cloud-config":                   {user: "#cloud-config\n{}\n", want: twoKeys},
		"a script":                         {user: "#!/bin/sh\n", want: twoKeys},
		"a MIME message":                   {user: "MIME-Version: 1.0\nContent-Type: text/plain\n\n#!/bin/sh\n", want: twoKeys},
		"other meta-data stays":            {user: "#!/bin/sh\n", meta: "tags: [a]\n", want: twoKeys, key: "tags"},
		"a list of keys of meta-data":      {user: "#!/bin/sh\n", meta: "public-keys: [ssh-rsa OWN]\n", want: all},
		"a text of meta-data":              {user: "#!/bin/sh\n", meta: "public-keys: |\n  ssh-rsa OWN\n", want: all},
		"a mapping of meta-data":           {user: "#!/bin/sh\n", meta: "public-keys: {a: ssh-rsa OWN, b: [ssh-ed25519 AAAA a]}\n", want: all},
		"a key of meta-data without value": {user: "#!/bin/sh\n", meta: "public-keys:\n", want: twoKeys},
	} {
		t.Run(name, func(t *testing.T) {
			b := withKeys(cloudBoot("user-data", tc.user, "meta-data", tc.meta))
			p := opened(t, b)
			if p.NoCloud[UserData] != tc.user {
				t.Errorf("user-data became %q", p.NoCloud[UserData])
			}
			var meta map[string]any
			must.Do(t, yaml.Unmarshal([]byte(p.NoCloud[keyMetaData]), &meta))
			if got := publicKeys(meta[keyPublicKeys]); !slices.Equal(sorted(got), sorted(tc.want)) || meta["instance-id"] == nil {
				t.Errorf("meta-data has the keys %q, want %q:\n%s", got, tc.want, p.NoCloud[keyMetaData])
			}
			if _, kept := meta[tc.key]; tc.key != "" && !kept {
				t.Errorf("meta-data has lost %s", tc.key)
			}
		})
	}
	if p := opened(t, cloudBoot("user-data", "#!/bin/sh\n", "meta-data", "public-keys: {a: ssh-rsa OWN}\n")); !strings.Contains(p.NoCloud[keyMetaData], "public-keys: {a: ssh-rsa OWN}") {
		t.Errorf("without keys of the claim its meta-data changed: %s", p.NoCloud[keyMetaData])
	}
}

func sorted(keys []string) []string { return slices.Sorted(slices.Values(keys)) }

func TestSSHKeysOnDisk(t *testing.T) {
	const butane = "variant: fcos\nversion: 1.5.0\n"
	for name, tc := range map[string]struct {
		secret      []string
		seed, image model.SeedKind
		file        string // that has the keys
		note        string
	}{
		"NoCloud without a Secret":          {file: "meta-data"},
		"NoCloud":                           {secret: []string{"user-data", "#!/bin/sh\n"}, file: "meta-data"},
		"Ignition by NoCloud":               {secret: []string{"ignition", butane}, seed: model.SeedNoCloud, file: "user-data"},
		"a config drive":                    {secret: []string{"user-data", "#!/bin/sh\n"}, seed: model.SeedOpenStack, file: "openstack/latest/meta_data.json"},
		"Ignition by a config drive":        {secret: []string{"ignition", butane}, file: "openstack/latest/user_data", note: "config drive"},
		"Fedora CoreOS without a Secret":    {image: model.SeedFCOS, file: "ignition/config.ign"},
		"Flatcar without a Secret":          {image: model.SeedFlatcar, file: "config.ign"},
		"no seed has no place for them":     {seed: model.SeedNone, note: "the SSH keys have no effect"},
		"a machine configuration for Talos": {secret: []string{"user-data", "machine: {type: worker}\n"}, file: "meta-data", note: "the SSH keys have no effect"},
	} {
		t.Run(name, func(t *testing.T) {
			b := diskBoot(tc.secret...)
			b.ClaimBoot, b.Seed, b.IgnitionSeed = withKeys(b.ClaimBoot), tc.seed, tc.image
			seed := installed(t, b).Install.Seed
			if tc.file != "" && !strings.Contains(seed.Files[tc.file], twoKeys[1]) {
				t.Errorf("%s has no key: %s", tc.file, seed.Files[tc.file])
			}
			if note := b.SeedNote(); !strings.Contains(note, tc.note) || tc.note == "" && note != "" {
				t.Errorf("the note is %q, want %q", note, tc.note)
			}
		})
	}
}

// TestSSHKeysInOpenStackMetaData checks the form that cloud-init and Afterburn read: a mapping of names to keys.
func TestSSHKeysInOpenStackMetaData(t *testing.T) {
	text := must.Get(openStackMetaData(withKeys(cloudBoot("meta-data", "public-keys: [ssh-rsa OWN]\npublic_keys: {b: ssh-ed25519 BBBB b}\n"))))(t)
	var meta map[string]any
	must.Do(t, json.Unmarshal([]byte(text), &meta))
	keys, _ := meta["public_keys"].(map[string]any)
	if got := publicKeys(keys); len(keys) != 3 || !slices.Equal(sorted(got), sorted(append(twoKeys[:2:2], "ssh-rsa OWN"))) || meta["public-keys"] != nil {
		t.Errorf("the keys are %s", text)
	}
}
