package bmc

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/asn1"
	"errors"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"ingot/model"
	"ingot/model/must"
)

func (f *fake) rewritten(rewrite func(http.Header, []byte) []byte) {
	f.answers(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodGet {
			return false
		}
		rec := httptest.NewRecorder()
		f.mu.Lock()
		f.get(rec, r)
		f.mu.Unlock()
		body := rewrite(w.Header(), rec.Body.Bytes())
		w.WriteHeader(rec.Code)
		w.Write(body)
		return true
	})
}

func compressed(body []byte) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	w.Write(body)
	w.Close()
	return b.Bytes()
}

// What a BMC writes in a form of its own is read as what it is.
func TestAnswersInOtherForms(t *testing.T) {
	tests := map[string]func(http.Header, []byte) []byte{
		"compressed though nobody asked": func(h http.Header, body []byte) []byte {
			h.Set("Content-Encoding", "gzip")
			return compressed(body)
		},
		"compressed without a word":   func(_ http.Header, body []byte) []byte { return compressed(body) },
		"behind a byte order mark":    func(_ http.Header, body []byte) []byte { return append([]byte("\ufeff"), body...) },
		"compressed, and with a mark": func(_ http.Header, body []byte) []byte { return compressed(append([]byte("\ufeff"), body...)) },
		"with links without their slash": func(_ http.Header, body []byte) []byte {
			return bytes.ReplaceAll(body, []byte(`"/redfish/`), []byte(`"redfish/`))
		},
		"with whole URLs for links": func(_ http.Header, body []byte) []byte {
			return bytes.ReplaceAll(body, []byte(`"/redfish/`), []byte(`"https://bmc.example/redfish/`))
		},
	}
	for name, rewrite := range tests {
		for _, expand := range []bool{true, false} {
			t.Run(name, func(t *testing.T) {
				f := newFake(t, plain)
				f.expand = expand
				f.rewritten(rewrite)
				p := newPool(t, Options{})
				found, err := p.Discover(context.Background(), f.target())
				if err != nil || len(found.Systems) != 1 || len(found.Problems) > 0 {
					t.Fatalf("got %+v, %v", found, err)
				}
				facts, err := p.Inventory(context.Background(), model.SystemTarget{BMC: f.target(), URI: found.Systems[0].URI})
				if err != nil || len(facts.Inventory.Problems) > 0 || len(facts.Inventory.Processors) != 1 || len(facts.Inventory.Storages[0].Drives) != 2 {
					t.Errorf("got %+v, %v", facts, err)
				}
			})
		}
	}
}

func TestAnAnswerThatIsEndlessOnceDecompressedIsRefused(t *testing.T) {
	f := newFake(t, plain)
	bomb := compressed(bytes.Repeat([]byte(" "), maxBody+2))
	f.rewritten(func(http.Header, []byte) []byte { return bomb })
	if _, err := newPool(t, Options{}).Discover(context.Background(), f.target()); err == nil || !strings.Contains(err.Error(), "more than") {
		t.Errorf("got %v", err)
	}
}

// A name with a mark that URIs have another use for is asked for as it is.
func TestAResourceWithANumberSignInItsNameIsRead(t *testing.T) {
	f := newFake(t, plain)
	f.expand = false
	const dimm = sysURI + "/Memory/iDRAC.Embedded.1#DIMMA1"
	f.resources[sysURI+"/Memory"] = listed(dimm)
	f.resources[dimm] = f.resources[sysURI+"/Memory/DIMM1"]
	got, err := newPool(t, Options{}).Inventory(context.Background(), f.system1())
	if err != nil || len(got.Inventory.Memory) != 1 || len(got.Inventory.Problems) > 0 {
		t.Errorf("got %+v, %v", got, err)
	}
}

