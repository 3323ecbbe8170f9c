package machine

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"

	"golang.org/x/sys/unix"
)

// How long to wait before the worker is started again, and before the machine is
// after what should never have happened, so that a person can read why.
const (
	retryAfter  = 10 * time.Second
	rebootAfter = time.Minute
)

// maxLine bounds a line on the console.
const maxLine = 2 << 10

// drainFor is how long consoles have to show the last lines.
const drainFor = 5 * time.Second

// order is what the worker wants of the first process in the end. It is a line of
// the worker's output, so that it comes after all that is to be shown; logs write
// nothing below a space. The worker's own end would not do: it does not come as
// long as a disk hangs in the kernel.
type order string

const (
	orderPowerOff order = "\x00power off"
	orderRestart  order = "\x00restart"
)

// ask gives an order.
func ask(w io.Writer, o order) error {
	_, err := io.WriteString(w, string(o)+"\n")
	return err
}

// remedy is what to do about a worker that has ended.
type remedy int

const (
	retry  remedy = iota // it said what was wrong, and that may pass
	reboot               // it broke
)

// remedyFor decides by how the worker ended: a Go program that panics ends with
// exit code 2.
func remedyFor(status unix.WaitStatus) remedy {
	if status.Exited() && status.ExitStatus() == 1 {
		return retry
	}
	return reboot
}

// Supervise is the first process of a machine. It does not return.
func Supervise() {
	mountErr := mountAll()
	// Should even this process die, the kernel starts the machine again.
	_ = os.WriteFile("/proc/sys/kernel/panic", []byte("60"), 0)
	_ = unix.Reboot(unix.LINUX_REBOOT_CMD_CAD_OFF) // Ctrl-Alt-Del is a signal then
	screen := openConsoles()
	if mountErr != nil {
		screen.print(mountErr.Error())
	}
	screen.print("metalprobe starts")
	// Between two workers nobody listens, and this process must not end by a signal.
	signal.Notify(make(chan os.Signal, 1), unix.SIGTERM, unix.SIGINT)
	for {
		wanted, status, err := work(screen)
		switch {
		case wanted == orderPowerOff:
			screen.drain(drainFor)
			PowerOff()
			err = errors.New("the kernel refuses to power off")
		case wanted == orderRestart:
			screen.drain(drainFor)
			Restart()
			err = errors.New("the kernel refuses to restart")
		case err == nil && remedyFor(status) == reboot, errors.Is(err, errUnstartable):
			screen.print(fmt.Sprintf("metalprobe has broken (%s); the machine restarts in %v", ended(status, err), rebootAfter))
			time.Sleep(rebootAfter)
			screen.drain(drainFor)
			Restart()
		}
		screen.print(fmt.Sprintf("metalprobe has ended (%s); it starts again in %v", ended(status, err), retryAfter))
		time.Sleep(retryAfter)
	}
}

var errUnstartable = errors.New("metalprobe cannot be started")

func ended(status unix.WaitStatus, err error) string {
	switch {
	case err != nil:
		return err.Error()
	case status.Signaled():
		return "signal " + status.Signal().String()
	}
	return fmt.Sprintf("exit code %d", status.ExitStatus())
}

// work runs a worker to its end, or until it gives an order. What it prints goes to
// the consoles, signals go to it, and whatever other process ends meanwhile is
// collected.
func work(screen consoles) (order, unix.WaitStatus, error) {
	out, in, err := os.Pipe()
	if err != nil {
		return "", 0, err
	}
	defer out.Close()
	null, err := os.Open(os.DevNull)
	if err != nil {
		in.Close()
		return "", 0, err
	}
	defer null.Close()
	worker, err := os.StartProcess("/proc/self/exe", []string{"metalprobe", workerFlag}, &os.ProcAttr{
		Files: []*os.File{null, in, in}, Env: os.Environ(), Dir: "/",
	})
	in.Close()
	if err != nil {
		return "", 0, fmt.Errorf("%w: %w", errUnstartable, err)
	}
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, unix.SIGTERM, unix.SIGINT)
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		for s := range signals {
			_ = worker.Signal(s)
		}
	}()
	status := make(chan unix.WaitStatus, 1)
	go func() { status <- collect(worker.Pid) }() // for ever, when a disk hangs: an order comes then
	wanted := printLines(out, screen)
	signal.Stop(signals)
	close(signals)
	<-stopped
	if wanted != "" {
		return wanted, 0, nil
	}
	return "", <-status, nil
}

// collect waits for processes that end until the worker has.
func collect(worker int) unix.WaitStatus {
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, 0, nil)
		if pid == worker && (status.Exited() || status.Signaled()) {
			return status
		}
		if err != nil && !errors.Is(err, unix.EINTR) {
			return status // no process is left
		}
	}
}

// printLines prints what a worker says, in lines of bounded length, until it gives
// an order, which is returned, or has ended.
func printLines(r io.Reader, screen consoles) order {
	b := bufio.NewReaderSize(r, maxLine)
	for {
		line, _, err := b.ReadLine() // a long line in pieces
		if err != nil {
			return ""
		}
		switch o := order(line); o {
		case orderPowerOff, orderRestart:
			return o
		default:
			screen.print(string(line))
		}
	}
}
