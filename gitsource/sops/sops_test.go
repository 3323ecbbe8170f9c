package sops

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"ingot/model"
	"ingot/model/must"
)

func testKeys(t *testing.T, file string) *Keys {
	t.Helper()
	k := NewKeys(filepath.Join("testdata", file))
	must.Get(k.Reload())(t)
	return k
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	return must.Get(os.ReadFile(filepath.Join("testdata", file)))(t)
}

func said(objects []model.Object) []any {
	var all []any
	for _, o := range objects {
		values := make(map[string]string)
		for key, v := range valuesOf(o) {
			values[key] = v.Reveal()
		}
		m := o.Metadata()
		m.Source, m.References, m.Places, m.Encrypted, m.DataKey = "", nil, nil, false, ""
		all = append(all, o, values)
	}
	return all
}

func valuesOf(o model.Object) map[string]model.Sensitive {
	switch o := o.(type) {
	case *model.Secret:
		return o.Values
	case *model.BMCSecret:
		return o.Values
	}
	return nil
}

// What the program sops wrote says the same as the manifest it was made of, and is no
// secret in plain text.
func TestFilesOfSops(t *testing.T) {
	for file, plain := range map[string]string{
		"bmcsecret.yaml":          "bmcsecret.yaml",
		"secret.json":             "secret.json",
		"several.yaml":            "several.yaml",
		"whole.yaml":              "claim.yaml",
		"whole.json":              "secret.json",
		"suffix.yaml":             "bmcsecret.yaml",
		"unencrypted-suffix.yaml": "bmcsecret.yaml",
		"unencrypted-regex.yaml":  "several.yaml",
		"two-recipients.yaml":     "bmcsecret.yaml",
		"post-quantum.yaml":       "bmcsecret.yaml",
	} {
		t.Run(file, func(t *testing.T) {
			keys := testKeys(t, "keys.txt")
			if file == "post-quantum.yaml" {
				keys = testKeys(t, "pq.txt")
			}
			want, problems := model.Decode(file, read(t, "plain/"+plain), model.DecodeOptions{AllowPlaintextSecrets: true})
			if len(want) == 0 || model.HasErrors(problems) {
				t.Fatal(problems)
			}
			got, problems := model.Decode(file, read(t, file), model.DecodeOptions{Open: keys.Open})
			if len(problems) > 0 {
				t.Fatal(problems)
			}
			for _, o := range got {
				if o.Metadata().Encrypted != (valuesOf(o) != nil) {
					t.Errorf("%s: encrypted is %v", o.Identity(), o.Metadata().Encrypted)
				}
			}
			if g, w := said(got), said(want); !reflect.DeepEqual(g, w) {
				t.Errorf("got %v\nwant %v", g, w)
			}
		})
	}
}

// All kinds of values come back as they were, and stand in the code over all values as SOPS
// has them, whether they are encrypted or not.
func TestKindsOfValues(t *testing.T) {
	var want any
	must.Do(t, yaml.Unmarshal(read(t, "plain/kinds.yaml"), &want))
	for _, file := range []string{"kinds.yaml", "kinds-clear.yaml"} {
		var root yaml.Node
		must.Do(t, yaml.Unmarshal(read(t, file), &root))
		if _, fault := testKeys(t, "keys.txt").Open(root.Content); fault != nil {
			t.Fatalf("%s: %s", file, fault.Message)
		}
		var got map[string]any
		must.Do(t, root.Decode(&got))
		delete(got, "sops")
		if diff := gocmp.Diff(want, any(got)); diff != "" {
			t.Errorf("%s: %s", file, diff)
		}
	}
}

// Files of before there were rules leave values out whose name ends in _unencrypted.
func TestFilesWithoutARule(t *testing.T) {
	data := swap("whole.yaml", "    unencrypted_suffix: _unencrypted\n", "")(t)
	objects, problems := model.Decode("f", data, model.DecodeOptions{Open: testKeys(t, "keys.txt").Open})
	if len(objects) != 1 || len(problems) > 0 {
		t.Error(objects, problems)
	}
	m := &metadata{}
	if fault := m.checkRules(); fault != nil || m.UnencryptedSuffix != unencryptedSuffix {
		t.Errorf("got %v, %q", fault, m.UnencryptedSuffix)
	}
}

// A rule that depends on comments is followed by what stands there.
func TestRuleAboutComments(t *testing.T) {
	objects, problems := model.Decode("f", read(t, "comment-regex.yaml"), model.DecodeOptions{Open: testKeys(t, "keys.txt").Open, AllowPlaintextSecrets: true})
	if len(objects) != 1 || len(problems) > 0 || objects[0].Metadata().Encrypted {
		t.Fatal(objects, problems)
	}
	if got := valuesOf(objects[0])["password"].Reveal(); !strings.HasPrefix(got, "pass: #word'") {
		t.Errorf("got password %q", got)
	}
}

