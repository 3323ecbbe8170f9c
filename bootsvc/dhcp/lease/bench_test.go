package lease

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"ingot/model"
	"ingot/model/must"
)

// logFile is a store that appends to a file and makes it durable, as the registry's does.
type logFile struct{ *os.File }

func (l logFile) Leases(context.Context) ([]model.Lease, error) { return nil, nil }

func (l logFile) SaveLeases(_ context.Context, leases []model.Lease) error {
	if _, err := l.Write(make([]byte, 64*len(leases))); err != nil {
		return err
	}
	return unix.Fdatasync(int(l.Fd()))
}

// large is a world with a pool of a /16.
func large(store Store) *world {
	return newWorld(setup{
		store: store, ours: []netip.Prefix{netip.MustParsePrefix("10.0.0.1/16")},
		subnets: []Subnet{{CIDR: netip.MustParsePrefix("10.0.0.0/16"), Ranges: []Range{rangeOf("10.0.1.0-10.0.255.254")}, LeaseTime: time.Hour}},
	})
}

// BenchmarkCommit is leases that several clients ask for at a time, each again as soon
// as it is answered, until they are durable. It reports the CPU time of a lease, and the
// time that 99 of 100 clients wait for less than.
func BenchmarkCommit(b *testing.B) {
	for _, clients := range []int{1, 4, 16, 64} {
		b.Run(fmt.Sprint("clients=", clients), func(b *testing.B) {
			file, err := os.Create(filepath.Join(b.TempDir(), "leases"))
			if err != nil {
				b.Fatal(err)
			}
			defer func() { _ = file.Close() }()
			w := large(logFile{file})
			ctx, cancel := context.WithCancel(context.Background())
			var wg sync.WaitGroup
			wg.Go(func() { w.committer.Run(ctx) })
			defer wg.Wait()
			defer cancel()
			leases := make([]model.Lease, clients)
			for i := range leases {
				if leases[i], err = w.table.Offer(ask(w, fmt.Sprintf("02:00:00:00:01:%02x", i), "", t0)); err != nil {
					b.Fatal(err)
				}
			}
			free := make(chan int, clients) // clients that are to ask
			for i := range clients {
				free <- i
			}
			waits := make([]time.Duration, 0, 1<<16)
			began := cpuTime(b)
			for b.Loop() {
				i, asked := <-free, time.Now()
				w.committer.Commit(leases[i], func(err error) {
					if err != nil {
						panic(err)
					}
					waits = append(waits, time.Since(asked)) // by one goroutine
					free <- i
				})
			}
			for range clients {
				<-free
			}
			b.ReportMetric(float64((cpuTime(b)-began).Microseconds())/float64(b.N), "cpu-µs/lease")
			slices.Sort(waits)
			b.ReportMetric(float64(waits[len(waits)*99/100].Microseconds()), "p99-µs")
		})
	}
}

// BenchmarkPools is how full the pools of 250 racks are, of 10,000 Endpoints, which is asked for at each plan while
// clients wait.
func BenchmarkPools(b *testing.B) {
	var subnets []Subnet
	for i := range 250 {
		rack := fmt.Sprintf("10.1.%d.", i)
		subnets = append(subnets, Subnet{
			CIDR: netip.MustParsePrefix(rack + "0/24"), Ranges: []Range{rangeOf(rack + "10-" + rack + "250")}, LeaseTime: time.Hour,
		})
	}
	w := newWorld(setup{subnets: subnets})
	var all []Reservation
	for i := range 10_000 {
		all = append(all, Reservation{MAC: model.MAC{2, 0, 0, 0, byte(i >> 8), byte(i)}.String(), Address: netip.AddrFrom4([4]byte{10, 1, byte(i % 250), byte(10 + i/250)})})
	}
	w.table.SetReservations(all)
	for b.Loop() {
		if pools := w.table.Pools(t0); len(pools) != 250 || pools[0].Used != 40 {
			b.Fatal(len(pools), pools[0])
		}
	}
}

// cpuTime is how long the processors have worked for this process.
func cpuTime(b *testing.B) time.Duration {
	var u unix.Rusage
	must.Do(b, unix.Getrusage(unix.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
