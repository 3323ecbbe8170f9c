package access

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/crypto/bcrypt"

	"ingot/model/must"
)

// whole is a bcrypt hash as htpasswd writes it, of cost 5.
const whole = "$2y$05$c4WoMPo3SXsafkva.HHa6uXQZWr7oboPiC2bT/r7q1BB8I2s0BRqC"

func TestALineThatIsNoBcryptIsRefusedWithWhatToType(t *testing.T) {
	for name, tc := range map[string]struct{ content, want string }{
		"MD5, as htpasswd writes it without -B": {
			content: "# people\nanna:" + whole + "\nbert:$apr1$0123$abcdefghijklmnopqrstuv\n",
			want:    `users:3: user "bert" has an MD5 hash, as htpasswd writes it without -B; only bcrypt is slow enough to guess; set the password anew: htpasswd -B users bert`,
		},
		"SHA-1": {
			content: "bert:{SHA}0123456789=\n",
			want:    `users:1: user "bert" has a SHA-1 hash; only bcrypt is slow enough to guess; set the password anew: htpasswd -B users bert`,
		},
		"SHA-512 of crypt": {
			content: "bert:$6$salt$0123456789\n",
			want:    `users:1: user "bert" has a crypt(3) hash of SHA-2; only bcrypt is slow enough to guess; set the password anew: htpasswd -B users bert`,
		},
		"crypt": {
			content: "bert:rqXexS6ZhobKA\n",
			want:    `users:1: user "bert" has a crypt(3) hash, or a password in the clear; only bcrypt is slow enough to guess; set the password anew: htpasswd -B users bert`,
		},
		"a password in the clear": {
			content: "bert o'neil:hunter2\n",
			want:    `users:1: user "bert o'neil" has something that is no bcrypt hash, perhaps a password in the clear; only bcrypt is slow enough to guess; set the password anew: htpasswd -B users 'bert o'\''neil'`,
		},
		"half a hash": {
			content: "bert:" + whole[:50] + "\n",
			want:    `users:1: the bcrypt hash of user "bert" is not whole; set the password anew: htpasswd -B users bert`,
		},
		"a hash that takes seconds": {
			content: "bert:$2y$17$" + whole[7:] + "\n",
			want:    `users:1: the bcrypt hash of user "bert" has cost 17, which would take seconds for each login; at most 14 is allowed; set the password anew: htpasswd -B users bert`,
		},
		"a line without a user": {
			content: "hunter2\n",
			want:    "users:1: found no line NAME:HASH; htpasswd -B users NAME writes one",
		},
		"one user twice": {
			content: "anna:" + whole + "\nanna:" + whole + "\n",
			want:    `users:2: user "anna" is there already, in line 1: remove one of them`,
		},
		"nobody": {
			content: "\n# nobody\n",
			want:    "users has no user: htpasswd -B users NAME adds one",
		},
		"several": {
			content: "hunter2\nhunter3\n",
			want:    "users:1: found no line NAME:HASH; htpasswd -B users NAME writes one\nusers:2: found no line NAME:HASH; htpasswd -B users NAME writes one",
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parseUsers("users", []byte(tc.content))
			if err == nil || err.Error() != tc.want {
				t.Errorf("got  %v\nwant %s", err, tc.want)
			}
			if err != nil && strings.Contains(err.Error(), "hunter2") {
				t.Error("the password is shown")
			}
		})
	}
}

func TestWhoIsUnknownIsCheckedAsLongAsWhoIsKnown(t *testing.T) {
	u := must.Get(parseUsers("users", []byte("anna:"+whole+"\r\n  bert:$2b$06$"+whole[7:]+"\n")))(t)
	got := make(map[string]int)
	for _, name := range []string{"anna", "bert", "eve"} {
		hash, known := u.hashOf(name)
		if known == (name == "eve") {
			t.Errorf("%s is known: %t", name, known)
		}
		got[name], _ = bcrypt.Cost([]byte(hash))
	}
	if diff := cmp.Diff(map[string]int{"anna": 5, "bert": 6, "eve": 6}, got); diff != "" {
		t.Errorf("costs (-want +got):\n%s", diff)
	}
}