// What is wrong with an encrypted value is told by its place alone, whatever the kind.
func TestWrongValuesAreNotShown(t *testing.T) {
	objects, problems := model.Decode("f", read(t, "wrong.yaml"), model.DecodeOptions{Open: testKeys(t, "keys.txt").Open})
	if len(objects) > 0 || len(problems) < 5 {
		t.Fatalf("got %v, %v", objects, problems)
	}
	var fields []string
	for _, p := range problems {
		fields = append(fields, fmt.Sprintf("%d:%d %s", p.Line, p.Column, p.Field))
		if strings.Contains(p.String(), "hunter2") || strings.Contains(p.String(), "4711") {
			t.Errorf("a value is shown: %s", p)
		}
	}
	for _, want := range []string{"9:13 spec.access.ip", "13:15 spec.protocol.port", "14:17 spec.protocol.scheme"} {
		if !slices.Contains(fields, want) {
			t.Errorf("got %q, want %s among them", fields, want)
		}
	}
}

func FuzzOpen(f *testing.F) {
	files := must.Get(filepath.Glob("testdata/*.yaml"))(f)
	for _, file := range files {
		data := must.Get(os.ReadFile(file))(f)
		f.Add(data)
	}
	keys := NewKeys("testdata/keys.txt")
	must.Get(keys.Reload())(f)
	f.Fuzz(func(_ *testing.T, data []byte) {
		model.Decode("f", data, model.DecodeOptions{Open: keys.Open})
		model.Decode("f", data, model.DecodeOptions{Open: Check})
	})
}

// Whoever has no key sees that values are encrypted, and what else is wrong.
func TestCheck(t *testing.T) {
	for name, tt := range map[string]struct {
		data    func(*testing.T) []byte
		objects int
		want    string // the problems
	}{
		"a secret":      {data: whole("bmcsecret.yaml"), objects: 1},
		"one in JSON":   {data: whole("secret.json"), objects: 1},
		"several":       {data: whole("several.yaml"), objects: 3},
		"for strangers": {data: whole("stranger.yaml"), objects: 1},
		"of which nobody knows what it is": {
			data: whole("whole.yaml"), want: "f:2:13: warning: is encrypted, so the object is not checked without the key",
		},
		"a rule that lies": {
			data: whole("trick.yaml"),
			want: "f:7:15: BMCSecret rack7: stringData: a secret in plain text is refused, and this value is not encrypted though the file is: " +
				"have .sops.yaml encrypt all of data and stringData (encrypted_regex: ^(data|stringData)$)",
		},
		"a mistake beside": {
			data: swap("bmcsecret.yaml", "kind: BMCSecret", "kind: BMCSecret\nimmutabel: true"),
			want: `f:4:1: BMCSecret rack7: immutabel: unknown field, did you mean "immutable"?`,
		},
		"mac-only": {
			data: whole("mac-only.yaml"), want: "f:9:1: BMCSecret rack7: sops: mac_only_encrypted is refused, because a change of what is not " +
				"encrypted would not be noticed: take it out of .sops.yaml and encrypt the file again",
		},
	} {
		t.Run(name, func(t *testing.T) {
			objects, problems := model.Decode("f", tt.data(t), model.DecodeOptions{Open: Check})
			var got []string
			for _, p := range problems {
				got = append(got, p.String())
			}
			if len(objects) != tt.objects || strings.Join(got, "\n") != tt.want {
				t.Errorf("got %d objects, %s, want %d, %s", len(objects), strings.Join(got, "\n"), tt.objects, tt.want)
			}
			for _, o := range objects {
				for key, v := range valuesOf(o) {
					if v.Reveal() != "" || !o.Metadata().Encrypted {
						t.Errorf("%s has %s", o.Identity(), key)
					}
				}
			}
		})
	}
}

// A key file that changes is read again; one that cannot be read leaves the former keys, and
// nothing of it is shown.
func TestKeyFileChanges(t *testing.T) {
	file := filepath.Join(t.TempDir(), "keys")
	k := NewKeys(file)
	opens := func() bool {
		_, problems := model.Decode("f", read(t, "bmcsecret.yaml"), model.DecodeOptions{Open: k.Open})
		return len(problems) == 0
	}
	both := string(read(t, "other.txt")) + "\n# ours\r\n" + string(read(t, "keys.txt"))
	for _, step := range []struct {
		text    string
		changed bool
		err     string // part of it
		opens   bool
	}{
		{text: string(read(t, "other.txt")), changed: true},
		{text: string(read(t, "other.txt"))},
		{text: both, changed: true, opens: true},
		{text: "# nothing\n", err: "it holds no identity", opens: true},
		{text: both + "AGE-SECRET-KEY-1ABC\n", err: "line 7 is no identity of age", opens: true},
		{text: strings.Repeat("#", maxKeyFile+1), err: "larger than 65536 bytes", opens: true},
		{text: string(read(t, "keys.txt")), changed: true, opens: true},
	} {
		must.Do(t, os.WriteFile(file, []byte(step.text), 0o600))
		changed, err := k.Reload()
		if changed != step.changed || (err == nil) != (step.err == "") || err != nil && !strings.Contains(err.Error(), step.err) {
			t.Errorf("%.20q: got changed %v, %v", step.text, changed, err)
		}
		if err != nil && strings.Contains(err.Error(), "ABC") {
			t.Errorf("the key is shown: %v", err)
		}
		if opens() != step.opens {
			t.Errorf("%.20q: opened: %v", step.text, !step.opens)
		}
	}
}

