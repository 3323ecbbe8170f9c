package disk

import (
	"errors"
	"syscall"
	"testing"
)

// The runtime's signals cut system calls short.
func TestInterruptedCallsAreMadeAgain(t *testing.T) {
	for want, answers := range map[error][]error{
		nil:            {syscall.EINTR, syscall.EINTR, nil},
		syscall.ENOSPC: {syscall.EINTR, syscall.ENOSPC, nil},
	} {
		got := again(func() error {
			answer := answers[0]
			answers = answers[1:]
			return answer
		})
		if !errors.Is(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	}
}
