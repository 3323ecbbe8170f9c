package features

import (
	"context"
	"path/filepath"
)

// initRepository has "ingot init" make the repository, and pushes it.
func initRepository(ctx context.Context) error {
	w := siteOf(ctx)
	fleet := filepath.Join(w.dir, "made", "fleet")
	args := []string{"init", fleet, "--url", w.repo.Dir, "--forge", "forgejo", "--owner", "@infra", "--no-git"}
	if _, err := runIngot(ctx, w.dir, args...); err != nil {
		return err
	}
	for _, args := range [][]string{
		{"init", "--quiet", "--initial-branch", gitBranch},
		{"add", "--all"},
		{"-c", "user.name=Ada", "-c", "user.email=ada@example.com", "commit", "--quiet", "-m", "begin"},
		{"push", "--quiet", "--force", w.repo.Dir, gitBranch},
	} {
		if _, err := gitIn(ctx, fleet, args...); err != nil {
			return err
		}
	}
	_, err := runIngot(ctx, fleet, "validate", "--strict-secrets", ".")
	return err
}