// What the program sops writes here and now is read as well, after its own changes too.
func TestProgramSops(t *testing.T) {
	program, err := exec.LookPath("sops")
	if err != nil {
		t.Skip("the program sops is needed: ", err)
	}
	ours, other := testKeys(t, "keys.txt"), testKeys(t, "other.txt")
	dir := t.TempDir()
	run := func(args ...string) {
		t.Helper()
		c := exec.Command(program, args...)
		c.Dir, c.Env = dir, append(os.Environ(), "SOPS_AGE_KEY="+string(read(t, "keys.txt")))
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("sops %v: %v\n%s", args, err, out)
		}
	}
	write := func(file, text string) {
		t.Helper()
		must.Do(t, os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600))
	}
	password := func(k *Keys, want string) {
		t.Helper()
		data := must.Get(os.ReadFile(filepath.Join(dir, "s.yaml")))(t)
		objects, problems := model.Decode("f", data, model.DecodeOptions{Open: k.Open})
		if len(problems) > 0 || valuesOf(objects[0])["password"].Reveal() != want {
			t.Errorf("got %v, %v, want %s", objects, problems, want)
		}
	}
	rule := func(recipients ...string) {
		t.Helper()
		write(".sops.yaml", "creation_rules: [{encrypted_regex: ^(data|stringData)$, age: '"+strings.Join(recipients, ",")+"'}]\n")
	}
	rule(slices.Collect(maps.Keys(ours.identities))...)
	write("s.yaml", string(read(t, "plain/bmcsecret.yaml")))
	run("encrypt", "--in-place", "s.yaml")
	run("set", "s.yaml", `["stringData"]["password"]`, `"another"`)
	password(ours, "another")
	rule(append(slices.Collect(maps.Keys(ours.identities)), slices.Collect(maps.Keys(other.identities))...)...)
	run("updatekeys", "--yes", "s.yaml")
	password(other, "another")
	run("rotate", "--in-place", "s.yaml")
	password(other, "another")
	password(ours, "another")
}

func swap(file, old, now string) func(*testing.T) []byte {
	return func(t *testing.T) []byte {
		text := string(read(t, file))
		if !strings.Contains(text, old) {
			t.Fatalf("%s does not hold %q", file, old)
		}
		return []byte(strings.Replace(text, old, now, 1))
	}
}

func whole(file string) func(*testing.T) []byte {
	return func(t *testing.T) []byte { return read(t, file) }
}

