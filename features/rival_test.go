package features

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// exitAnother is the exit code of an Ingot that ends because another one acts.
const exitAnother = 4

func (w *site) rival(arguments ...string) (*program, error) {
	dir := filepath.Join(w.dir, fmt.Sprintf("rival-%d", len(w.launched)))
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	redis, before := w.redis, w.arguments
	defer func() { w.redis, w.arguments = redis, before }()
	w.redis, w.arguments = nil, arguments
	return w.launch(filepath.Base(dir)+".yaml", dir)
}

func startRival(ctx context.Context) error {
	w := siteOf(ctx)
	w.second, w.rivalEnd = w.rival()
	return nil
}

// rivalEnds waits until the second Ingot has ended, which it may have before it
// listened.
func rivalEnds(ctx context.Context, code int, says string) error {
	w := siteOf(ctx)
	if w.second != nil {
		var err error
		if w.rivalEnd, err = w.second.awaitEnd(); err != nil {
			return err
		}
	}
	if err := endedWith(w.rivalEnd, code); err != nil {
		return err
	}
	if !strings.Contains(w.log.text(), says) {
		return fmt.Errorf("its log does not say %q", says)
	}
	return nil
}

func (p *program) awaitEnd() (how, err error) {
	select {
	case <-p.ended:
		return p.err, nil
	case <-time.After(patience):
		return nil, errors.New("ingot goes on")
	}
}

func endedWith(how error, code int) error {
	exit, ok := errors.AsType[*exec.ExitError](how)
	if !ok || exit.ExitCode() != code {
		return fmt.Errorf("ingot did not end with exit code %d: %w", code, cmp.Or(how, errors.New("it ended without an error")))
	}
	return nil
}

func (w *site) takeOverFlag() string {
	id, _ := w.repo.Git("log", "-1", "--format=%(trailers:key=Process,valueonly)", statusBranch)
	return "--take-over=" + strings.TrimSpace(id)
}

func takeOver(ctx context.Context) error {
	w := siteOf(ctx)
	p, err := w.rival(w.takeOverFlag())
	if err == nil {
		w.succeed(p)
	}
	return err
}

// succeed makes p the Ingot that machines speak with.
func (w *site) succeed(p *program) {
	w.first, w.ingot = w.ingot, p
	w.admit()
}

func firstEnds(ctx context.Context, code int) error {
	how, err := siteOf(ctx).first.awaitEnd()
	if err != nil {
		return err
	}
	return endedWith(how, code)
}

func suspend(ctx context.Context) error {
	return siteOf(ctx).ingot.command.Process.Signal(syscall.SIGSTOP)
}

func suspendLeader(ctx context.Context) error {
	w := siteOf(ctx)
	if err := suspend(ctx); err != nil {
		return err
	}
	w.succeed(w.second)
	return nil
}

func resume(ctx context.Context) error {
	return siteOf(ctx).first.command.Process.Signal(syscall.SIGCONT)
}
