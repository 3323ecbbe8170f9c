package features

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"sigs.k8s.io/yaml"
)

// reviews stands in for the comments of a forge's pull request.
type reviews struct {
	mu       sync.Mutex
	comments []comment
	writes   int
	refused  []string
}

// comment is one comment, as all three forges have it.
type comment struct {
	ID     int    `json:"id"`
	Body   string `json:"body"`
	User   person `json:"user"`
	Author person `json:"author"`
}

type person struct {
	ID    int    `json:"id"`
	Login string `json:"login"`
}

var bots = map[string]person{
	"GitHub": {5, "github-actions[bot]"}, "GitLab": {5, "project_1_bot"}, "Forgejo": {5, "forgejo-actions"},
}

// ServeHTTP lists, adds and changes comments.
func (f *reviews) serve(bot person) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		defer f.mu.Unlock()
		if !strings.Contains(r.Header.Get("Authorization")+r.Header.Get("PRIVATE-TOKEN"), "secret-token") {
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		var sent comment
		if r.Method != http.MethodGet {
			f.writes++
			if err := json.NewDecoder(r.Body).Decode(&sent); err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
		}
		list := strings.HasSuffix(r.URL.Path, "/7/comments") || strings.HasSuffix(r.URL.Path, "/7/notes")
		i := slices.IndexFunc(f.comments, func(c comment) bool { return strings.HasSuffix(r.URL.Path, fmt.Sprintf("/%d", c.ID)) })
		switch {
		case r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/user"):
			_ = json.NewEncoder(w).Encode(bot)
		case r.Method == http.MethodGet && list:
			_ = json.NewEncoder(w).Encode(f.comments)
		case r.Method == http.MethodPost && list:
			f.comments = append(f.comments, comment{ID: 100 + len(f.comments), Body: sent.Body, User: bot, Author: bot})
		case (r.Method == http.MethodPatch || r.Method == http.MethodPut) && i >= 0 && f.comments[i].User == bot:
			f.comments[i].Body = sent.Body
		default:
			f.refused = append(f.refused, r.Method+" "+r.URL.Path)
			http.Error(w, "no such thing", http.StatusNotFound)
		}
	}
}

// runWorkflow runs the scripts of a workflow of examples/ci twice, as its forge would, but for
// those that install Ingot and that validate.
func runWorkflow(ctx context.Context, of string) error {
	w := siteOf(ctx)
	w.reviews = &reviews{comments: []comment{{ID: 1, Body: "<!-- ingot plan -->\nmine!", User: person{9, "mallory"}, Author: person{9, "mallory"}}}}
	server := httptest.NewServer(w.reviews.serve(bots[of]))
	defer server.Close()
	scripts, err := workflowScripts("../examples/ci/" + strings.ToLower(of) + ".yaml")
	if err != nil {
		return err
	}
	temp := filepath.Join(w.dir, "runner")
	if err := os.MkdirAll(temp, 0o755); err != nil {
		return err
	}
	for range 2 {
		for _, s := range scripts {
			if err := runScript(ctx, s, temp, server.URL); err != nil {
				return err
			}
		}
	}
	return nil
}

type workflowScript struct {
	text string
	env  map[string]string
}

func workflowScripts(file string) ([]workflowScript, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var read struct {
		Jobs map[string]struct {
			Steps []struct {
				Name, Run string
				Env       map[string]string
			}
		}
		Ingot struct{ Script []string }
	}
	if err := yaml.Unmarshal(data, &read); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	var all []workflowScript
	for _, step := range read.Jobs["plan"].Steps {
		if step.Run != "" && step.Name != "Install" && step.Name != "Validate" {
			all = append(all, workflowScript{step.Run, step.Env})
		}
	}
	for _, script := range read.Ingot.Script {
		if !strings.HasPrefix(script, "ingot validate") {
			all = append(all, workflowScript{script, nil})
		}
	}
	if len(all) != 3 {
		return nil, fmt.Errorf("%s has %d scripts, want those that plan, comment and judge", file, len(all))
	}
	return all, nil
}

var workflowExpressions = map[string]string{
	"${{ github.base_ref }}": gitBranch, "${{ github.token }}": "secret-token", "${{ github.event.pull_request.number }}": "7",
}

// runScript runs one script as the forge would.
func runScript(ctx context.Context, s workflowScript, temp, api string) error {
	output := filepath.Join(temp, "output")
	env := []string{
		"PATH=" + filepath.Dir(ingotProgram) + ":" + os.Getenv("PATH"), "HOME=" + temp,
		"RUNNER_TEMP=" + temp, "GITHUB_OUTPUT=" + output, "GITHUB_STEP_SUMMARY=" + filepath.Join(temp, "summary"),
		"GITHUB_API_URL=" + api, "GITHUB_REPOSITORY=metal/fleet",
		"CI_API_V4_URL=" + api, "CI_PROJECT_ID=3", "CI_MERGE_REQUEST_IID=7", "CI_MERGE_REQUEST_TARGET_BRANCH_NAME=" + gitBranch,
		"INGOT_NOTE_TOKEN=secret-token",
	}
	for name, value := range s.env {
		said, known := workflowExpressions[value]
		switch {
		case value == "${{ steps.plan.outputs.code }}":
			lines, err := os.ReadFile(output)
			if err != nil {
				return err
			}
			all := strings.Split(strings.TrimSpace(string(lines)), "\n")
			said = strings.TrimPrefix(all[len(all)-1], "code=")
		case !known:
			return fmt.Errorf("nobody knows what %s is", value)
		}
		env = append(env, name+"="+said)
	}
	cmd := exec.CommandContext(ctx, "bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", s.text)
	cmd.Dir, cmd.Env = siteOf(ctx).proposal, env
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s\n%s", err, s.text, out)
	}
	return nil
}

func oneComment(ctx context.Context, want string) error {
	f := siteOf(ctx).reviews
	var errs []error
	if len(f.refused) > 0 {
		errs = append(errs, fmt.Errorf("refused: %v", f.refused))
	}
	if len(f.comments) != 2 || f.writes != 2 {
		errs = append(errs, fmt.Errorf("there are %d comments after %d writes, want two with the stranger's, after two", len(f.comments), f.writes))
	}
	if last := f.comments[len(f.comments)-1].Body; !strings.Contains(last, want) {
		errs = append(errs, fmt.Errorf("the comment does not say %q:\n%s", want, last))
	}
	return errors.Join(errs...)
}
