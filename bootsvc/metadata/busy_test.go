package metadata

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"

	"ingot/model"
)

// unread is the ResponseWriter of a client that does not read until told to.
type unread struct {
	*httptest.ResponseRecorder
	read chan struct{}
}

func (u unread) Write(p []byte) (int, error) {
	<-u.read
	return u.ResponseRecorder.Write(p)
}

func (u unread) WriteString(s string) (int, error) { return u.Write([]byte(s)) }

func TestAServerIsGivenAFewAnswersAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rack := rack{"10.0.0.7": servers["10.0.0.7"], "fd00::7": servers["10.0.0.7"], "10.0.0.8": servers["10.0.0.8"]}
		h := NewHandler(Options{Machines: rack})
		ask := func(from string, w http.ResponseWriter) {
			r := httptest.NewRequest(http.MethodGet, "http://metadata/v1/", nil)
			r.RemoteAddr = from
			r.Header.Set("Metadata-Flavor", Flavor)
			h.ServeHTTP(w, r)
		}
		answered := func(from string) *httptest.ResponseRecorder {
			w := httptest.NewRecorder()
			ask(from, w)
			return w
		}
		read := make(chan struct{})
		for range maxAnswers {
			go ask("10.0.0.7:1", unread{httptest.NewRecorder(), read})
		}
		synctest.Wait()
		for _, from := range []string{"10.0.0.7:2", "[fd00::7]:1"} {
			if w := answered(from); w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" {
				t.Errorf("%s is answered %d, want 503 and when to try again, while the server reads nothing", from, w.Code)
			}
		}
		if w := answered("10.0.0.8:1"); w.Code != http.StatusOK {
			t.Errorf("another server is answered %d", w.Code)
		}
		read <- struct{}{}
		synctest.Wait()
		if w := answered("10.0.0.7:3"); w.Code != http.StatusOK {
			t.Errorf("answered %d once the server has read one", w.Code)
		}
		close(read)
		synctest.Wait()
		for range 2 * maxAnswers {
			if w := answered("10.0.0.7:4"); w.Code != http.StatusOK {
				t.Errorf("answered %d, one after another", w.Code)
			}
		}
	})
}

func TestJSONIsNoLongerThanItMustBe(t *testing.T) {
	value := "<&>"
	m := Machine{Name: "s", UserData: map[string]model.Sensitive{"x": model.NewSensitive(value)}}
	if got, want := m.answer(formV1, []string{keyUserData}).body, `{"x":"`+value+"\"}\n"; got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}
