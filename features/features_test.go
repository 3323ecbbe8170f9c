package features

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cucumber/godog"
	"golang.org/x/sys/unix"

	"ingot/features/internal/rig"
)

// scenarios is how many scenarios there are, each row of an outline counted. A
// run of fewer fails: a tag or a path that is wrong would else pass unseen.
var scenarios = map[storeKind]int{embeddedStore: 473 - longScenarios, redisStore: 478}

// longScenarios is how many of them only FEATURES_LONG runs on the embedded store.
const longScenarios = 169

const concurrency = 10

var ingotProgram string

func TestMain(m *testing.M) {
	code, err := buildAndRun(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "features:", err)
		code = 1
	}
	os.Exit(code)
}

func buildAndRun(m *testing.M) (code int, err error) {
	// what a killed program leaves behind becomes ours, see program.end
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return 1, fmt.Errorf("take in orphans: %w", err)
	}
	dir, err := os.MkdirTemp("", "ingot-features-")
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	ingotProgram = filepath.Join(dir, "ingot")
	if err := rig.Build(ingotProgram, "ingot/cmd/ingot"); err != nil {
		return 1, err
	}
	code = m.Run()
	sayFailed()
	return code, nil
}

var failed struct {
	sync.Mutex
	why []string
}

// sayFailed says last of all which scenarios failed: of a long log often only the end
// is kept.
func sayFailed() {
	failed.Lock()
	defer failed.Unlock()
	for _, why := range failed.why {
		fmt.Fprintf(os.Stderr, "FAILED: %.2000s\n", why)
	}
}

func TestFeaturesOnEmbeddedStore(t *testing.T) {
	t.Parallel() // with the kill points and the walk
	run(t, embeddedStore)
}

func TestFeaturesOnRedis(t *testing.T) {
	if _, err := exec.LookPath("redis-server"); err != nil {
		t.Fatal("the program redis-server is needed for these tests: install it (Debian, Ubuntu: apt-get install redis-server)")
	}
	run(t, redisStore)
}

const realGitTag = "@git"

func servedByGit(scenario *godog.Scenario) bool {
	for _, tag := range scenario.Tags {
		if tag.Name == realGitTag {
			return true
		}
	}
	return false
}

func run(t *testing.T, store storeKind) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Fatal("the program git is needed for these tests: install it (Debian, Ubuntu: apt-get install git)")
	}
	some := os.Getenv("FEATURES") // such as claim.feature:8, while one is being worked on
	var began atomic.Int64
	suite := godog.TestSuite{
		Name: "features on " + string(store),
		ScenarioInitializer: func(sc *godog.ScenarioContext) {
			sc.Before(func(ctx context.Context, scenario *godog.Scenario) (context.Context, error) {
				began.Add(1)
				w, err := newSite(scenario.Name, store)
				if err == nil && servedByGit(scenario) {
					err = w.serve(true)
				}
				return context.WithValue(ctx, siteKey{}, w), err
			})
			sc.StepContext().Before(noteBeforeAction)
			sc.After(endScenario)
			defineSteps(sc)
		},
		Options: &godog.Options{
			Format: "progress", NoColors: true, Paths: []string{cmp.Or(some, ".")}, Tags: store.tags(),
			Strict: true, Concurrency: concurrency, TestingT: t,
		},
	}
	if suite.Run() != 0 {
		t.Error("scenarios failed on " + string(store))
	}
	want := scenarios[store]
	if store == embeddedStore && long() {
		want = longScenarios
	}
	if n := int(began.Load()); n == 0 || n != want && some == "" {
		t.Errorf("%d scenarios ran, but there are %d: change that number if this is meant", n, want)
	}
}
