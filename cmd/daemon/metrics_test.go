package daemon

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"ingot/cmd/daemon/config"
	"ingot/model/must"
)

func certificate(t *testing.T, until time.Time) string {
	t.Helper()
	key := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	template := x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: until.Add(-time.Hour), NotAfter: until}
	der := must.Get(x509.CreateCertificate(rand.Reader, &template, &template, key.Public(), key))(t)
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

func TestFilesOfTheConfigurationHaveTheirAges(t *testing.T) {
	dir := t.TempDir()
	at := func(hours int) time.Time { return time.Unix(1_800_000_000, 0).Add(time.Duration(hours) * time.Hour) }
	put := func(name, content string, modified time.Time) string {
		path := filepath.Join(dir, name)
		must.Do(t, os.WriteFile(path, []byte(content), 0o600))
		must.Do(t, os.Chtimes(path, modified, modified))
		return path
	}
	o := config.Default()
	o.State.Dir = dir
	put("seal.key", "a key of Ingot's own", at(-3))
	o.Git.Auth.PasswordFile = put("password", "hunter2", at(-1))
	o.Git.Auth.CAFile = put("ca", certificate(t, at(48))+certificate(t, at(24))+certificate(t, at(72)), at(-2))
	o.BMC.CAFile = put("broken", "-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n", at(-2))
	o.Redis.PasswordFile = filepath.Join(dir, "not there")
	o.Webhook.SecretFile = dir // no file at all

	reg := prometheus.NewRegistry()
	registerProcess(reg, "v1.2.3", &o)
	want := func(expiry string) string {
		return `# HELP ingot_build_info Always 1: the version of Ingot that runs, and of Go that built it.
# TYPE ingot_build_info gauge
ingot_build_info{goversion="` + runtime.Version() + `",version="v1.2.3"} 1
# HELP ingot_certificate_expiry_timestamp_seconds When the first of the certificates in a configured file expires, in Unix time, by configuration key.
# TYPE ingot_certificate_expiry_timestamp_seconds gauge
ingot_certificate_expiry_timestamp_seconds{key="git.auth.caFile"} ` + expiry + `
# HELP ingot_file_modified_timestamp_seconds When a configured file was last changed, in Unix time, by configuration key; absent if the file does not exist.
# TYPE ingot_file_modified_timestamp_seconds gauge
ingot_file_modified_timestamp_seconds{key="bmc.caFile"} 1.7999928e+09
ingot_file_modified_timestamp_seconds{key="git.auth.caFile"} 1.7999928e+09
ingot_file_modified_timestamp_seconds{key="git.auth.passwordFile"} 1.7999964e+09
ingot_file_modified_timestamp_seconds{key="redis.sealKeyFile"} 1.7999892e+09
`
	}
	names := []string{"ingot_build_info", "ingot_certificate_expiry_timestamp_seconds", "ingot_file_modified_timestamp_seconds"}
	if err := testutil.GatherAndCompare(reg, strings.NewReader(want("1.8000864e+09")), names...); err != nil {
		t.Error(err)
	}
	put("ca", certificate(t, at(96)), at(-2)) // the same age, another size
	if err := testutil.GatherAndCompare(reg, strings.NewReader(want("1.8003456e+09")), names...); err != nil {
		t.Errorf("a certificate was replaced: %v", err)
	}
}
