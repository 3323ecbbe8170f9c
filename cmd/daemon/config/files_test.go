package config

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ingot/model/must"
)

// A key that names a file has to say what becomes of Ingot without that file.
func TestEachKeyThatNamesAFileHasADecision(t *testing.T) {
	undecided := make(map[string]bool)
	for key := range fileRules {
		undecided[key] = true
	}
	want := func(key string) {
		if _, decided := fileRules[key]; !decided {
			t.Errorf("%s names a file: say in fileRules what does not work without it, or that Ingot does not start", key)
		}
		delete(undecided, key)
	}
	// Keys within lists are no settings of their own, so the types are searched.
	var search func(prefix string, of reflect.Type)
	search = func(prefix string, of reflect.Type) {
		switch kind := of.Kind(); {
		case kind == reflect.Slice:
			search(prefix+"[]", of.Elem())
		case kind == reflect.Pointer:
			search(prefix, of.Elem())
		case kind == reflect.String && namesFile(prefix):
			want(prefix)
		case kind == reflect.Struct:
			for field := range of.Fields() {
				name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
				if name != "" && name != "-" {
					search(strings.TrimPrefix(prefix+"."+name, "."), field.Type)
				}
			}
		}
	}
	search("", reflect.TypeFor[Options]())
	for key := range undecided {
		t.Errorf("%s is no key that names a file", key)
	}
}

func TestFilesAreThoseThatAreSet(t *testing.T) {
	o := Default()
	o.BMC.CAFile = "/ca"
	o.Git.AgeKeyFile = filepath.Join(t.TempDir(), "key")
	must.Do(t, os.WriteFile(o.Git.AgeKeyFile, []byte("key"), 0o600))
	got := map[string][2]bool{}
	for _, f := range o.Files() {
		got[f.Key] = [2]bool{f.Without == "", f.Unreadable() == nil}
	}
	want := map[string][2]bool{ // whether Ingot does not start without it, and whether it can be read
		"bmc.caFile": {true, false}, "git.ageKeyFile": {false, true},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestAFileThatMayComeLaterDoesNotStopAStart(t *testing.T) {
	const url = "INGOT_GIT_URL=https://git.example.com/fleet.git"
	for variable, starts := range map[string]bool{
		"INGOT_BOOT_CREDENTIALS_FILE": true, "INGOT_DISCOVERY_MAC_PREFIXES_FILE": true, "INGOT_GIT_AGE_KEY_FILE": true,
		"INGOT_GIT_AUTH_PASSWORD_FILE": true, "INGOT_BMC_CA_FILE": false, "INGOT_BOOT_CA_FILE": false, "INGOT_REDIS_SEAL_KEY_FILE": false,
	} {
		_, err := Load("", []string{url, variable + "=/nowhere/file"})
		if starts != (err == nil) {
			t.Errorf("%s: %v, want a start: %t", variable, err, starts)
		}
	}
}
