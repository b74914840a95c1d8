package main

import (
	"fmt"
	"net/http"
	"regexp"
	"time"
)

const (
	defaultExpirySeconds = 3600
	maxExpirySeconds     = 90 * 24 * 3600
	maxTags              = 50
)

var tagPattern = regexp.MustCompile(`^tag:[a-zA-Z][a-zA-Z0-9-]{0,49}$`)

// checkTags finds the first tag that is none.
func checkTags(tags []string) *fault {
	if len(tags) > maxTags {
		return &fault{Field: "tags", Message: fmt.Sprintf("%d tags", len(tags)), Fix: fmt.Sprintf("give at most %d", maxTags)}
	}
	for i, tag := range tags {
		if !tagPattern.MatchString(tag) {
			return &fault{Field: fmt.Sprintf("tags[%d]", i), Message: fmt.Sprintf("%q is not a tag", tag),
				Fix: "write tag:name, with letters, digits and dashes, a letter first"}
		}
	}
	return nil
}

// addKey makes a join key; its answer is the only place that ever shows the secret.
func (c *control) addKey(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Reusable      bool     `json:"reusable"`
		Ephemeral     bool     `json:"ephemeral"`
		Tags          []string `json:"tags"`
		ExpirySeconds *int     `json:"expirySeconds"`
		Dialect       dialect  `json:"dialect"`
	}
	if !readBody(w, r, &body) {
		return
	}
	seconds := defaultExpirySeconds
	if body.ExpirySeconds != nil {
		seconds = *body.ExpirySeconds
	}
	f := checkTags(body.Tags)
	if seconds < 1 || seconds > maxExpirySeconds {
		f = &fault{Field: "expirySeconds", Message: fmt.Sprintf("%d seconds", seconds), Fix: fmt.Sprintf("give 1 to %d", maxExpirySeconds)}
	}
	if body.Dialect != "" && body.Dialect != vendorDialect && body.Dialect != headscaleDialect {
		f = &fault{Field: "dialect", Message: fmt.Sprintf("%q is not a dialect", body.Dialect), Fix: "give vendor or headscale"}
	}
	if f != nil {
		fail(w, http.StatusUnprocessableEntity, *f)
		return
	}
	now := time.Now()
	k, secret, err := c.keys.add(joinKey{
		Reusable: body.Reusable, Ephemeral: body.Ephemeral, Tags: append([]string{}, body.Tags...),
		ExpiresAt: now.Add(time.Duration(seconds) * time.Second),
	}, body.Dialect, now)
	if err != nil {
		fail(w, http.StatusTooManyRequests, fault{Field: "keys", Message: err.Error(), Fix: "restart the tailnet"})
		return
	}
	c.log.Info("join key added", "joinKey", k.ID, "reusable", k.Reusable, "ephemeral", k.Ephemeral, "tags", k.Tags)
	reply(w, http.StatusCreated, struct {
		joinKey
		Key string `json:"key"`
	}{k, secret})
}

func (c *control) listKeys(w http.ResponseWriter, _ *http.Request) {
	reply(w, http.StatusOK, map[string]any{"keys": c.keys.list(time.Now())})
}

// revokeKey ends a join key; the nodes that joined with it stay.
func (c *control) revokeKey(w http.ResponseWriter, r *http.Request) {
	c.endKey(w, r, "join key revoked", c.keys.revoke)
}

// forgetKey ends a join key, which is in no list and unknown from now on; the nodes that joined with it stay.
func (c *control) forgetKey(w http.ResponseWriter, r *http.Request) {
	c.endKey(w, r, "join key forgotten", c.keys.forget)
}

func (c *control) endKey(w http.ResponseWriter, r *http.Request, event string, end func(string, time.Time) (joinKey, bool)) {
	id := r.PathValue("id")
	k, ok := end(id, time.Now())
	if !ok {
		fail(w, http.StatusNotFound, fault{Field: "id", Message: "no join key " + id, Fix: "GET /keys lists the ids"})
		return
	}
	c.log.Info(event, "joinKey", id)
	reply(w, http.StatusOK, k)
}
