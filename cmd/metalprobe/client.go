package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"ingot/cmd/metalprobe/install"
)

// client posts reports to Ingot. The path of a URL holds a token, so no error shows more
// than the host.
type client struct{ http *http.Client }

func newClient(timeout time.Duration) client {
	return client{&http.Client{
		Timeout: timeout,
		// A report goes to the server that it was addressed to, or nowhere.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// post sends body as JSON. Only 200 and 201 are success.
func (c client) post(ctx context.Context, address string, body any) error {
	content, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("encode report: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(content))
	if err != nil {
		return errors.New("the URL of the registry cannot be used") // err would show it
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := c.http.Do(request)
	if err != nil {
		return fmt.Errorf("post to %s: %w", request.URL.Host, install.WithoutURL(err))
	}
	defer response.Body.Close()
	// The answer is read to its end so that the connection can be reused.
	answer, _ := io.ReadAll(io.LimitReader(response.Body, 64<<10))
	if response.StatusCode != http.StatusOK && response.StatusCode != http.StatusCreated {
		return fmt.Errorf("post to %s: answered %s: %s", request.URL.Host, response.Status, firstLine(answer))
	}
	return nil
}

// firstLine returns up to 200 bytes of an answer, for a log.
func firstLine(answer []byte) string {
	line, _, _ := strings.Cut(strings.TrimSpace(string(answer)), "\n")
	return strings.ToValidUTF8(line[:min(len(line), 200)], "")
}
