package oci

import (
	"runtime"
	"strings"
	"testing"
)

func manifestOf(list string, n int) []byte {
	return []byte(`{"mediaType":"` + mediaOCIManifest + `","` + list + `":[` + strings.TrimSuffix(strings.Repeat("{},", n), ",") + `]}`)
}

func TestEntriesOfAManifestAreCounted(t *testing.T) {
	for _, list := range []string{"layers", "manifests"} {
		m, err := parseManifest(manifestOf(list, maxEntries), "")
		if got := len(m.Layers) + len(m.Manifests); err != nil || got != maxEntries {
			t.Errorf("of %d %s are read %d, error %v", maxEntries, list, got, err)
		}
		if _, err = parseManifest(manifestOf(list, maxEntries+1), ""); err == nil || !strings.Contains(err.Error(), "more than 1000 entries") {
			t.Errorf("one of the %s more: error %v", list, err)
		}
	}
	m, err := parseManifest([]byte(`{"mediaType":"`+mediaOCIManifest+`","layers":[{"size":1},{"size":2}],"manifests":null,"layers":[{"size":3}]}`), "")
	if err != nil || len(m.Layers) != 1 || m.Layers[0].Size != 3 || m.Manifests != nil {
		t.Errorf("got %+v, %v", m, err)
	}
	for _, layers := range []string{`3`, `{}`, `[3]`, `[{"size":"x"}]`} {
		if _, err := parseManifest([]byte(`{"mediaType":"`+mediaOCIManifest+`","layers":`+layers+`}`), ""); err == nil || !strings.Contains(err.Error(), "field manifest.layers") {
			t.Errorf("layers %s: error %v", layers, err)
		}
	}
}

// A manifest with too many entries is refused before they take many times its size.
func TestAManifestThatGrowsIsRefusedBefore(t *testing.T) {
	body := manifestOf("layers", maxManifest/3-100)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := parseManifest(body, "")
	runtime.ReadMemStats(&after)
	if err == nil || !strings.Contains(err.Error(), "more than 1000 entries") {
		t.Errorf("error %v", err)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > 8*maxManifest {
		t.Errorf("%d bytes took %d", len(body), took)
	}
}
