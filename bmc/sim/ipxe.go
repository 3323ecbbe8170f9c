package sim

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"ingot/bmc/sim/internal/delay"
	"ingot/model"
)

// Bounds on what a script may make a machine do.
const (
	maxScript     = 64 << 10 // bytes
	maxSteps      = 1000     // commands of one boot
	maxChainDepth = 8
	maxPause      = 10 * time.Second
)

// scriptHeader is how a script for iPXE begins.
const scriptHeader = "#!ipxe"

// errExit is how a script says that the firmware is to go on to its next boot
// device.
var errExit = errors.New("the script exited")

// image is what a script loaded and booted.
type image struct {
	kernel      string // SHA-256 of the kernel, "sha256:<hex>"
	kernelURL   string
	initrds     []string
	commandLine []string
}

// argument returns the value of the kernel argument key=value, "" without it.
func (i image) argument(key string) string {
	for _, a := range i.commandLine {
		if k, v, ok := strings.Cut(a, "="); ok && k == key {
			return v
		}
	}
	return ""
}

// network is what a machine can do before it runs an operating system.
type network interface {
	script(ctx context.Context, address string) (string, error)
	// load fetches all of address and returns its digest, "sha256:<hex>".
	load(ctx context.Context, stage model.BootStage, address string) (string, error)
}

// shell runs the part of iPXE's command language that boot scripts are made of:
// https://ipxe.org/cmd.
type shell struct {
	net   network
	vars  map[string]string
	image image
	steps int
}

// boot fetches and runs the script at address and returns what it boots. The
// error is errExit when the script leaves the machine to its next boot device.
func (sh *shell) boot(ctx context.Context, address string) (image, error) {
	err := sh.chain(ctx, address, 0)
	return sh.image, err
}

// errBooted ends a script because it booted.
var errBooted = errors.New("booted")

// chain fetches and runs the script at address. It returns nil when a script
// booted.
func (sh *shell) chain(ctx context.Context, address string, depth int) error {
	if depth > maxChainDepth {
		return fmt.Errorf("chain %s: more than %d scripts chained", address, maxChainDepth)
	}
	base, err := url.Parse(address)
	if err != nil || base.Host == "" {
		return fmt.Errorf("chain %q: not a URL with a host", address)
	}
	text, err := sh.net.script(ctx, address)
	if err != nil {
		return err
	}
	if first, _, _ := strings.Cut(text, "\n"); strings.TrimSpace(first) != scriptHeader {
		return fmt.Errorf("chain %s: it does not begin with %s", address, scriptHeader)
	}
	s := script{shell: sh, base: base, depth: depth, lines: strings.Split(text, "\n")}
	return s.run(ctx)
}

// script is one script while it runs.
type script struct {
	*shell
	base  *url.URL
	depth int
	lines []string
	next  int // line
}

func (s *script) run(ctx context.Context) error {
	for s.next = 0; s.next < len(s.lines); {
		line := strings.TrimSpace(s.lines[s.next])
		s.next++
		if line == "" || line[0] == '#' || line[0] == ':' {
			continue
		}
		if err := s.line(ctx, line); err != nil {
			return ended(fmt.Sprintf("%s line %d", s.base.Path, s.next), err)
		}
	}
	return errExit
}

// ended turns the way a script came to its end into the way a boot did.
func ended(where string, err error) error {
	switch {
	case errors.Is(err, errBooted):
		return nil
	case errors.Is(err, errExit):
		return err
	}
	return fmt.Errorf("%s: %w", where, err)
}

// line runs commands joined by && and ||, from left to right: each looks at the
// one that ran before, and one that is passed over changes nothing.
func (s *script) line(ctx context.Context, line string) error {
	var err error
	run := true
	words := strings.Fields(line)
	for start := 0; start <= len(words); {
		end := start
		for end < len(words) && words[end] != "&&" && words[end] != "||" {
			end++
		}
		if run {
			err = s.command(ctx, words[start:end])
			if errors.Is(err, errBooted) || errors.Is(err, errExit) {
				return err
			}
		}
		if end < len(words) {
			run = (words[end] == "&&") == (err == nil)
		}
		start = end + 1
	}
	return err
}

