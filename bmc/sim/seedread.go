package sim

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/mail"
	"regexp"
	"strings"

	"ingot/model"
)

// What a script of vendor-data says of where and as whom it reports.
var (
	reportURL  = regexp.MustCompile(`(?m)^url='([^']+)'$`)
	reportUUID = regexp.MustCompile(`"systemUUID":"([^"]+)"`)
)

// seedReport returns where the system of a disk says that it is up, as its seed has it, nil if
// nothing in that says so.
func seedReport(ctx context.Context, seed *model.InstallSeed) *bootStateRun {
	if seed == nil {
		return nil
	}
	for _, text := range seed.Files {
		for _, part := range seedTexts(text) {
			if run := reportIn(ctx, part); run != nil {
				return run
			}
		}
	}
	return nil
}

// seedTexts are the documents in a file of a seed: a member of JSON, the parts of a MIME
// message, or the file as it stands.
func seedTexts(text string) []string {
	var vendor map[string]any
	if json.Unmarshal([]byte(text), &vendor) == nil {
		if own, ok := vendor["cloud-init"].(string); ok {
			return seedTexts(own)
		}
		return []string{text}
	}
	m, err := mail.ReadMessage(strings.NewReader(text))
	if err != nil {
		return []string{text}
	}
	kind, params, err := mime.ParseMediaType(m.Header.Get("Content-Type"))
	if err != nil || !strings.HasPrefix(kind, "multipart/") {
		return []string{text}
	}
	return mimeTexts(multipart.NewReader(m.Body, params["boundary"]))
}

func mimeTexts(r *multipart.Reader) (texts []string) {
	for {
		part, err := r.NextPart()
		if errors.Is(err, io.EOF) || err != nil {
			return texts
		}
		raw, _ := io.ReadAll(part)
		if part.Header.Get("Content-Transfer-Encoding") == "base64" {
			raw, _ = base64.StdEncoding.DecodeString(strings.ReplaceAll(string(raw), "\n", ""))
		}
		texts = append(texts, string(raw))
	}
}

// reportIn returns what one document says: Ignition by a file, vendor-data by a script.
func reportIn(ctx context.Context, text string) *bootStateRun {
	if config, err := parseIgnition(ctx, []byte(text), noFetch); err == nil {
		p, err := config.program(ctx, noFetch)
		if err != nil {
			return nil
		}
		return p.bootState
	}
	url, uuid := reportURL.FindStringSubmatch(text), reportUUID.FindStringSubmatch(text)
	if url == nil || uuid == nil {
		return nil
	}
	return &bootStateRun{url: url[1], uuid: uuid[1], cloudInit: strings.Contains(text, "/run/cloud-init/result.json")}
}

// noFetch fetches nothing: what a seed says stands in it.
func noFetch(context.Context, string) ([]byte, error) {
	return nil, errors.New("a seed is read without the network")
}
