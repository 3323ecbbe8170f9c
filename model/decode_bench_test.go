package model

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	sigsyaml "sigs.k8s.io/yaml"
)

// yardstickClaim is a ServerClaim as Kubernetes' own tools decode it.
type yardstickClaim struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        Meta            `json:"metadata"`
	Spec            ServerClaimSpec `json:"spec"`
}

func benchmarkClaims(n int) [][]byte {
	files := make([][]byte, n)
	for i := range files {
		files[i] = fmt.Appendf(nil, `apiVersion: metal.ironcore.dev/v1alpha1
kind: ServerClaim
metadata:
  name: web-%05d
  namespace: team-%02d
  labels:
    app: web
    tier: frontend
  annotations:
    ingot/priority: "10"
spec:
  power: "On"
  serverSelector:
    matchLabels:
      rack: r%03d
    matchExpressions:
    - key: zone
      operator: In
      values: [x, y]
  image: registry.example.com/os/flatcar:%d.0.0
  ignitionSecretRef:
    name: web-%05d-ignition
  tolerations:
  - key: dedicated
    operator: Equal
    value: web
    effect: NoBind
`, i, i%50, i%200, i, i)
	}
	return files
}

// BenchmarkDecode decodes 10,000 claims, a file each, and reports the time of one
// and how it compares with sigs.k8s.io/yaml, which was measured alongside.
func BenchmarkDecode(b *testing.B) {
	files := benchmarkClaims(10_000)
	ours, theirs := time.Duration(0), time.Duration(0)
	b.ReportAllocs()
	for b.Loop() {
		start := time.Now()
		for _, data := range files {
			objects, problems := Decode("claim.yaml", data, DecodeOptions{})
			if len(objects) != 1 || len(problems) > 0 {
				b.Fatal(problems)
			}
		}
		ours += time.Since(start)

		b.StopTimer()
		start = time.Now()
		for _, data := range files {
			var c yardstickClaim
			if err := sigsyaml.UnmarshalStrict(data, &c); err != nil {
				b.Fatal(err)
			}
		}
		theirs += time.Since(start)
		b.StartTimer()
	}
	b.ReportMetric(float64(ours.Microseconds())/float64(b.N)/float64(len(files)), "µs/manifest")
	b.ReportMetric(float64(theirs.Microseconds())/float64(b.N)/float64(len(files)), "sigs-µs/manifest")
	b.ReportMetric(float64(ours)/float64(theirs), "ratio")
	b.ReportMetric(0, "ns/op")
}
