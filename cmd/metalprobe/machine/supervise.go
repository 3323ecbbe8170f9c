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

// How long to wait before the worker is restarted, and before the machine is restarted
// after something that should never happen, so that a person can read the reason.
const (
	retryAfter  = 10 * time.Second
	rebootAfter = time.Minute
)

// maxLine bounds a line on the console.
const maxLine = 2 << 10

// drainFor is how long consoles are given to show the last lines.
const drainFor = 5 * time.Second

// order is what the worker finally asks of the first process. It is a line of the
// worker's output, so that it comes after all output that is to be shown; logs write no
// control characters. The end of the worker would not do as a signal: it does not come
// while a disk hangs in the kernel.
type order string

const (
	orderPowerOff order = "\x00power off"
	orderRestart  order = "\x00restart"
)

func ask(w io.Writer, o order) error {
	_, err := io.WriteString(w, string(o)+"\n")
	return err
}

// remedy says what to do about a worker that has ended.
type remedy int

const (
	retry  remedy = iota // it reported an error that may pass
	reboot               // it crashed
)

// remedyFor decides by the worker's exit status: a Go program that panics exits with
// code 2.
func remedyFor(status unix.WaitStatus) remedy {
	if status.Exited() && status.ExitStatus() == 1 {
		return retry
	}
	return reboot
}

// Supervise is the first process of a machine. It does not return.
func Supervise() {
	mountErr := mountAll()
	// Should even this process die, the kernel restarts the machine.
	_ = os.WriteFile("/proc/sys/kernel/panic", []byte("60"), 0)
	_ = unix.Reboot(unix.LINUX_REBOOT_CMD_CAD_OFF) // Ctrl-Alt-Del is a signal then
	screen := openConsoles()
	if mountErr != nil {
		screen.print(mountErr.Error())
	}
	screen.print("metalprobe starts")
	// Between two workers nothing else handles signals, and they must not end this process.
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
			screen.print(fmt.Sprintf("metalprobe has crashed (%s); the machine restarts in %v", ended(status, err), rebootAfter))
			time.Sleep(rebootAfter)
			screen.drain(drainFor)
			Restart()
		}
		screen.print(fmt.Sprintf("metalprobe has exited (%s); it restarts in %v", ended(status, err), retryAfter))
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

// work runs a worker to its end, or until it sends an order. Its output goes to the
// consoles, signals are passed on to it, and any other process that ends meanwhile is
// reaped.
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
	go func() { status <- collect(worker.Pid) }() // never ends when a disk hangs: an order comes then
	wanted := printLines(out, screen)
	signal.Stop(signals)
	close(signals)
	<-stopped
	if wanted != "" {
		return wanted, 0, nil
	}
	return "", <-status, nil
}

// collect reaps processes until the worker has ended.
func collect(worker int) unix.WaitStatus {
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, 0, nil)
		if pid == worker && (status.Exited() || status.Signaled()) {
			return status
		}
		if err != nil && !errors.Is(err, unix.EINTR) {
			return status // there are no more processes
		}
	}
}

// printLines prints a worker's output, in lines of bounded length, until the worker
// sends an order, which is returned, or has ended.
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
