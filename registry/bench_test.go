package registry

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"ingot/model"
	"ingot/model/must"
	"ingot/registry/internal/redistest"
	"ingot/registry/store"
)

func facts(i int) *model.ServerFacts {
	inv := &model.Inventory{
		UUID: uuidOf(i), Manufacturer: "Dell Inc.", Model: "PowerEdge R650", SerialNumber: fmt.Sprint(i), MemoryBytes: 1 << 39,
	}
	for n := range 4 {
		inv.Memory = append(inv.Memory, model.MemoryModule{
			ID: fmt.Sprint("DIMM", n), Bytes: 64 << 30, Type: "DDR4", Manufacturer: "Samsung", SerialNumber: fmt.Sprint(i, n),
		})
		inv.NetworkInterfaces = append(inv.NetworkInterfaces, model.NetworkInterface{
			Name: fmt.Sprint("eth", n), MACAddress: "00:00:5e:00:53:01", IPs: []string{"192.0.2.1"},
		})
		inv.Storages = append(inv.Storages, model.Storage{
			Name:   fmt.Sprint("nvme", n),
			Drives: []model.Drive{{Name: "0", MediaType: "SSD", Bytes: 1 << 40, SerialNumber: fmt.Sprint(n)}},
		})
	}
	return &model.ServerFacts{Name: model.ServerName(fmt.Sprintf("server-%d", i)), Power: model.PowerOn, Inventory: inv}
}

func benchRegistry(b *testing.B, o Options) *Registry {
	b.Helper()
	o.SealKey = testSealKey()
	r := must.Get(Open(b.Context(), o))(b)
	b.Cleanup(func() { _ = r.Close() })
	must.Do(b, r.AwaitLead(b.Context()))
	return r
}

// tenThousand saves a fleet of 10,000 servers.
func tenThousand(b *testing.B, r *Registry) {
	b.Helper()
	var c Changes
	for i := range 10_000 {
		c.Servers = append(c.Servers, serverRecord(i, model.PurposeClaim))
		c.ServerFacts = append(c.ServerFacts, facts(i))
	}
	save(b, r, c)
}

// BenchmarkSave saves 100 servers at the same time, one Save each.
func BenchmarkSave(b *testing.B) {
	for name, options := range map[string]func(b *testing.B) Options{
		"bbolt":        func(b *testing.B) Options { return Options{Dir: b.TempDir()} },
		"redis-server": func(b *testing.B) Options { return Options{RedisURL: redistest.New(b).URL()} },
	} {
		b.Run(name, func(b *testing.B) {
			r := benchRegistry(b, options(b))
			n := 0
			for b.Loop() {
				n++
				var wg sync.WaitGroup
				for i := range 100 {
					wg.Go(func() {
						rec := serverRecord(i, model.PurposeClaim)
						rec.Boot.Serial = n
						save(b, r, Changes{Servers: []*model.ServerRecord{rec}})
					})
				}
				wg.Wait()
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(100*b.N), "µs/save")
		})
	}
}

