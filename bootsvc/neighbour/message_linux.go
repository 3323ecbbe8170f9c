package neighbour

import (
	"encoding/binary"
	"errors"
	"sync"

	"golang.org/x/sys/unix"
)

// attribute is one attribute of a route netlink message (rtnetlink(7)).
type attribute struct {
	kind  uint16
	value []byte
}

// typeMask leaves out the flags NLA_F_NESTED and NLA_F_NET_BYTEORDER.
const typeMask = 1<<14 - 1

// maxMessage is how much the kernel says at a time, in bytes.
const maxMessage = 1 << 16

// buffers are for what the kernel says; nothing of it is kept. To make one for each
// question had the garbage collected more often than all else that a boot needs.
var buffers = sync.Pool{New: func() any { return new([maxMessage]byte) }}

// errMessage is what the kernel never sends.
var errMessage = errors.New("the kernel's answer cannot be read")

// ask asks the kernel's route netlink, and calls answered with each message of the answer.
func ask(kind, flags uint16, body any, attrs []attribute, answered func(kind uint16, body []byte) error) error {
	question, err := message(kind, flags, body, attrs)
	if err != nil {
		return err
	}
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	_ = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 2}) // it answers at once
	if err := unix.Sendto(fd, question, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	buffer := buffers.Get().(*[maxMessage]byte)
	defer buffers.Put(buffer)
	for {
		n, _, err := unix.Recvfrom(fd, buffer[:], 0)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return err
		}
		err = eachMessage(buffer[:n], answered)
		if errors.Is(err, errDone) {
			return nil
		}
		if err != nil {
			return err
		}
		if flags&unix.NLM_F_DUMP == 0 {
			return nil
		}
	}
}

func message(kind, flags uint16, body any, attrs []attribute) ([]byte, error) {
	payload, err := binary.Append(nil, binary.NativeEndian, body)
	if err != nil {
		return nil, err
	}
	for _, a := range attrs {
		payload = binary.NativeEndian.AppendUint16(payload, uint16(unix.SizeofNlAttr+len(a.value)))
		payload = binary.NativeEndian.AppendUint16(payload, a.kind)
		payload = append(payload, a.value...)
		payload = append(payload, make([]byte, -len(payload)&3)...)
	}
	head := unix.NlMsghdr{Len: uint32(unix.SizeofNlMsghdr + len(payload)), Type: kind, Flags: unix.NLM_F_REQUEST | flags, Seq: 1}
	m, err := binary.Append(nil, binary.NativeEndian, head)
	return append(m, payload...), err
}

// errDone ends the answer to a dump.
var errDone = errors.New("that was all")

// eachMessage calls f with each message in data, until one says that it was the last, or
// that something is wrong.
func eachMessage(data []byte, f func(kind uint16, body []byte) error) error {
	for len(data) > 0 {
		if len(data) < unix.SizeofNlMsghdr {
			return errMessage
		}
		size, kind := int(binary.NativeEndian.Uint32(data)), binary.NativeEndian.Uint16(data[4:])
		if size < unix.SizeofNlMsghdr || size > len(data) {
			return errMessage
		}
		body := data[unix.SizeofNlMsghdr:size]
		switch {
		case kind == unix.NLMSG_DONE:
			return errDone
		case kind == unix.NLMSG_ERROR && len(body) >= 4:
			if code := int32(binary.NativeEndian.Uint32(body)); code != 0 {
				return unix.Errno(-code)
			}
			return errDone
		}
		if err := f(kind, body); err != nil {
			return err
		}
		data = data[min(aligned(size), len(data)):]
	}
	return nil
}

func eachAttribute(data []byte, f func(kind uint16, value []byte)) error {
	for len(data) >= unix.SizeofNlAttr {
		size, kind := int(binary.NativeEndian.Uint16(data)), binary.NativeEndian.Uint16(data[2:])&typeMask
		if size < unix.SizeofNlAttr || size > len(data) {
			return errMessage
		}
		f(kind, data[unix.SizeofNlAttr:size])
		data = data[min(aligned(size), len(data)):]
	}
	return nil
}

func aligned(n int) int { return (n + 3) &^ 3 }
