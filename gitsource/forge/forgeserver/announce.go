package forgeserver

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Announce has pushes announced at an address from now on.
func (f *Forge) Announce(address string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.hooks = append(f.hooks, address)
}

// Answers are the codes with which announcements were answered.
func (f *Forge) Answers() []int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.answers)
}

// watch announces that branches moved: tests write to the repository without a push.
func (f *Forge) watch() {
	heads := make(map[string]string)
	for {
		for _, branch := range f.branches {
			head := f.repo.Head(branch)
			if before := heads[branch]; before != head && head != "" {
				f.announce(branch, before, head)
			}
			heads[branch] = head
		}
		select {
		case <-f.stop:
			return
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func (f *Forge) announce(branch, before, after string) {
	f.mu.Lock()
	hooks, secret := slices.Clone(f.hooks), f.secret
	f.mu.Unlock()
	body, err := json.Marshal(f.event(branch, before, after))
	if err != nil {
		return // cannot be: it is made of text
	}
	for _, address := range hooks {
		code := f.post(address, secret, body)
		f.mu.Lock()
		f.answers = append(f.answers, code)
		f.mu.Unlock()
	}
}

// SetSecret changes what announcements are signed with.
func (f *Forge) SetSecret(secret string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.secret = secret
}

// post makes one announcement, which is not repeated. It returns 0 without an answer.
func (f *Forge) post(address, secret string, body []byte) (code int) {
	req, err := http.NewRequest(http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return 0
	}
	req.Header.Set("Content-Type", "application/json")
	f.sign(req.Header, secret, body)
	res, err := f.web.Do(req)
	if err != nil {
		return 0
	}
	defer res.Body.Close()
	return res.StatusCode
}

func (f *Forge) event(branch, before, after string) map[string]any {
	pages, ssh := f.root+"/"+f.project, "git@127.0.0.1:"+f.project+".git"
	if before == "" {
		before = strings.Repeat("0", len(after))
	}
	event := map[string]any{"ref": "refs/heads/" + branch, "before": before, "after": after, "commits": []any{}}
	if f.kind == "gitlab" {
		event["object_kind"], event["event_name"], event["checkout_sha"] = "push", "push", after
		event["project"] = map[string]any{"path_with_namespace": f.project, "git_http_url": f.URL, "git_ssh_url": ssh, "web_url": pages}
		event["repository"] = map[string]any{"name": "fleet", "url": ssh, "git_http_url": f.URL, "git_ssh_url": ssh, "homepage": pages}
		return event
	}
	event["repository"] = map[string]any{"full_name": f.project, "clone_url": f.URL, "ssh_url": ssh, "html_url": pages}
	return event
}

// sign sets the headers by which the receiver knows the sender.
func (f *Forge) sign(h http.Header, secret string, body []byte) {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(body)
	sum := hex.EncodeToString(mac.Sum(nil))
	switch f.kind {
	case "gitlab":
		h.Set("X-Gitlab-Event", "Push Hook")
		h.Set("X-Gitlab-Token", secret)
		return
	case "forgejo":
		h.Set("X-Forgejo-Event", "push")
		h.Set("X-Forgejo-Signature", sum)
		h.Set("X-Gitea-Event", "push")
		h.Set("X-Gitea-Signature", sum)
	case "gitea":
		h.Set("X-Gitea-Event", "push")
		h.Set("X-Gitea-Signature", sum)
	}
	h.Set("X-GitHub-Event", "push")
	h.Set("X-Hub-Signature-256", "sha256="+sum)
}
