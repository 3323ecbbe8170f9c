package bmc

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"maps"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"ingot/model"
	"ingot/model/must"
)

// symptom is one broken BMC.
type symptom struct {
	start  func(*httptest.Server) // nil = secure
	change func(*fake, *CheckOptions)

	reason model.Reason // of the check and of the daemon; "" = the daemon has none
	check  string       // the row of the check that has it
	usable bool         // the check's verdict
	says   string       // in the row's detail or advice
	// onlyWritten: the check finds it with Write alone.
	onlyWritten bool
}

// TestDiagnosis demands of each broken BMC the same reason from a check as from the requests of the daemon, with the
// advice and the actor of that reason.
func TestDiagnosis(t *testing.T) {
	for name, tt := range symptoms(t) {
		t.Run(name, func(t *testing.T) {
			start := secure
			if tt.start != nil {
				start = tt.start
			}
			f := newFake(t, start)
			o := CheckOptions{Write: tt.onlyWritten, Timeout: 2 * time.Second}
			if tt.change != nil {
				tt.change(f, &o)
			}
			if o.Target.Address == "" {
				o.Target = f.target()
			}
			r := checked(t, f, o)
			row, advice := r.row(tt.check), model.BMCAdvice[tt.reason]
			if row.Reason != tt.reason || r.Usable() != tt.usable || !strings.Contains(row.Detail+" "+row.Advice, tt.says) {
				t.Errorf("usable %t, got %+v of %+v", r.Usable(), row, r.Checks)
			}
			if tt.reason != "" && (row.Actor != advice.Actor || row.Advice != advice.Text || row.Detail == "") {
				t.Errorf("got %+v, want the advice %+v", row, advice)
			}
			if strings.Contains(row.Detail, password) {
				t.Errorf("it shows the password: %s", row.Detail)
			}
			if reason := daemonsReason(t, o); reason != tt.reason {
				t.Errorf("the daemon says %q, the check %q", reason, tt.reason)
			}
		})
	}
}

// daemonsReason is the first reason for which the daemon cannot use a BMC and its first system, "" if it can.
func daemonsReason(t *testing.T, o CheckOptions) model.Reason {
	t.Helper()
	ctx, p := t.Context(), newPool(t, Options{CA: o.CA, Timeout: o.Timeout})
	facts, err := p.Discover(ctx, o.Target)
	switch {
	case err != nil:
		return ReasonOf(err)
	case len(facts.Systems) == 0:
		return model.ReasonNoServers
	case facts.Systems[0].Unread:
		return model.ReasonSystemUnreadable
	}
	fact := facts.Systems[0]
	if reason := facts.Unidentified(fact); reason != "" {
		return reason
	}
	s := model.SystemTarget{BMC: o.Target, URI: fact.URI, UUID: fact.UUID}
	var power model.Power
	for _, step := range []func() error{
		func() error { _, err := p.Inventory(ctx, s); return err },
		func() (err error) { power, err = p.Power(ctx, s); return err },
		func() error {
			if power == model.PowerUnknown {
				return errNoPower
			}
			return nil
		},
		func() error { _, err := p.BootOnce(ctx, s, model.BootPXE); return err },
		func() error { return errOf(p.Reset(ctx, s, model.ResetOn, "")) },
		func() error { return errOf(p.Reset(ctx, s, model.ResetGracefulOff, "")) },
		func() error { return errOf(p.Reset(ctx, s, model.ResetForceOff, "")) },
	} {
		if err := step(); errors.Is(err, errNoPower) {
			return model.ReasonPowerStateUnknown
		} else if err != nil {
			return ReasonOf(err)
		}
	}
	return ""
}

var errNoPower = errors.New("no power state")