// A BMC that promises to expand collections and does not has them read one by one.
func TestExpandIsAPromise(t *testing.T) {
	tests := map[string]func(http.ResponseWriter, *http.Request){
		"404": func(w http.ResponseWriter, _ *http.Request) {
			fail(w, http.StatusNotFound, "Base.1.0.ResourceMissingAtURI")
		},
		"405": func(w http.ResponseWriter, _ *http.Request) {
			fail(w, http.StatusMethodNotAllowed, "Base.1.0.QueryNotSupported")
		},
		"an error with 200": func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte(okError)) },
		"null":              func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("null")) },
		"no Members":        func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte(`{"Name": "Collection"}`)) },
		"nothing in time":   func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
	}
	for name, answer := range tests {
		t.Run("answered with "+name, func(t *testing.T) {
			f := newFake(t, plain)
			f.answers(func(w http.ResponseWriter, r *http.Request) bool {
				if !r.URL.Query().Has("$expand") {
					return false
				}
				answer(w, r)
				return true
			})
			p := newPool(t, Options{Timeout: 500 * time.Millisecond})
			found, err := p.Discover(context.Background(), f.target())
			if err != nil || len(found.Systems) != 1 || len(found.Problems) > 0 {
				t.Fatalf("got %+v, %v", found, err)
			}
			if n := strings.Count(strings.Join(f.requests(), "\n"), "$expand"); n != 1 {
				t.Errorf("it was asked to expand %d times, want once", n)
			}
		})
	}
	t.Run("that was kept before is not broken by a collection that is missing", func(t *testing.T) {
		f := newFake(t, plain)
		delete(f.resources, sysURI+"/Processors")
		p := newPool(t, Options{})
		must.Get(p.Inventory(context.Background(), f.system1()))(t)
		asked := strings.Join(f.requests(), "\n")
		if !strings.Contains(asked, "Memory?$expand") || !strings.Contains(asked, "EthernetInterfaces?$expand") {
			t.Errorf("it was asked for\n%s", asked)
		}
		if n := strings.Count(asked, "/Processors"); n != 2 { // before it had expanded anything
			t.Errorf("what is missing was asked for %d times, want twice", n)
		}
		must.Get(p.Inventory(context.Background(), f.system1()))(t)
		if n := strings.Count(strings.Join(f.requests(), "\n"), "/Processors"); n != 1 {
			t.Errorf("then it was asked for %d times, want once", n)
		}
	})
	t.Run("that was kept before is not asked for again once it takes too long", func(t *testing.T) {
		f := newFake(t, plain)
		p := newPool(t, Options{Timeout: 300 * time.Millisecond})
		must.Get(p.Discover(context.Background(), f.target()))(t)
		f.answers(func(_ http.ResponseWriter, r *http.Request) bool {
			if r.URL.Query().Has("$expand") {
				<-r.Context().Done()
			}
			return r.URL.Query().Has("$expand")
		})
		got, err := p.Inventory(context.Background(), f.system1())
		if err != nil || len(got.Inventory.Problems) > 0 {
			t.Errorf("got %+v, %v", got, err)
		}
		if n := strings.Count(strings.Join(f.requests(), "\n"), "$expand"); n != 3 { // the two of Discover
			t.Errorf("it was asked to expand %d times, want once more", n)
		}
	})
}

