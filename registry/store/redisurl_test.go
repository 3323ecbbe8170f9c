package store

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseRedisURL(t *testing.T) {
	type parsed struct {
		Addrs        []string
		User         string
		DB           int
		Master       string
		Cluster, TLS bool
		ServerName   string
	}
	cases := map[string]parsed{
		"redis://localhost":             {Addrs: []string{"localhost:6379"}},
		"redis://":                      {Addrs: []string{"localhost:6379"}},
		"redis://m%40e@10.0.0.1:7000/3": {Addrs: []string{"10.0.0.1:7000"}, User: "m@e", DB: 3},
		"redis://me:@[::1]":             {Addrs: []string{"[::1]:6379"}, User: "me"},
		"rediss://u@redis.example.com?db=2": {
			Addrs: []string{"redis.example.com:6379"}, User: "u", DB: 2,
			TLS: true, ServerName: "redis.example.com",
		},
		"unix:///run/redis/redis.sock?db=1": {Addrs: []string{"/run/redis/redis.sock"}, DB: 1},
		"redis+sentinel://a,b:1234/main/5":  {Addrs: []string{"a:26379", "b:1234"}, Master: "main", DB: 5},
		"redis-sentinel://u@a/main":         {Addrs: []string{"a:26379"}, User: "u", Master: "main"},
		"rediss-cluster://u@a,b:7001,[2001:db8::1]:70": {
			Addrs: []string{"a:6379", "b:7001", "[2001:db8::1]:70"}, User: "u",
			Cluster: true, TLS: true,
		},
	}
	for url, want := range cases {
		t.Run(url, func(t *testing.T) {
			o, err := parseRedisURL(url)
			if err != nil {
				t.Fatal(err)
			}
			got := parsed{o.Addrs, o.Username, o.DB, o.MasterName, o.IsClusterMode, o.TLSConfig != nil, ""}
			if o.TLSConfig != nil {
				got.ServerName = o.TLSConfig.ServerName
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if !o.ContextTimeoutEnabled || o.Protocol != 3 || o.MaintNotificationsConfig.Mode != "disabled" {
				t.Error("the settings of the survey are missing")
			}
		})
	}
}

func TestWrongRedisURLIsRefusedWithoutShowingIt(t *testing.T) {
	cases := map[string]string{
		"http://u:hunter2@localhost":     "the scheme is not known",
		"hunter2":                        "the scheme is not known",
		"redis://u%zz@localhost/hunter2": "write it %25",
		"redis://u:hunter2@localhost":    "holds a password: put it into a file and name that as redis.passwordFile",
		"redis://u@a,b":                  "several hosts",
		"redis://u@localhost/hunter2":    "must be a number",
		"redis://u@localhost/-1":         "must be a number",
		"redis://u@localhost?x=1":        `option "x" is not known`,
		"redis+sentinel://u@a,b":         "name of the Sentinel master is missing",
		"redis-cluster://u@a/1":          "a cluster has no databases",
	}
	for url, says := range cases {
		t.Run(says, func(t *testing.T) {
			_, err := parseRedisURL(url)
			if err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("got %v, want %q", err, says)
			}
		})
	}
}

// TestExposedRedisIsRefused is X10.
func TestExposedRedisIsRefused(t *testing.T) {
	cases := map[string]bool{
		"redis://localhost":                  true,
		"redis://127.0.0.1:7000":             true,
		"redis://[::1]":                      true,
		"unix:///run/redis.sock":             true,
		"rediss://u@redis.example.com":       true,
		"redis://redis.example.com":          false,
		"redis://u@redis.example.com":        false,
		"rediss://redis.example.com":         false,
		"redis-cluster://localhost,10.0.0.1": false,
		"redis+sentinel://10.0.0.1/main":     false,
	}
	for url, allowed := range cases {
		t.Run(url, func(t *testing.T) {
			o, err := parseRedisURL(url)
			if err != nil {
				t.Fatal(err)
			}
			if o.Username != "" {
				o.Password = "p" // of redis.passwordFile
			}
			if err := checkExposure(o); (err == nil) != allowed {
				t.Errorf("got %v", err)
			}
		})
	}
	_, err := OpenRedis(t.Context(), RedisConfig{URL: "redis://redis.example.com", Log: testLog(t)})
	if err == nil || !strings.Contains(err.Error(), "a password and TLS are needed") {
		t.Errorf("got %v", err)
	}
}

func TestRedisThatIsNotThereIsAClearError(t *testing.T) {
	_, err := OpenRedis(t.Context(), RedisConfig{URL: "unix:///nonexistent/redis.sock", Log: testLog(t)})
	if err == nil || !strings.Contains(err.Error(), "redis at /nonexistent/redis.sock: not reachable") {
		t.Errorf("got %v", err)
	}
}
