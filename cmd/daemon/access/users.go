package access

import (
	"crypto/rand"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"unicode"

	"golang.org/x/crypto/bcrypt"
)

const (
	// maxCost bounds how long one password takes to be checked: a second or so.
	maxCost  = 14
	maxUsers = 1000
)

// users are the users of a file, with the hashes of their passwords.
type users struct {
	hashes map[string]string
	// nobody is a hash that no password has. It is checked for users that there are not, so
	// that the time does not tell which there are.
	nobody string
}

// hashOf returns the hash to check a user's password against, and whether there is such a user.
func (u *users) hashOf(name string) (hash string, known bool) {
	if hash, known = u.hashes[name]; known {
		return hash, true
	}
	return u.nobody, false
}

// parseUsers reads a file of lines NAME:HASH, as htpasswd -B writes them. What it says of
// a line never repeats the hash.
func parseUsers(file string, content []byte) (*users, error) {
	u := &users{hashes: make(map[string]string)}
	lines := make(map[string]int)
	var wrong []error
	n, cost := 0, bcrypt.MinCost
	for line := range strings.Lines(string(content)) {
		n++
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, hash, _ := strings.Cut(line, ":")
		if why := wrongLine(name, hash, file); why != "" {
			wrong = append(wrong, fmt.Errorf("%s:%d: %s", file, n, why))
			continue
		}
		if first, twice := lines[name]; twice {
			wrong = append(wrong, fmt.Errorf("%s:%d: user %q is there already, in line %d: remove one of them", file, n, name, first))
			continue
		}
		c, _ := bcrypt.Cost([]byte(hash)) // wrongLine looked
		lines[name], u.hashes[name], cost = n, hash, max(cost, c)
	}
	switch {
	case len(wrong) > 0:
		return nil, errors.Join(wrong[:min(len(wrong), 10)]...)
	case len(u.hashes) == 0:
		return nil, fmt.Errorf("%s has no user: htpasswd -B %s NAME adds one", file, filepath.Base(file))
	case len(u.hashes) > maxUsers:
		return nil, fmt.Errorf("%s has %d users, at most %d are allowed: have a proxy tell who asks, see admin.trustedHeader",
			file, len(u.hashes), maxUsers)
	}
	nobody, err := bcrypt.GenerateFromPassword([]byte(rand.Text()), cost)
	u.nobody = string(nobody)
	return u, err
}

// wrongLine returns what is wrong with a user and a hash, and what to type; "" = nothing.
func wrongLine(name, hash, file string) string {
	if name == "" || hash == "" || len(name) > 255 || strings.ContainsFunc(name, unicode.IsControl) {
		return "found no line NAME:HASH; htpasswd -B " + filepath.Base(file) + " NAME writes one"
	}
	again := fmt.Sprintf("; set the password anew: htpasswd -B %s %s", filepath.Base(file), shellWord(name))
	kind := ""
	switch {
	case strings.HasPrefix(hash, "$2"):
		cost, err := bcrypt.Cost([]byte(hash))
		switch {
		case err != nil || len(hash) != 60:
			return fmt.Sprintf("the bcrypt hash of user %q is not whole", name) + again
		case cost > maxCost:
			return fmt.Sprintf("the bcrypt hash of user %q has cost %d, which would take seconds for each login; at most %d is allowed", name, cost, maxCost) + again
		}
		return ""
	case strings.HasPrefix(hash, "$apr1$"), strings.HasPrefix(hash, "$1$"):
		kind = "an MD5 hash, as htpasswd writes it without -B"
	case strings.HasPrefix(hash, "{SHA}"), strings.HasPrefix(hash, "{SSHA}"):
		kind = "a SHA-1 hash"
	case strings.HasPrefix(hash, "$5$"), strings.HasPrefix(hash, "$6$"):
		kind = "a crypt(3) hash of SHA-2"
	case len(hash) == 13:
		kind = "a crypt(3) hash, or a password in the clear"
	default:
		kind = "something that is no bcrypt hash, perhaps a password in the clear"
	}
	return fmt.Sprintf("user %q has %s; only bcrypt is slow enough to guess", name, kind) + again
}

func shellWord(name string) string {
	if strings.ContainsFunc(name, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("._@-+", r)
	}) {
		return "'" + strings.ReplaceAll(name, "'", `'\''`) + "'"
	}
	return name
}
