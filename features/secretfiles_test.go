package features

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// The keys and the encrypted BMCSecrets of bmc1, see testdata/sops/make.sh.
const (
	encryptedFiles = "testdata/sops"
	encryptionKeys = "../gitsource/sops/testdata"
)

const sealedPath = "bmcsecrets/bmc1.yaml"

// encryptSecrets has the BMCSecret of bmc1 encrypted with SOPS, and no other taken.
func encryptSecrets(ctx context.Context, how string) error {
	w := siteOf(ctx)
	w.sealed = "bmc1.yaml"
	if how != "" {
		return w.writeKey("other.txt")
	}
	return w.writeKey("keys.txt")
}

func giveKey(ctx context.Context) error { return siteOf(ctx).writeKey("keys.txt") }

func (w *site) keyFile() string { return filepath.Join(w.dir, "age.txt") }

func (w *site) writeKey(name string) error {
	key, err := os.ReadFile(filepath.Join(encryptionKeys, name))
	if err != nil {
		return err
	}
	return os.WriteFile(w.keyFile(), key, 0o600)
}

func (w *site) keySettings() string {
	if w.sealed == "" {
		return ""
	}
	return fmt.Sprintf(", ageKeyFile: %q", w.keyFile())
}

func (w *site) addSealed(files map[string]string) error {
	if w.sealed == "" {
		return nil
	}
	secret, err := os.ReadFile(filepath.Join(encryptedFiles, w.sealed))
	files[sealedPath] = string(secret)
	return err
}

func commitOtherSecret(ctx context.Context, name, how string) error {
	w := siteOf(ctx)
	files := make(map[string]string)
	w.sealed = "bmc1-stranger.yaml"
	if err := w.addSealed(files); err != nil {
		return err
	}
	if how == "in plain text" {
		files[sealedPath] = text(secretOf(name))
	}
	return w.commit(files, "change the password of "+name)
}

// secretsOutside has BMCSecrets stand in a folder that is not there yet.
func secretsOutside(ctx context.Context) error {
	siteOf(ctx).outside = true
	return nil
}

func (w *site) secretFolder() string {
	if !w.outside {
		return ""
	}
	return filepath.Join(w.dir, "secrets")
}

func fillFolder(ctx context.Context, which, name string) error {
	dir := filepath.Join(siteOf(ctx).secretFolder(), name)
	password := map[string]string{"right": bmcPassword, "wrong": wrongPassword}[which]
	return errors.Join(os.MkdirAll(dir, 0o700),
		os.WriteFile(filepath.Join(dir, "username"), []byte("admin\n"), 0o600),
		os.WriteFile(filepath.Join(dir, "password"), []byte(password+"\n"), 0o600))
}

func spoilFolder(ctx context.Context, how string) error {
	dir := siteOf(ctx).secretFolder()
	if how == "lost" {
		return os.RemoveAll(dir)
	}
	return os.Remove(filepath.Join(dir, "bmc1", "password"))
}

func keepsNoPassword(ctx context.Context) error {
	return filepath.WalkDir(siteOf(ctx).stateDir(), func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil // it is replaced meanwhile
		}
		if strings.Contains(string(content), bmcPassword) {
			return fmt.Errorf("%s holds the password", path)
		}
		return err
	})
}
