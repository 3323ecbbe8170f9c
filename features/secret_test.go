package features

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"

	"ingot/features/internal/rig"
)

func shownKeyed(ctx context.Context, list string) error {
	w := siteOf(ctx)
	return rig.Within(patience, func() error {
		files, err := w.statusBranch()
		if err != nil {
			return err
		}
		return forEach(list, func(claim string) error { return w.shownByNoDigest(claim, files) })
	})
}

func (w *site) shownByNoDigest(claim string, files map[string]string) error {
	guesses, err := w.guesses(claim)
	if err != nil {
		return err
	}
	installed := false
	for path, text := range files {
		if strings.HasPrefix(path, "servers/") && strings.Contains(text, "claim: "+string(claimName(claim))) {
			installed = strings.Contains(text, "\n  install:\n    digest: ")
		}
		for _, g := range guesses {
			if strings.Contains(text, g) {
				return fmt.Errorf("%s of the status branch shows %s, which is made of the Ignition of claim %s", path, g, claim)
			}
		}
	}
	if !installed {
		return fmt.Errorf("the status branch does not say what was installed for claim %s", claim)
	}
	return nil
}

func (w *site) guesses(claim string) ([]string, error) {
	files, err := w.repo.ReadBranch(gitBranch)
	if err != nil {
		return nil, err
	}
	var image, ignition string
	for document := range strings.SplitSeq(files[claimPath(claim)], "---\n") {
		var o struct {
			Spec       struct{ Image string }
			StringData struct{ Ignition string }
		}
		if err := yaml.Unmarshal([]byte(document), &o); err != nil {
			return nil, err
		}
		image += o.Spec.Image
		ignition += o.StringData.Ignition
	}
	if image == "" || ignition == "" {
		return nil, errors.New("Git has no image or no Ignition of claim " + claim)
	}
	var all []string
	for _, text := range []string{ignition, image + ignition, image + "\x00" + ignition, image + "\x00" + ignition + "\x00"} {
		sum := sha256.Sum256([]byte(text))
		all = append(all, hex.EncodeToString(sum[:]))
	}
	return all, nil
}

func askForNothingElse(ctx context.Context, list string) error {
	return rig.Within(patience, func() error {
		files, err := siteOf(ctx).statusBranch()
		if err != nil {
			return err
		}
		return forEach(list, func(claim string) error {
			text := files["serverclaims/"+string(claimName(claim))+".yaml"]
			if !strings.Contains(text, "reason: Booted") || strings.Contains(text, "PendingReprovision") {
				return fmt.Errorf("the status branch says of claim %s:\n%s", claim, text)
			}
			return nil
		})
	})
}

func killAndLoseKey(ctx context.Context) error {
	w := siteOf(ctx)
	return w.whileDead(func() error {
		return errors.Join(w.emptyStore(), os.Remove(filepath.Join(w.stateDir(), "seal.key")))
	})
}
