package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// client posts reports to Ingot. Addresses hold a token in their path, so that
// no error of it shows more than the host.
type client struct{ http *http.Client }

func newClient(timeout time.Duration) client {
	return client{&http.Client{
		Timeout: timeout,
		// A report goes where it was meant to go, or nowhere.
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
		return errors.New("the address of the registry cannot be used") // err shows it
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := c.http.Do(request)
	if err != nil {
		return fmt.Errorf("post to %s: %w", request.URL.Host, withoutAddress(err))
	}
	defer response.Body.Close()
	// The answer is read to its end so that the connection can be used again.
	answer, _ := io.ReadAll(io.LimitReader(response.Body, 64<<10))
	if response.StatusCode != http.StatusOK && response.StatusCode != http.StatusCreated {
		return fmt.Errorf("post to %s: answered %s: %s", request.URL.Host, response.Status, firstLine(answer))
	}
	return nil
}

// withoutAddress returns what is below the error of net/http that shows the whole
// address.
func withoutAddress(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err
	}
	return err
}

// firstLine returns up to 200 bytes of an answer, for a log.
func firstLine(answer []byte) string {
	line, _, _ := strings.Cut(strings.TrimSpace(string(answer)), "\n")
	return strings.ToValidUTF8(line[:min(len(line), 200)], "")
}
