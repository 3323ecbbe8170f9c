package listen

import (
	"io"
	"net/http"
	"time"
)

// answerTimeout is how long a client may take to read an answer, from its first byte.
const answerTimeout = 30 * time.Second

// EndUnreadAnswers ends answers that their clients do not read within answerTimeout: else each
// is kept in memory for as long as its client likes. A handler may take its time before it
// answers.
func EndUnreadAnswers(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a := &answer{ResponseWriter: w}
		a.setDeadline(time.Time{}) // a connection keeps that of its last answer
		next.ServeHTTP(a, r)
		a.begin() // the server sends a header where the handler sent nothing
	})
}

// answer is a ResponseWriter with a deadline that begins with the answer.
type answer struct {
	http.ResponseWriter
	begun bool
}

// WriteHeader implements http.ResponseWriter.
func (a *answer) WriteHeader(code int) {
	a.begin()
	a.ResponseWriter.WriteHeader(code)
}

// Write implements http.ResponseWriter.
func (a *answer) Write(p []byte) (int, error) {
	a.begin()
	return a.ResponseWriter.Write(p)
}

// WriteString implements io.StringWriter, so that a long answer is not copied as a whole.
func (a *answer) WriteString(s string) (int, error) {
	a.begin()
	return io.WriteString(a.ResponseWriter, s)
}

// Unwrap is for http.ResponseController.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

func (a *answer) begin() {
	if a.begun {
		return
	}
	a.begun = true
	a.setDeadline(time.Now().Add(answerTimeout))
}

// setDeadline sets the write deadline. That a writer in a test has none is no matter.
func (a *answer) setDeadline(at time.Time) {
	_ = http.NewResponseController(a.ResponseWriter).SetWriteDeadline(at)
}
