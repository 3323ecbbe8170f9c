package bmc

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestMessages(t *testing.T) {
	tests := map[string]struct {
		body string
		ids  []string
		text string
	}{
		"of the standard's form": {
			body: `{"error":{"code":"Base.1.0.GeneralError","message":"See ` +
				`below.","@Message.ExtendedInfo":[{"MessageId":"Base.1.0.ResourceInUse","Message":"In use."}]}}`,
			ids: []string{"Base.1.0.GeneralError", "Base.1.0.ResourceInUse"}, text: "See below. In use.",
		},
		"of which there is one that is no list, as of an iDRAC 8": {
			body: `{"error":{"code":"c","message":"m","@Message.ExtendedInfo":{"MessageId":"IDRAC.1.5.RAC0218","Message":"Full."}}}`,
			ids:  []string{"c", "IDRAC.1.5.RAC0218"}, text: "m Full.",
		},
		"that are a web page":      {body: "<html>\n\x00 502 </html>", text: "<html> 502 </html>"},
		"that are endless are cut": {body: strings.Repeat("x", 5000), text: strings.Repeat("x", maxDetail) + "…"},
		"that are none":            {},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			ids, text := messages(400, []byte(tt.body))
			if diff := cmp.Diff(tt.ids, ids); diff != "" {
				t.Errorf("identifiers (-want +got):\n%s", diff)
			}
			if text = new(sender).detail(text); text != tt.text {
				t.Errorf("text %q, want %q", text, tt.text)
			}
		})
	}
}

// An error is shown on the status branch, where each change of it is a commit.
func TestTheSameFailureReadsTheSame(t *testing.T) {
	f, now := newFake(t, plain), newClock()
	p := newPool(t, Options{Clock: now.Now})
	f.answer = func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path == "/redfish/v1/" {
			panic(http.ErrAbortHandler)
		}
		return false
	}
	failure := func() string {
		_, err := p.Power(context.Background(), f.system1())
		if err == nil {
			t.Fatal("no error")
		}
		return err.Error()
	}
	if first, second := failure(), failure(); first != second {
		t.Errorf("a dropped connection:\n%s\n%s", first, second)
	}
	f.change(func() {
		f.answer = func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("Retry-After", "60")
			fail(w, http.StatusServiceUnavailable, "Base.1.0.ServiceTemporarilyUnavailable")
			return true
		}
	})
	failure()
	first := failure()
	now.add(7 * time.Second)
	if second := failure(); first != second {
		t.Errorf("a BMC that is left alone:\n%s\n%s", first, second)
	}
}

// A BMC that repeats the password shows no part of it, wherever the text is cut.
func TestSecretsAreTakenOutBeforeATextIsCut(t *testing.T) {
	echoes := map[string]func(w http.ResponseWriter, filler string){
		"a message": func(w http.ResponseWriter, filler string) {
			fail(w, http.StatusUnauthorized, filler+password)
		},
		"two messages": func(w http.ResponseWriter, filler string) {
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprintf(w, `{"error":{"message":%q,"@Message.ExtendedInfo":[{"Message":"%s and %s"}]}}`, filler, password, password)
		},
		"a web page": func(w http.ResponseWriter, filler string) {
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprint(w, filler, password)
		},
		"blanks before it": func(w http.ResponseWriter, filler string) {
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprint(w, strings.Repeat(" ", 3*maxDetail), filler, password)
		},
	}
	for name, echo := range echoes {
		t.Run(name, func(t *testing.T) {
			f := newFake(t, plain)
			filler := ""
			f.answer = func(w http.ResponseWriter, r *http.Request) bool {
				if r.Method != http.MethodPost {
					return false
				}
				echo(w, filler)
				return true
			}
			for n := maxDetail - 100; n <= maxDetail; n += 3 {
				filler = strings.Repeat("x", n)
				_, err := newPool(t, Options{}).Discover(context.Background(), f.target())
				if err == nil || strings.Contains(err.Error(), password[:4]) {
					t.Fatalf("after %d bytes: %v", n, err)
				}
			}
		})
	}
}
