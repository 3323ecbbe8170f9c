package features

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"ingot/features/internal/rig"
	"ingot/gitsource/forge/forgeserver"
)

// The secrets between Ingot and the Git host. They are looked for with the BMCs' password.
const (
	forgeToken    = "token-" + bmcPassword
	webhookSecret = "secret-" + bmcPassword
)

// atForge has the repository at a forge, which alone tells Ingot of pushes.
func atForge(ctx context.Context, name string) (err error) {
	w := siteOf(ctx)
	kind := strings.ToLower(name)
	keys := forgeserver.Keys{Token: forgeToken, Secret: webhookSecret}
	if w.forge, err = forgeserver.Serve(kind, w.repo, keys, gitBranch, statusBranch); err != nil {
		return err
	}
	w.clients = append(w.clients, w.forge.Close)
	w.remote, w.intervals = w.forge.URL, intervals{git: "1h", status: "200ms", poll: "1s"}
	files := make(map[string]string)
	for name, content := range map[string]string{"forge-token": forgeToken, "webhook-secret": "one before\n" + webhookSecret} {
		files[name] = filepath.Join(w.dir, name)
		if err := os.WriteFile(files[name], []byte(content+"\n"), 0o600); err != nil {
			return err
		}
	}
	w.auth = fmt.Sprintf(", commitStatus: {provider: %s, tokenFile: %q}", kind, files["forge-token"])
	w.webhook = fmt.Sprintf("webhook: {listen: \"%s:0\", secretFile: %q}\n", ownHost(), files["webhook-secret"])
	return nil
}

func announceWith(ctx context.Context, which string) error {
	secret := webhookSecret
	if which == "another" {
		secret = "a guess"
	}
	siteOf(ctx).forge.SetSecret(secret)
	return nil
}

func announcementRefused(ctx context.Context) error {
	w := siteOf(ctx)
	if err := w.metricIsSet(ctx, "ingot_webhook_requests_total", `result="unauthorized"`); err != nil {
		return err
	}
	// Ingot counts the answer before the Git host has it.
	if err := rig.Within(patience, func() error {
		if answers := w.forge.Answers(); !slices.Contains(answers, 401) {
			return fmt.Errorf("the Git host was answered %v, want 401", answers)
		}
		return nil
	}); err != nil {
		return err
	}
	s, err := w.ingot.summary(ctx)
	if err == nil && strings.HasSuffix(string(s.Applied), w.repo.Head(gitBranch)) {
		return errors.New("the newest commit is in force")
	}
	return err
}

func newestCommitIs(ctx context.Context, state, text string) error {
	w := siteOf(ctx)
	return rig.Within(patience, func() error {
		all := w.forge.Statuses()
		if len(all) == 0 {
			return errors.New("no commit has a status")
		}
		last := all[len(all)-1]
		is := last.State == state || state == "failure" && last.State == "failed"
		if last.Commit != w.repo.Head(gitBranch) || !is || !strings.HasPrefix(last.Description, text) {
			return fmt.Errorf("commit %s has status %s: %q", last.Commit, last.State, last.Description)
		}
		if !strings.HasSuffix(last.Target, "/"+statusBranch) {
			return fmt.Errorf("the status leads to %q", last.Target)
		}
		return nil
	})
}

func saidOnce(ctx context.Context) error {
	seen := make(map[forgeserver.Status]bool)
	for _, s := range siteOf(ctx).forge.Statuses() {
		if seen[s] {
			return fmt.Errorf("said twice: %+v", s)
		}
		seen[s] = true
	}
	return nil
}

func total(metrics []byte, prefix string) (sum float64) {
	for line := range strings.Lines(string(metrics)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if n, err := strconv.ParseFloat(value, 64); err == nil && strings.HasPrefix(name, prefix) {
			sum += n
		}
	}
	return sum
}

func throttleForge(ctx context.Context) error {
	siteOf(ctx).forge.Throttle(2)
	return nil
}

func askedAtMost(ctx context.Context, n int) error {
	if posts := siteOf(ctx).forge.Posts(); posts > n {
		return fmt.Errorf("the Git host was asked %d times", posts)
	}
	return nil
}

func forgeRefuses(ctx context.Context, what string) error {
	w := siteOf(ctx)
	w.protected.Store(true)
	if what == "protects" {
		return w.forge.Protect(statusBranch)
	}
	return w.forge.FindSecrets(statusBranch)
}

func forgeTakes(ctx context.Context) error {
	w := siteOf(ctx)
	w.protected.Store(false)
	return w.forge.Allow()
}

// refusalSaidOnce waits until Ingot has tried several times.
func refusalSaidOnce(ctx context.Context, text string) error {
	w := siteOf(ctx)
	before := w.forge.Pushes()
	err := rig.Within(patience, func() error {
		if n := w.forge.Pushes() - before; n < 3 {
			return fmt.Errorf("it was tried %d times", n)
		}
		return nil
	})
	if err := errors.Join(err, w.ingot.notReady(ctx, "status", text)); err != nil {
		return err
	}
	if n := w.forge.Pushes() - before; n > 12 {
		return fmt.Errorf("it was tried %d times", n)
	}
	said := 0
	for line := range strings.Lines(w.log.text()) {
		if strings.Contains(line, `"level":"ERROR"`) && strings.Contains(line, "status not published") && strings.Contains(line, text) {
			said++
		}
	}
	if said != 1 {
		return fmt.Errorf("it was said %d times in the log, want once", said)
	}
	return nil
}