// command runs one command, whose words are not expanded yet.
func (s *script) command(ctx context.Context, words []string) error {
	if s.steps++; s.steps > maxSteps {
		return fmt.Errorf("more than %d commands", maxSteps)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if len(words) == 0 { // an empty command succeeds
		return nil
	}
	name, args := words[0], s.expand(words[1:])
	switch name {
	case "echo", "imgfree", "imgstat", "ifopen", "ifstat", "dhcp", "prompt", "console":
		return nil
	case "set":
		return s.set(args)
	case "clear":
		delete(s.vars, strings.Join(args, " "))
		return nil
	case "isset":
		return truth(len(args) > 0)
	case "iseq":
		return truth(len(args) == 2 && args[0] == args[1])
	case "goto":
		return s.jump(args)
	case "sleep":
		return pause(ctx, args)
	case "kernel", "imgselect":
		return s.kernel(ctx, args)
	case "initrd", "module", "imgfetch":
		return s.initrd(ctx, args)
	case "chain":
		return s.chained(ctx, args)
	case "boot", "imgexec":
		return s.start()
	case "exit", "sanboot":
		return errExit
	}
	return fmt.Errorf("%s: command not found", name)
}

// expand replaces ${name} and ${name:type} in words, and splits them again where
// a value holds blanks.
func (s *script) expand(words []string) []string {
	return strings.Fields(expand(strings.Join(words, " "), s.vars))
}

// expand replaces ${name} and ${name:type} in text; what is not set is empty.
func expand(text string, vars map[string]string) string {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(text, "${")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		name, after, closed := strings.Cut(rest, "}")
		if !closed {
			b.WriteString("${" + rest)
			return b.String()
		}
		b.WriteString(setting(name, vars))
		text = after
	}
}

// setting returns the value of a setting, in the type that is asked for
// (https://ipxe.org/cfg).
func setting(name string, vars map[string]string) string {
	name, kind, _ := strings.Cut(name, ":")
	v := vars[name]
	switch kind {
	case "hexhyp":
		return strings.ReplaceAll(v, ":", "-")
	case "hexraw":
		return strings.ReplaceAll(v, ":", "")
	case "uristring":
		return url.QueryEscape(v)
	}
	return v
}

func (s *script) set(args []string) error {
	if len(args) == 0 {
		return errors.New("set: a name is needed")
	}
	s.vars[args[0]] = strings.Join(args[1:], " ")
	return nil
}

// truth is the outcome of a command that tests something.
func truth(ok bool) error {
	if ok {
		return nil
	}
	return errors.New("the condition does not hold")
}

func (s *script) jump(args []string) error {
	for i, line := range s.lines {
		if len(args) == 1 && strings.TrimSpace(line) == ":"+args[0] {
			s.next = i + 1
			return nil
		}
	}
	return fmt.Errorf("goto %s: no such label", strings.Join(args, " "))
}

func pause(ctx context.Context, args []string) error {
	if len(args) != 1 {
		return errors.New("sleep: seconds are needed")
	}
	seconds, err := strconv.Atoi(args[0])
	if err != nil || seconds < 0 {
		return fmt.Errorf("sleep %q: not a number of seconds", args[0])
	}
	if !delay.Wait(ctx, min(time.Duration(seconds)*time.Second, maxPause)) {
		return ctx.Err()
	}
	return nil
}

func (s *script) kernel(ctx context.Context, args []string) error {
	address, args, err := s.address("kernel", args)
	if err != nil {
		return err
	}
	digest, err := s.net.load(ctx, model.StageKernel, address)
	if err != nil {
		return err
	}
	s.image.kernel, s.image.kernelURL, s.image.commandLine = digest, address, args
	return nil
}

func (s *script) initrd(ctx context.Context, args []string) error {
	address, _, err := s.address("initrd", args)
	if err != nil {
		return err
	}
	digest, err := s.net.load(ctx, model.StageInitrd, address)
	if err != nil {
		return err
	}
	s.image.initrds = append(s.image.initrds, digest)
	return nil
}

// chained runs another script. When that exits this one goes on, unless it was
// replaced.
func (s *script) chained(ctx context.Context, args []string) error {
	address, _, err := s.address("chain", args)
	if err != nil {
		return err
	}
	err = s.chain(ctx, address, s.depth+1)
	switch {
	case err == nil:
		return errBooted
	case !errors.Is(err, errExit):
		return err
	case slices.Contains(args, "--replace"), slices.Contains(args, "-r"):
		return errExit
	}
	return nil
}

func (s *script) start() error {
	if s.image.kernel == "" {
		return errors.New("boot: no kernel was loaded")
	}
	return errBooted
}

// address returns the URL that a command names, seen from the script's own, and
// the words behind it.
func (s *script) address(command string, args []string) (string, []string, error) {
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		valued := slices.Contains([]string{"--name", "-n", "--timeout", "-t"}, args[0])
		args = args[1:]
		if valued && len(args) > 0 {
			args = args[1:]
		}
	}
	if len(args) == 0 {
		return "", nil, fmt.Errorf("%s: a URL is needed", command)
	}
	u, err := s.base.Parse(args[0])
	if err != nil {
		return "", nil, fmt.Errorf("%s %q: not a URL", command, args[0])
	}
	return u.String(), args[1:], nil
}
