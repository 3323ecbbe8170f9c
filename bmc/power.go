package bmc

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"ingot/model"
)

// trustETag is how long an ETag is believed to tell that nothing changed before
// the whole resource is read again: a BMC whose ETag does not cover the power
// state would otherwise show the same for ever.
const trustETag = 5 * time.Minute

// Power reads the power state by exactly one GET, once there is a session.
func (p *Pool) Power(ctx context.Context, t model.SystemTarget) (model.Power, error) {
	c, err := p.client(ctx, t.BMC)
	if err != nil {
		return "", err
	}
	power, err := c.power(ctx, t.URI)
	if err != nil {
		return "", fmt.Errorf("read power state: %w", err)
	}
	return power, nil
}

func (c *client) power(ctx context.Context, uri string) (model.Power, error) {
	s := c.state(uri)
	var headers []header
	if s.mayAskETag(c.opts.Clock()) {
		headers = []header{{"If-None-Match", s.etag}}
	}
	a, err := c.get(ctx, uri, headers...)
	if err != nil {
		return "", err
	}
	if a.status == http.StatusNotModified {
		return s.power, nil
	}
	// Two fields of a hundred: gofish's whole system takes five times as long.
	var sys struct {
		ETag       string `json:"@odata.etag"`
		PowerState string
	}
	if err := json.Unmarshal(a.body, &sys); err != nil {
		return "", c.unreadable(uri, err)
	}
	power, etag := powerOf(sys.PowerState), a.etag(sys.ETag)
	c.learn(uri, func(s *systemState) {
		if s.etag != "" && s.etag == etag && s.power != power {
			s.fickle = true
		}
		s.etag, s.power, s.polled = etag, power, c.opts.Clock()
	})
	return power, nil
}

// mayAskETag reports whether "not modified" can be believed to mean that the
// power state is the one that is known.
func (s *systemState) mayAskETag(now time.Time) bool {
	return s.etag != "" && !s.fickle && s.power.Settled() &&
		now.Sub(s.polled) < trustETag && now.Sub(s.moved) >= trustETag
}