// BenchmarkWriteFacts writes 1,000 facts in one Save, with a raw go-redis pipeline
// of the same bytes as the yardstick.
func BenchmarkWriteFacts(b *testing.B) {
	s := redistest.New(b)
	r := benchRegistry(b, Options{RedisURL: s.URL()})
	client := s.Client(b)
	var ours, raw time.Duration
	n := 0
	for b.Loop() {
		n++
		var c Changes
		for i := range 1000 {
			f := facts(i)
			f.Inventory.MemoryBytes = int64(n)
			c.ServerFacts = append(c.ServerFacts, f)
		}
		encoded, err := c.encode()
		if err != nil {
			b.Fatal(err)
		}
		start := time.Now()
		save(b, r, c)
		ours += time.Since(start)
		start = time.Now()
		_, err = client.Pipelined(b.Context(), func(p redis.Pipeliner) error {
			for _, ch := range encoded {
				p.HSet(b.Context(), "raw", ch.Name, ch.Value)
			}
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
		raw += time.Since(start)
	}
	b.ReportMetric(float64(ours.Microseconds())/float64(1000*n), "µs/fact")
	b.ReportMetric(float64(ours)/float64(raw), "x-raw-pipeline")
}

// BenchmarkObserved takes a snapshot of 10,000 servers.
func BenchmarkObserved(b *testing.B) {
	r := benchRegistry(b, Options{Dir: b.TempDir()})
	tenThousand(b, r)
	b.Run("unchanged", func(b *testing.B) {
		for b.Loop() {
			r.Observed()
		}
	})
	b.Run("one server changed", func(b *testing.B) {
		for b.Loop() {
			r.memory.apply(store.Batch{set(store.BucketServer, "server-1", `{"name":"server-1"}`)})
			r.Observed()
		}
	})
}

// BenchmarkLoad opens a store of 10,000 servers with records and facts.
func BenchmarkLoad(b *testing.B) {
	for name, options := range map[string]func(b *testing.B) Options{
		"bbolt":        func(b *testing.B) Options { return Options{Dir: b.TempDir()} },
		"redis-server": func(b *testing.B) Options { return Options{RedisURL: redistest.New(b).URL()} },
	} {
		b.Run(name, func(b *testing.B) {
			o := options(b)
			r := benchRegistry(b, o)
			tenThousand(b, r)
			_ = r.Close()
			o.SealKey = testSealKey()
			for b.Loop() {
				again, err := Open(b.Context(), o)
				if err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				_ = again.Close()
				b.StartTimer()
			}
		})
	}
}

// BenchmarkOffer looks up one of 10,000 servers.
func BenchmarkOffer(b *testing.B) {
	r := benchRegistry(b, Options{Dir: b.TempDir()})
	tenThousand(b, r)
	for b.Loop() {
		if _, ok := r.Boots.Find(uuidOf(77)); !ok {
			b.Fatal("no ticket")
		}
	}
}

// BenchmarkSaveLeases renews leases of a pool of 10,000, taken at random as they
// fall due, in groups. The yardstick beside it appends the same bytes to a file,
// with one fsync a group.
func BenchmarkSaveLeases(b *testing.B) {
	for name, options := range map[string]func(b *testing.B) Options{
		"bbolt":        func(b *testing.B) Options { return Options{Dir: b.TempDir()} },
		"redis-server": func(b *testing.B) Options { return Options{RedisURL: redistest.New(b, redistest.Durable...).URL()} },
	} {
		for _, size := range []int{1, 4, 16, 64, 256} {
			b.Run(fmt.Sprint(name, "/", size), func(b *testing.B) { benchSaveLeases(b, options(b), size) })
		}
	}
}

func benchSaveLeases(b *testing.B, o Options, size int) {
	const pool = 10_000
	r := benchRegistry(b, o)
	leases := make([]model.Lease, pool)
	for i := range leases {
		leases[i] = leaseWith(i, func(l *model.Lease) { l.Expires = time.Now().Add(time.Hour) })
	}
	saveLeases(b, r, leases...)
	log := must.Get(os.Create(filepath.Join(b.TempDir(), "log")))(b)
	defer log.Close()
	random := rand.New(rand.NewPCG(1, 1))
	group := make([]model.Lease, size)
	var ours, plain, cpu, plainCPU time.Duration
	n := 0
	for b.Loop() {
		n++
		for i := range group {
			group[i] = leases[random.IntN(pool)]
			group[i].Renewed = group[i].Renewed.Add(time.Duration(n) * time.Second)
		}
		start, used := time.Now(), cpuTime(b)
		saveLeases(b, r, group...)
		ours += time.Since(start)
		cpu += cpuTime(b) - used
		start, used = time.Now(), cpuTime(b)
		appendLeases(b, log, group)
		plain += time.Since(start)
		plainCPU += cpuTime(b) - used
	}
	b.ReportMetric(float64(ours.Nanoseconds())/1e3/float64(size*n), "µs/lease")
	b.ReportMetric(float64(cpu.Nanoseconds())/1e3/float64(size*n), "µs-cpu/lease")
	b.ReportMetric(float64(plain.Nanoseconds())/1e3/float64(size*n), "µs-append/lease")
	b.ReportMetric(float64(plainCPU.Nanoseconds())/1e3/float64(size*n), "µs-cpu-append/lease")
	b.ReportMetric(float64(ours)/float64(plain), "x-append")
	b.ReportMetric(float64(cpu)/float64(plainCPU), "x-cpu-append")
}

func appendLeases(b *testing.B, to *os.File, group []model.Lease) {
	b.Helper()
	var raw []byte
	for i := range group {
		ch, err := leaseChange(&group[i])
		if err != nil {
			b.Fatal(err)
		}
		raw = append(append(raw, ch.Name...), ch.Value...)
	}
	must.Get(to.Write(raw))(b)
	must.Do(b, to.Sync())
}

func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var usage syscall.Rusage
	must.Do(b, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// BenchmarkLeases reads 10,000 leases, as DHCP does at its start.
func BenchmarkLeases(b *testing.B) {
	for name, options := range map[string]func(b *testing.B) Options{
		"bbolt":        func(b *testing.B) Options { return Options{Dir: b.TempDir()} },
		"redis-server": func(b *testing.B) Options { return Options{RedisURL: redistest.New(b).URL()} },
	} {
		b.Run(name, func(b *testing.B) {
			r := benchRegistry(b, options(b))
			leases := make([]model.Lease, 10_000)
			for i := range leases {
				leases[i] = leaseOf(i)
			}
			saveLeases(b, r, leases...)
			for b.Loop() {
				if got, err := r.Leases.Leases(b.Context()); err != nil || len(got) != len(leases) {
					b.Fatal(len(got), err)
				}
			}
		})
	}
}

// BenchmarkOfferByMAC looks up one of 10,000 servers by a network interface.
func BenchmarkOfferByMAC(b *testing.B) {
	r := benchRegistry(b, Options{Dir: b.TempDir()})
	tenThousand(b, r)
	save(b, r, Changes{Servers: []*model.ServerRecord{withMACs(serverRecord(77, model.PurposeDiscovery), model.MACByBMC, macOf(77))}})
	for b.Loop() {
		if _, ok := r.Boots.Find(macOf(77)); !ok {
			b.Fatal("no ticket")
		}
	}
}
