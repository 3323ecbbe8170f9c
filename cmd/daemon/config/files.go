package config

import (
	"path/filepath"
	"reflect"
	"strings"
)

// File is a file that a key of the configuration names.
type File struct {
	Key  string // redis.passwordFile
	Path string
}

// Files are those that o names, in the order of its keys: credentials, keys, certificates
// and databases. A seal key of Ingot's own making is among them.
func (o Options) Files() []File {
	if o.Redis.SealKeyFile == "" {
		o.Redis.SealKeyFile = filepath.Join(o.State.Dir, SealKeyName)
	}
	var files []File
	for _, s := range settings(&o) {
		if s.value.Kind() == reflect.String && s.value.String() != "" && strings.HasSuffix(s.path, "File") {
			files = append(files, File{s.path, s.value.String()})
		}
	}
	return files
}

// SealKeyName is the file in state.dir with the seal key that Ingot makes where none is
// configured.
const SealKeyName = "seal.key"
