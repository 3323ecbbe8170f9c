package features

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"ingot/cmd/daemon"
	"ingot/model"
	"ingot/reconcile/report"
)

// answerLimit is how long Ingot may take to answer while other scenarios convert images.
const answerLimit = 30 * time.Second

// startLimit is how long Ingot may take to listen, or to stop when it is asked to.
const startLimit = 20 * time.Second

// program is one run of ingot.
type program struct {
	command *exec.Cmd
	where   daemon.Addresses
	access  adminAccess
	ended   chan struct{} // closed once it has ended
	err     error         // how it ended
}

func startProgram(path, config string, log *logTail, arguments, environment []string) (*program, error) {
	run := []string{"--log-format", "json", "--log-level", "debug", "run", "--fast", "--config", config}
	p := &program{
		command: exec.Command(path, append(run, arguments...)...),
		ended:   make(chan struct{}),
	}
	p.command.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Dir(config)}
	p.command.Env = append(p.command.Env, environment...)
	p.command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	stderr, err := p.command.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := p.command.Start(); err != nil {
		return nil, fmt.Errorf("start ingot: %w", err)
	}
	listening := make(chan daemon.Addresses, 1)
	go func() {
		defer close(p.ended)
		follow(stderr, log, listening)
		p.err = p.command.Wait()
	}()
	select {
	case p.where = <-listening:
		return p, nil
	case <-p.ended:
		return nil, fmt.Errorf("ingot ended before it listened: %w", p.err)
	case <-time.After(startLimit):
		return nil, errors.Join(errors.New("ingot does not listen"), p.kill())
	}
}

func follow(from io.Reader, tail *logTail, listening chan<- daemon.Addresses) {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		tail.add(lines.Text())
		var line struct {
			Message  string `json:"msg"`
			Boot     string `json:"boot"`
			Registry string `json:"registry"`
			Metadata string `json:"metadata"`
			Admin    string `json:"admin"`
			Webhook  string `json:"webhook"`
		}
		if json.Unmarshal(lines.Bytes(), &line) == nil && line.Message == "listening" {
			listening <- daemon.Addresses{
				Boot: line.Boot, Registry: line.Registry, Metadata: line.Metadata, Admin: line.Admin, Webhook: line.Webhook,
			}
		}
	}
}

func (p *program) kill() error {
	if err := p.command.Process.Signal(syscall.SIGKILL); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("kill ingot: %w", err)
	}
	<-p.ended
	return nil
}

// end kills the program and what it started, and waits until all of it is gone: the
// git of a program that was killed may still be writing. Orphans are ours to wait
// for, see buildAndRun.
func (p *program) end() error {
	err := p.kill()
	group := -p.command.Process.Pid
	_ = syscall.Kill(group, syscall.SIGKILL) // nobody is left, as a rule
	for {
		if _, gone := syscall.Wait4(group, nil, 0, nil); gone != nil && !errors.Is(gone, syscall.EINTR) {
			return err
		}
	}
}

func (p *program) stop() error {
	if err := p.command.Process.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("stop ingot: %w", err)
	}
	select {
	case <-p.ended:
		return p.err
	case <-time.After(startLimit):
		return errors.Join(errors.New("ingot does not end"), p.kill())
	}
}

func (p *program) running() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// summary is the fleet as the API shows it.
type summary struct {
	report.Fleet
	Servers []objectSummary
	Claims  []objectSummary
}

// objectSummary is what lists show of a server or a claim.
type objectSummary struct {
	report.Summary
	Name string
	Why  string // it waits for
}

func (p *program) summary(ctx context.Context) (s summary, err error) {
	body, err := p.get(ctx, fleetPath)
	if err == nil {
		err = json.Unmarshal(body, &s.Fleet)
	}
	if err == nil {
		s.Servers, err = p.objects(ctx, report.Servers)
	}
	if err == nil {
		s.Claims, err = p.objects(ctx, report.Claims)
	}
	if err != nil {
		return s, err
	}
	configurations, err := p.objects(ctx, report.BootConfigurations)
	s.Claims = append(s.Claims, configurations...)
	return s, err
}

// objects are those of a folder; of boot configurations only those in Git.
func (p *program) objects(ctx context.Context, f report.Folder) (all []objectSummary, err error) {
	docs, err := p.documents(ctx, "/api/v1/"+string(f))
	if f == report.BootConfigurations {
		docs = slices.DeleteFunc(docs, func(d *report.Document) bool { return !d.InGit() })
	}
	return objectsOf(docs), err
}

func objectsOf(docs []*report.Document) (all []objectSummary) {
	for _, d := range docs {
		o, name := d.Overview(), d.Name()
		if d.Folder() == report.BootConfigurations {
			name = string(model.BootConfigurationName(d.Metadata.Namespace, d.Metadata.Name))
		}
		all = append(all, objectSummary{o.Summary, name, o.First().Text()})
	}
	return all
}

// documents are those of a list of the API.
func (p *program) documents(ctx context.Context, path string) (all []*report.Document, err error) {
	body, err := p.get(ctx, path)
	if err != nil {
		return nil, err
	}
	var list struct {
		Items []json.RawMessage `json:"items"`
	}
	if err := json.Unmarshal(body, &list); err != nil {
		return nil, err
	}
	for _, item := range list.Items {
		d, err := report.ParseDocument(item)
		if err != nil {
			return nil, err
		}
		all = append(all, d)
	}
	return all, nil
}

// get returns what the admin listener has at path if the answer is 200.
func (p *program) get(ctx context.Context, path string) ([]byte, error) {
	resp, body, err := p.access.ask(ctx, p, path)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("GET %s: %s", path, resp.Status)
	}
	return body, err
}

// get returns what is at url if the answer is 200.
func get(ctx context.Context, url string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("GET %s: %s", url, resp.Status)
	}
	return io.ReadAll(resp.Body)
}

// logTail keeps the log of all runs of the program.
type logTail struct {
	mu    sync.Mutex
	lines []string
}

func (l *logTail) add(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, line)
}

func (l *logTail) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.lines, "\n")
}

// last returns the newest n lines of those that are not for debugging.
func (l *logTail) last(n int) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	lines := slices.DeleteFunc(slices.Clone(l.lines), func(line string) bool { return strings.Contains(line, `"level":"DEBUG"`) })
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
