package bmc

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stmcginnis/gofish"

	"ingot/model"
	"ingot/model/must"
)

// BenchmarkPowerPoll compares one poll of the power state with the least that it
// could cost, a kept net/http connection and a narrow decode, and with a gofish
// client for each operation, as metal-operator has it.
func BenchmarkPowerPoll(b *testing.B) {
	body, etag := benchSystem(b), ""
	srv := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodPost:
			w.Header().Set("X-Auth-Token", "t")
			w.Header().Set("Location", "/redfish/v1/SessionService/Sessions/1")
			w.WriteHeader(http.StatusCreated)
		case r.URL.Path == "/redfish/v1/":
			io.WriteString(w,
				`{"Systems":{"@odata.id":"/redfish/v1/Systems"},"Links":{"Sessions":{"@odata.id":"/redfish/v1/SessionService/Sessions"}}}`)
		case r.URL.Path == "/redfish/v1/Systems":
			io.WriteString(w, `{"Members":[{"@odata.id":"`+sysURI+`"}]}`)
		case etag != "" && r.Header.Get("If-None-Match") == etag:
			w.WriteHeader(http.StatusNotModified)
		default:
			if etag != "" {
				w.Header().Set("ETag", etag)
			}
			w.Write(body)
		}
	}))
	defer srv.Close()

	poll := func(b *testing.B) {
		var ahead time.Duration
		p := newPool(b, Options{Clock: func() time.Time { return time.Now().Add(ahead) }})
		s := model.SystemTarget{URI: sysURI, BMC: model.BMCTarget{
			Name: "b", Scheme: "https", Address: strings.TrimPrefix(srv.URL, "https://"),
			Username: user, Password: model.NewSensitive(password),
		}}
		must.Get(p.Power(context.Background(), s))(b)
		before := p.Stats("b")
		b.ReportAllocs()
		used := cpuUsed(b)
		for b.Loop() {
			ahead += 11 * time.Second // polls are not confirmations, which are whole answers
			if power, err := p.Power(context.Background(), s); power != model.PowerOn {
				b.Fatal(power, err)
			}
		}
		b.ReportMetric(float64((cpuUsed(b)-used).Microseconds())/float64(b.N), "cpu-us/op")
		after := p.Stats("b")
		if after.Requests-before.Requests != uint64(b.N) || after.Connections != before.Connections || after.Sessions != before.Sessions {
			b.Errorf("%d polls took it from %+v to %+v, want one request each", b.N, before, after)
		}
	}
	b.Run("ingot", poll)
	etag = `"1"`
	b.Run("ingot, of a BMC with ETags", poll)
	etag = ""
	b.Run("yardstick net/http", func(b *testing.B) {
		c := srv.Client()
		b.ReportAllocs()
		used := cpuUsed(b)
		defer func() { b.ReportMetric(float64((cpuUsed(b)-used).Microseconds())/float64(b.N), "cpu-us/op") }()
		for b.Loop() {
			resp, err := c.Get(srv.URL + sysURI)
			if err != nil {
				b.Fatal(err)
			}
			var sys struct {
				ETag                                                string `json:"@odata.etag"`
				PowerState, UUID, Model, Manufacturer, SerialNumber string
			}
			if err := json.NewDecoder(resp.Body).Decode(&sys); err != nil || sys.PowerState != "On" {
				b.Fatal(sys, err)
			}
			io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		}
	})
	b.Run("gofish client each time", func(b *testing.B) {
		b.ReportAllocs()
		used := cpuUsed(b)
		defer func() { b.ReportMetric(float64((cpuUsed(b)-used).Microseconds())/float64(b.N), "cpu-us/op") }()
		for b.Loop() {
			client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
			api, err := gofish.Connect(gofish.ClientConfig{
				Endpoint: srv.URL, Username: user, Password: password, BasicAuth: true, HTTPClient: client, NoModifyTransport: true,
			})
			if err != nil {
				b.Fatal(err)
			}
			systems, err := api.Service.Systems()
			if err != nil || len(systems) != 1 || systems[0].PowerState != "On" {
				b.Fatal(systems, err)
			}
			api.Logout()
		}
	})
}

// cpuUsed is the CPU time of this process, the simulated BMC included, which other processes
// do not make longer.
func cpuUsed(b *testing.B) time.Duration {
	var used syscall.Rusage
	must.Do(b, syscall.Getrusage(syscall.RUSAGE_SELF, &used))
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// benchSystem is a system resource of some 4.7 KB.
func benchSystem(b *testing.B) []byte {
	sys := tree()[sysURI]
	sys["PowerState"] = "On"
	notes := object{}
	for i := range 45 {
		notes["Property"+string(rune('A'+i%26))+string(rune('a'+i/26))] = object{
			"@odata.id": "/redfish/v1/Systems/1/SomeCollection/WithMembers", "Value": i,
		}
	}
	sys["Oem"] = object{"Contoso": notes}
	return must.Get(json.Marshal(sys))(b)
}