func TestACollectionThatSaysThatItHasNoneIsEmpty(t *testing.T) {
	f := newFake(t, plain)
	f.says(sysURI+"/Storage", `{"@odata.type": "#StorageCollection.StorageCollection", "Members": null, "Members@odata.count": 0}`)
	got, err := newPool(t, Options{}).Inventory(context.Background(), f.system1())
	if err != nil || len(got.Inventory.Problems) > 0 || len(got.Inventory.Storages) > 0 {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestWhatCameBeforeAPageThatFailsIsKept(t *testing.T) {
	f := newFake(t, plain)
	f.resources[sysURI+"/Processors"]["Members@odata.nextLink"] = sysURI + "/Processors?$skip=1"
	f.answers(func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Query().Has("$skip") {
			fail(w, http.StatusInternalServerError, "Base.1.0.InternalError")
		}
		return r.URL.Query().Has("$skip")
	})
	got, err := newPool(t, Options{}).Inventory(context.Background(), f.system1())
	if err != nil || len(got.Inventory.Processors) != 1 || len(got.Inventory.Problems) != 1 {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestPagesThatGoRoundInCirclesEnd(t *testing.T) {
	f := newFake(t, plain)
	f.resources[sysURI+"/Processors"]["Members@odata.nextLink"] = sysURI + "/Processors"
	got, err := newPool(t, Options{}).Inventory(context.Background(), f.system1())
	if err != nil || len(got.Inventory.Processors) != 1 {
		t.Errorf("got %+v, %v", got, err)
	}
	if n := counted(f.requests(), "GET "+sysURI+"/Processors"); n > 2 {
		t.Errorf("the collection was read %d times", n)
	}
}

func TestALoginThatFails(t *testing.T) {
	failing := func(f *fake) {
		f.answers(func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "/Sessions") {
				return false
			}
			fail(w, http.StatusInternalServerError, "Base.1.0.InternalError")
			return true
		})
	}
	t.Run("is made up for by the password in each request, for a while", func(t *testing.T) {
		now := newClock()
		f := newFake(t, plain)
		f.basic = true
		failing(f)
		p := newPool(t, Options{Clock: now.Now})
		for range 2 {
			must.Get(p.Power(context.Background(), f.system1()))(t)
		}
		if n := counted(f.requests(), login); n != 1 {
			t.Errorf("%d logins, want one", n)
		}
		f.answers(nil)
		now.add(sessionFails + time.Second)
		if _, err := p.Power(context.Background(), f.system1()); err != nil || len(f.sessions) != 1 {
			t.Errorf("later: %v, %d sessions, want one", err, len(f.sessions))
		}
	})
	t.Run("says nothing of the password where there is no other way", func(t *testing.T) {
		now := newClock()
		f := newFake(t, plain)
		failing(f)
		p := newPool(t, Options{Clock: now.Now})
		tried := func() int { return counted(f.requests(), "GET /redfish/v1/Systems") } // since the last time
		for range 3 {
			if _, err := p.Power(context.Background(), f.system1()); statusOf(err) != http.StatusInternalServerError || errors.Is(err, ErrCircuitOpen) {
				t.Errorf("got %v", err)
			}
		}
		if n := tried(); n != 1 {
			t.Errorf("the password was refused %d times, want once: it may be wrong, and the account be locked", n)
		}
		now.add(sessionFails + time.Second)
		if _, err := p.Power(context.Background(), f.system1()); statusOf(err) != http.StatusInternalServerError {
			t.Errorf("later: %v", err)
		}
		if n := tried(); n != 1 {
			t.Errorf("later it was tried %d times, want once", n)
		}
	})
}

// BMCs of some age know no other key exchange.
func TestABMCWithRSAKeyExchangeIsSpokenWith(t *testing.T) {
	f := newFake(t, func(s *httptest.Server) {
		s.TLS = &tls.Config{
			Certificates: []tls.Certificate{certificateOf(t, big.NewInt(1), false)},
			MaxVersion:   tls.VersionTLS12, CipherSuites: []uint16{tls.TLS_RSA_WITH_AES_128_CBC_SHA},
		}
		s.StartTLS()
	})
	if _, err := newPool(t, Options{}).Power(context.Background(), f.system1()); err != nil {
		t.Error(err)
	}
}

func TestABMCWhoseCertificateHasANegativeSerialNumberIsSpokenWith(t *testing.T) {
	f := newFake(t, func(s *httptest.Server) {
		s.TLS = &tls.Config{Certificates: []tls.Certificate{certificateOf(t, big.NewInt(1), true)}}
		s.StartTLS()
	})
	if _, err := newPool(t, Options{}).Power(context.Background(), f.system1()); err != nil {
		t.Error(err)
	}
}

// certificateOf is a certificate that signs itself. The library writes no negative serial
// number, so that it is put in the place of the positive one.
func certificateOf(t *testing.T, serial *big.Int, negative bool) tls.Certificate {
	t.Helper()
	var key any
	var public any
	if negative {
		k := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
		key, public = k, k.Public()
	} else {
		k := must.Get(rsa.GenerateKey(rand.Reader, 2048))(t)
		key, public = k, k.Public()
	}
	template := &x509.Certificate{SerialNumber: serial, NotAfter: time.Now().Add(time.Hour)}
	der := must.Get(x509.CreateCertificate(rand.Reader, template, template, public, key))(t)
	if negative {
		before := must.Get(asn1.Marshal(serial))(t)
		after := must.Get(asn1.Marshal(big.NewInt(-5)))(t)
		der = bytes.Replace(der, before, after, 1)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}