func symptoms(t *testing.T) map[string]symptom {
	const login, root, systems, boot = "login", "Redfish", "systems", "boot override"
	answered := func(path string, with http.HandlerFunc) func(*fake, *CheckOptions) {
		return func(f *fake, _ *CheckOptions) {
			f.answer = func(w http.ResponseWriter, r *http.Request) bool {
				if !strings.HasPrefix(r.URL.Path, path) || r.Method == http.MethodDelete {
					return false
				}
				with(w, r)
				return true
			}
		}
	}
	refused := func(status int, id string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { fail(w, status, id) }
	}
	page := func(status int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = w.Write([]byte("<html>Welcome</html>"))
		}
	}
	sys := func(change func(object)) func(*fake, *CheckOptions) {
		return func(f *fake, _ *CheckOptions) { change(f.resources[sysURI]) }
	}
	resets := func(allowed ...any) func(*fake, *CheckOptions) {
		return sys(func(o object) {
			o["Actions"].(object)["#ComputerSystem.Reset"].(object)["ResetType@Redfish.AllowableValues"] = allowed
		})
	}
	readOnly := func(f *fake, _ *CheckOptions) {
		f.answer = func(w http.ResponseWriter, r *http.Request) bool {
			denied := r.Method == http.MethodPatch || strings.Contains(r.URL.Path, "/Actions/")
			if denied {
				fail(w, http.StatusForbidden, "Base.1.0.InsufficientPrivilege")
			}
			return denied
		}
	}
	account := func(role string, privileges ...any) func(*fake, *CheckOptions) {
		return func(f *fake, o *CheckOptions) {
			readOnly(f, o)
			f.resources[accountsURI] = listed(accountsURI + "/1")
			f.resources[accountsURI+"/1"] = object{"Name": "Account", "UserName": user, "RoleId": role}
			f.resources[rolesURI+"/"+role] = object{"Name": "Role", "AssignedPrivileges": privileges}
		}
	}
	basic := func(f *fake) { f.basic = true; delete(f.resources["/redfish/v1/"], "Links") }
	old := func(s *httptest.Server) {
		s.TLS = &tls.Config{Certificates: []tls.Certificate{certificateOf(t, big.NewInt(1), false)}, MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS10}
		s.StartTLS()
	}
	trusting := func(f *fake, o *CheckOptions) {
		leaf := must.Get(x509.ParseCertificate(f.TLS.Certificates[0].Certificate[0]))(t)
		o.CA = x509.NewCertPool()
		o.CA.AddCert(leaf)
	}
	duplicate := func(f *fake, _ *CheckOptions) {
		f.resources["/redfish/v1/Systems/2"] = maps.Clone(f.resources[sysURI])
		f.resources["/redfish/v1/Systems"] = listed(sysURI, "/redfish/v1/Systems/2")
	}
	return map[string]symptom{
		"a wrong password": {
			change: func(f *fake, _ *CheckOptions) { f.password = "changed" }, check: login, reason: model.ReasonAuthenticationFailed,
		},
		"a wrong password, sent with each request": {
			change: func(f *fake, _ *CheckOptions) { basic(f); f.password = "changed" }, check: login, reason: model.ReasonAuthenticationFailed,
		},
		"a locked account": {
			change: answered("/redfish/v1/SessionService", refused(http.StatusForbidden, "Base.1.8.AccountLocked")),
			check:  login, reason: model.ReasonAuthenticationFailed, says: "if it is locked, wait or unlock it",
		},
		"an expired password, refused at login": {
			change: answered("/redfish/v1/SessionService", refused(http.StatusForbidden, "Base.1.8.PasswordChangeRequired")),
			check:  login, reason: model.ReasonPasswordChangeRequired,
		},
		"an expired password, refused at login with 401": {
			change: answered("/redfish/v1/SessionService", refused(http.StatusUnauthorized, "Base.1.8.PasswordChangeRequired")),
			check:  login, reason: model.ReasonPasswordChangeRequired,
		},
		"an expired password, refused after login": {
			change: answered("/redfish/v1/Systems", refused(http.StatusForbidden, "Base.1.8.PasswordChangeRequired")),
			check:  systems, reason: model.ReasonPasswordChangeRequired,
		},
		"a full session table": {
			change: answered("/redfish/v1/SessionService", refused(http.StatusServiceUnavailable, "Base.1.0.SessionLimitExceeded")),
			check:  login, reason: model.ReasonSessionsFull,
		},
		"a full session table of an iLO": {
			change: answered("/redfish/v1/SessionService", refused(http.StatusBadRequest, "Base.1.0.SessionLimitExceeded")),
			check:  login, reason: model.ReasonSessionsFull,
		},
		"a busy BMC": {
			change: answered("/redfish/v1/SessionService", refused(http.StatusServiceUnavailable, "Base.1.0.ServiceTemporarilyUnavailable")),
			check:  login, reason: model.ReasonBMCBusy,
		},
		"a firmware update, by its message": {
			change: answered("/redfish/v1/", refused(http.StatusBadRequest, "Vendor.1.0.FirmwareUpdateInProgress")),
			check:  root, reason: model.ReasonUpdateInProgress,
		},
		"a firmware update, by a text with 503": {
			change: answered("/redfish/v1/", func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(http.StatusServiceUnavailable)
				_, _ = w.Write([]byte(`{"error":{"code":"Base.1.0.GeneralError","message":"Firmware update in progress."}}`))
			}), check: root, reason: model.ReasonUpdateInProgress,
		},
		"a firmware update, at login": {
			change: answered("/redfish/v1/SessionService", refused(http.StatusConflict, "Base.1.0.UpdateInProgress")),
			check:  login, reason: model.ReasonUpdateInProgress,
		},
		"a firmware update, by the manager's status": {
			change: func(f *fake, _ *CheckOptions) {
				f.resources["/redfish/v1/Managers/BMC"]["Status"] = object{"State": "Updating"}
			}, check: systems, reason: model.ReasonUpdateInProgress,
		},
		"an account that may only read, by its session": {
			change: func(f *fake, o *CheckOptions) {
				readOnly(f, o)
				denied := f.answer
				f.answer = func(w http.ResponseWriter, r *http.Request) bool {
					if r.Method == http.MethodGet && strings.HasPrefix(r.URL.Path, "/redfish/v1/SessionService/Sessions/") {
						_, _ = w.Write([]byte(`{"Name":"Session","Roles":["ReadOnly"]}`))
						return true
					}
					return denied(w, r)
				}
			}, check: "account", reason: model.ReasonReadOnlyAccount, says: "its role is ReadOnly",
		},
		"an account that may only read, by its role":          {change: account("ReadOnly"), check: "account", reason: model.ReasonReadOnlyAccount},
		"an account that may only read, by a role of its own": {change: account("Viewer", "Login"), check: "account", reason: model.ReasonReadOnlyAccount},
		"an account that may only read, found by writing": {
			change: readOnly, check: "write boot override", reason: model.ReasonReadOnlyAccount, onlyWritten: true,
		},
		"a changed certificate": {
			change: func(f *fake, o *CheckOptions) { o.Target = f.target(); o.Target.Fingerprint = strings.Repeat("ab", 32) },
			check:  "TLS", reason: model.ReasonCertificateChanged,
		},
		"a certificate that no CA signed": {
			change: func(_ *fake, o *CheckOptions) { o.CA = x509.NewCertPool() }, check: "TLS", reason: model.ReasonCertificateInvalid, says: "unknown authority",
		},
		"a certificate for another name": {
			change: func(f *fake, o *CheckOptions) {
				trusting(f, o)
				o.Target = f.target()
				o.Target.Hostname = "other.test"
			},
			check: "TLS", reason: model.ReasonCertificateInvalid, says: "not other.test",
		},
		"an expired certificate, with a CA": {
			start:  func(s *httptest.Server) { s.TLS = expired(t); s.StartTLS() },
			change: trusting, check: "TLS", reason: model.ReasonCertificateInvalid, says: "expired",
		},
		"an expired certificate, pinned": {
			start: func(s *httptest.Server) { s.TLS = expired(t); s.StartTLS() }, check: "TLS", usable: true, says: "has expired",
		},
		"TLS 1.0 alone": {start: old, check: "TLS", reason: model.ReasonTLSFailed, says: "ingot/tls-minimum"},
		"TLS 1.0 that is allowed": {
			start: old, change: func(f *fake, o *CheckOptions) { o.Target = f.target(); o.Target.TLSMinimum = "1.0" },
			check: "TLS", usable: true, says: "update the firmware",
		},
		"https to a port with http": {
			start:  plain,
			change: func(f *fake, o *CheckOptions) { o.Target = f.target(); o.Target.Scheme = "https" },
			check:  "TLS", reason: model.ReasonTLSFailed, says: "use protocol scheme http",
		},
		"http to a port with https": {
			change: func(f *fake, o *CheckOptions) { o.Target = f.target(); o.Target.Scheme = "http" },
			check:  root, reason: model.ReasonNotRedfish, says: "HTTP request to an HTTPS server",
		},
		"a port where nothing listens": {
			change: func(f *fake, o *CheckOptions) { o.Target = f.target(); f.Close() }, check: "connection", reason: model.ReasonConnectionFailed,
		},
		"a port with another protocol": {
			change: func(f *fake, o *CheckOptions) { o.Target = f.target(); o.Target.Address = banner(t) },
			check:  "TLS", reason: model.ReasonTLSFailed,
		},
		"a name that is unknown": {
			change: func(f *fake, o *CheckOptions) { o.Target = f.target(); o.Target.Address = "no.such.host.invalid:443" },
			check:  "connection", reason: model.ReasonConnectionFailed,
		},
		"no service root":            {change: answered("/", page(http.StatusNotFound)), check: root, reason: model.ReasonNotRedfish},
		"a web page as service root": {change: answered("/", page(http.StatusOK)), check: root, reason: model.ReasonNotRedfish},
		"a service root without links": {
			change: func(f *fake, _ *CheckOptions) { f.resources["/redfish/v1/"] = object{"Name": "Root"} }, check: root, reason: model.ReasonNotRedfish,
		},
		"a service root that redirects elsewhere": {
			change: answered("/", func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, "https://192.0.2.1/redfish/v1/", http.StatusFound)
			}), check: root, reason: model.ReasonNotRedfish, says: "192.0.2.1",
		},
		"a service root that needs the password": {
			change: func(f *fake, _ *CheckOptions) {
				f.answer = func(w http.ResponseWriter, r *http.Request) bool {
					denied := r.URL.Path == "/redfish/v1/" && r.Header.Get("X-Auth-Token") == ""
					if denied {
						fail(w, http.StatusUnauthorized, "Base.1.0.NoValidSession")
					}
					return denied
				}
			}, check: root, usable: true, says: "asks for the password",
		},
		"a slow BMC": {
			change: func(f *fake, o *CheckOptions) {
				o.Timeout = 50 * time.Millisecond
				answered("/redfish/v1/Systems", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })(f, o)
			}, check: systems, reason: model.ReasonConnectionFailed, says: "no answer within",
		},
		"errors":                        {change: answered("/redfish/v1/Systems", failing(500)), check: systems, reason: model.ReasonUnknownError},
		"systems that do not exist":     {change: answered("/redfish/v1/Systems", failing(404)), check: systems, reason: model.ReasonHalfAnswer},
		"a web page instead of systems": {change: answered("/redfish/v1/Systems", page(http.StatusOK)), check: systems, reason: model.ReasonHalfAnswer},
		"a collection that lacks members": {
			change: func(f *fake, _ *CheckOptions) {
				all := listed(sysURI)
				all["Members@odata.count"] = 4
				f.resources["/redfish/v1/Systems"] = all
			}, check: systems, reason: model.ReasonHalfAnswer,
		},
		"no system": {
			change: func(f *fake, _ *CheckOptions) { f.resources["/redfish/v1/Systems"] = listed() }, check: systems, reason: model.ReasonNoServers,
		},
		"a link without a slash in front": {
			change: func(f *fake, _ *CheckOptions) { f.resources["/redfish/v1/"]["Systems"] = linked("redfish/v1/Systems") }, check: systems, usable: true,
		},
		"a DPU alone":     {change: sys(func(o object) { o["SystemType"] = "DPU" }), check: systems, reason: model.ReasonNoServers},
		"no reset action": {change: sys(func(o object) { delete(o, "Actions") }), check: systems, reason: model.ReasonNoServers},
		"a system that cannot be read": {
			change: func(f *fake, o *CheckOptions) {
				f.expand = false
				answered(sysURI, failing(500))(f, o)
			}, check: systems, reason: model.ReasonSystemUnreadable,
		},
		"two systems with one UUID": {change: duplicate, check: "identity", reason: model.ReasonDuplicateUUID},
		"two nodes of one board, without UUIDs": {
			change: func(f *fake, o *CheckOptions) { delete(f.resources[sysURI], "UUID"); duplicate(f, o) },
			check:  "identity", reason: model.ReasonUUIDMissing, usable: true,
		},
		"a serial number alone": {
			change: sys(func(o object) { delete(o, "UUID") }), check: "identity", reason: model.ReasonUUIDMissing, usable: true, says: "437XR1138R2",
		},
		"a placeholder as serial number": {
			change: sys(func(o object) { delete(o, "UUID"); o["SerialNumber"] = "To be filled by O.E.M." }), check: "identity", reason: model.ReasonNotIdentifiable,
		},
		"neither UUID nor serial number": {
			change: sys(func(o object) { delete(o, "UUID"); delete(o, "SerialNumber") }), check: "identity", reason: model.ReasonNotIdentifiable,
		},
		"an unknown power state": {
			change: sys(func(o object) { o["PowerState"] = "Warm" }), check: "power state", reason: model.ReasonPowerStateUnknown,
		},
		"a power button alone": {
			change: resets("PushPowerButton"), check: "reset types", reason: model.ReasonUnsupported, usable: true, says: "ignores the request to shut down",
		},
		"no power-on": {change: resets("ForceOff"), check: "reset types", reason: model.ReasonUnsupported},
		"no ForceOff": {change: resets("On", "GracefulShutdown"), check: "reset types", reason: model.ReasonUnsupported, usable: true},
		"no graceful shutdown": {
			change: resets("On", "ForceOff"), check: "reset types", reason: model.ReasonUnsupported, usable: true, says: "forced off at once",
		},
		"no boot override": {change: sys(func(o object) { delete(o, "Boot") }), check: boot, reason: model.ReasonNoNetworkBoot},
		"a boot override without the network": {
			change: sys(func(o object) {
				o["Boot"].(object)["BootSourceOverrideTarget@Redfish.AllowableValues"] = []any{"None", "Hdd"}
			}),
			check: boot, reason: model.ReasonNoNetworkBoot, says: "None, Hdd",
		},
		"a boot order, and no boot override": {
			change: sys(func(o object) { o["Boot"] = object{"BootOrder": []any{"Boot0001"}} }), check: boot, reason: model.ReasonNoNetworkBoot,
		},
		"a boot override that is not kept": {
			change: func(f *fake, _ *CheckOptions) { f.store = func(string, object) int { return http.StatusNoContent } },
			check:  "write boot override", reason: model.ReasonBootOverrideNotKept, onlyWritten: true,
		},
		"no session, and the password with each request": {
			change: func(f *fake, _ *CheckOptions) { basic(f) }, check: login, usable: true, says: "every request carries the password",
		},
		"no MAC address": {
			change: sys(func(o object) { delete(o, "EthernetInterfaces") }), check: "inventory", usable: true, says: "ingot/mac-addresses",
		},
	}
}

// banner listens on a port of a protocol in which the server speaks first, and returns its address.
func banner(t *testing.T) string {
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Write([]byte("SSH-2.0-dropbear_2024.86\r\n"))
			go func() { _, _ = conn.Read(make([]byte, 512)); _ = conn.Close() }()
		}
	}()
	return l.Addr().String()
}
