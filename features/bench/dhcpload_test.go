package bench

import (
	"bufio"
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// load is what clients made of a server at one rate.
type load struct {
	drops  float64 // the share of requests without an answer, of either half
	cpu    time.Duration
	leases int
	first  time.Duration // 99th percentile of the delay of OFFER, or ADVERTISE
	second time.Duration // of ACK, or REPLY
	middle time.Duration // median of the delay of the first
}

func (l load) perLease() time.Duration { return l.cpu / time.Duration(max(1, l.leases)) }

// exchange starts goalRate exchanges per second with perfdhcp, for clients that are counted up from a base. For DHCPv6
// they are behind a relay: all that comes from one network card on the link is one client to Ingot, with the rate limit of
// one.
func (s *dhcpServer) exchange(family string, base []string) load {
	s.link.Helper()
	args := append([]string{
		"perfdhcp", "-" + family, "-l", clientDevice, "-r", strconv.Itoa(goalRate),
		"-R", strconv.Itoa(dhcpClients), "-p", strconv.Itoa(int(roundFor / time.Second)),
		"-W", strconv.Itoa(int(answerWait / time.Microsecond)), "-x", "t",
	}, base...)
	if family == "6" {
		args = append(args, "-A", "1")
	}
	cmd := command(s.link.client, args...)
	var problems bytes.Buffer
	cmd.Stderr = &problems
	before := s.cpu()
	out, _ := cmd.Output() // its exit code tells of drops
	cpu := s.cpu() - before
	l, err := readPerfdhcp(out)
	if err != nil {
		s.link.Fatalf("perfdhcp: %v:\n%.1000s%s", err, out, &problems)
	}
	l.cpu = cpu
	return l
}

// readPerfdhcp reads perfdhcp's report: the statistics of each half of an exchange,
// then when each packet of either was sent and answered.
func readPerfdhcp(report []byte) (load, error) {
	var l load
	var sent, received []float64
	var delays [][]time.Duration
	lines := bufio.NewScanner(bytes.NewReader(report))
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), ": ")
		switch {
		case strings.HasPrefix(name, "***Timestamps for packets"):
			delays = append(delays, nil)
		case name == "sent packets":
			sent = append(sent, number(value))
		case name == "received packets":
			received = append(received, number(value))
		case name == "sent / received" && len(delays) > 0:
			from, to, _ := strings.Cut(value, " / ")
			last := &delays[len(delays)-1]
			*last = append(*last, time.Duration((number(to)-number(from))*float64(time.Second)))
		}
	}
	if len(sent) != 2 || len(received) != 2 {
		return l, fmt.Errorf("it reports on %d kinds of packets", len(sent))
	}
	l.leases = int(received[1])
	for i := range sent {
		l.drops = max(l.drops, 1-received[i]/max(1, sent[i]))
	}
	if len(delays) == 2 {
		l.first, l.second, l.middle = percentile(delays[0], 99), percentile(delays[1], 99), percentile(delays[0], 50)
	}
	return l, nil
}

// number reads a number, 0 when it is none.
func number(s string) float64 {
	n, _ := strconv.ParseFloat(strings.TrimSpace(s), 64)
	return n
}

func percentile(of []time.Duration, p int) time.Duration {
	if len(of) == 0 {
		return 0
	}
	return slices.Sorted(slices.Values(of))[(len(of)-1)*p/100]
}