// A file that is not opened says why and where, names its object if that is sure, and shows
// no value.
func TestWhatIsNotOpened(t *testing.T) {
	for name, tt := range map[string]struct {
		data func(*testing.T) []byte
		keys string // "" is keys.txt, - none
		want string // how the first problem begins
	}{
		"without a key": {
			data: whole("bmcsecret.yaml"), keys: "-", want: "f:9:1: BMCSecret rack7: sops: the file is encrypted with SOPS for age1025pq",
		},
		"with another key": {
			data: whole("bmcsecret.yaml"), keys: "other.txt", want: "f:9:1: BMCSecret rack7: sops: the file is encrypted for age1025pq",
		},
		"with none of two keys": {
			data: whole("two-recipients.yaml"), keys: "pq.txt", want: "f:9:1: BMCSecret rack7: sops: the file is encrypted for age1wd6y",
		},
		"encrypted as a whole, of which nobody knows what it is": {
			data: whole("whole.yaml"), keys: "other.txt", want: "f:19:1: sops: the file is encrypted for age1025pq",
		},
		"JSON, with another key": {
			data: whole("secret.json"), keys: "other.txt", want: "f:18:2: Secret default/web: sops: the file is encrypted for age1025pq",
		},
		"a code over encrypted values alone": {
			data: whole("mac-only.yaml"), want: "f:9:1: BMCSecret rack7: sops: mac_only_encrypted is refused",
		},
		"key groups": {data: whole("groups.yaml"), want: "f:9:1: sops: key groups (shamir_threshold) are not read"},
		"other kinds of keys": {
			data: swap("bmcsecret.yaml", "    age:\n", "    pgp:\n"), want: "f:9:1: BMCSecret rack7: sops: the file is not encrypted for age (but for pgp)",
		},
		"a name that was changed": {
			data: swap("bmcsecret.yaml", "name: rack7", "name: rack8"), want: "f:9:1: sops: the file was changed without SOPS (MAC mismatch)",
		},
		"a field that was added": {
			data: swap("bmcsecret.yaml", "stringData:", "type: Opaque\nstringData:"), want: "f:10:1: sops: the file was changed without SOPS",
		},
		"a value that was moved to another key": {
			data: swap("bmcsecret.yaml", "    username: ENC", "    login: ENC"), want: "f:7:12: cannot be decrypted: it was changed, or moved",
		},
		"a value that was damaged": {
			data: swap("bmcsecret.yaml", ",iv:", ",vi:"), want: "f:7:15: BMCSecret rack7: is not encrypted as SOPS would have it",
		},
		"a value that was written in plain text": {
			data: func(t *testing.T) []byte {
				return regexp.MustCompile("password: ENC.*").ReplaceAll(read(t, "bmcsecret.yaml"), []byte("password: pass12345"))
			},
			want: "f:8:15: BMCSecret rack7: is not encrypted as SOPS would have it",
		},
		"a document that was added": {
			data: func(t *testing.T) []byte {
				return append(read(t, "bmcsecret.yaml"), "---\n"+string(read(t, "plain/secret.json"))...)
			},
			want: "f:2:1: is in an encrypted file that is wrong elsewhere",
		},
		"a document that was taken away": {
			data: func(t *testing.T) []byte {
				_, rest, _ := strings.Cut(string(read(t, "several.yaml")), "\n---\n")
				return []byte(rest)
			},
			want: "f:9:1: sops: the file was changed without SOPS (MAC mismatch)",
		},
		"a field sops that is none": {data: swap("bmcsecret.yaml", "sops:", "sops: 1\nx:"), want: "f:9:7: BMCSecret rack7: sops: the field sops is not as SOPS"},
		"a code that is none":       {data: swap("bmcsecret.yaml", "mac: ENC", "mac: X"), want: "f:9:1: BMCSecret rack7: sops: the field sops lacks lastmodified or mac"},
		"another time":              {data: swap("bmcsecret.yaml", "lastmodified: \"20", "lastmodified: \"19"), want: "f:9:1: sops: the file was changed without SOPS"},
		"a key that is none":        {data: swap("bmcsecret.yaml", "-----BEGIN AGE", "-----BEGIN RSA"), want: "f:9:1: BMCSecret rack7: sops: the field sops has an age"},
		"a key that was damaged":    {data: swap("bmcsecret.yaml", "            -----END", "            AAAA\n            -----END"), want: "f:9:1: BMCSecret rack7: sops: the key for age1025pq"},
		"two rules": {
			data: swap("bmcsecret.yaml", "    encrypted_regex:", "    unencrypted_suffix: x\n    encrypted_regex:"), want: "f:9:1: BMCSecret rack7: sops: the field sops has more than one rule",
		},
		"a rule that is none":              {data: swap("bmcsecret.yaml", "^(data|stringData)$", "^("), want: "f:9:1: BMCSecret rack7: sops: the field sops has a regular"},
		"a secret beside whose rules lie":  {data: whole("trick.yaml"), want: "f:7:15: BMCSecret rack7: stringData: a secret in plain text is refused, and this value"},
		"a secret of which half is sealed": {data: whole("half.yaml"), want: "f:7:15: BMCSecret rack7: stringData: a secret in plain text is refused, and this value"},
		"fields that lie too deep": {
			data: swap("kinds-clear.yaml", "whole: 42", "whole: "+strings.Repeat("{a: ", 200)+"1"+strings.Repeat("}", 200)), want: "f:5:405: is nested too deeply",
		},
		"aliases": {data: swap("kinds-clear.yaml", "whole: 42", "whole: &a 42\nalias: *a"), want: `f:6:8: aliases ("*name") are not read in an encrypted file`},
	} {
		t.Run(name, func(t *testing.T) {
			keys := NewKeys("")
			if tt.keys != "-" {
				keys = testKeys(t, cmp.Or(tt.keys, "keys.txt"))
			}
			objects, problems := model.Decode("f", tt.data(t), model.DecodeOptions{Open: keys.Open})
			if len(objects) > 0 || len(problems) == 0 || !strings.HasPrefix(problems[0].String(), tt.want) {
				t.Errorf("got %v, %v, want %s…", objects, problems, tt.want)
			}
			for _, p := range problems {
				if strings.Contains(p.String(), "pass12345") || strings.Contains(p.String(), "ENC[") {
					t.Errorf("a value is shown: %s", p)
				}
			}
		})
	}
}
