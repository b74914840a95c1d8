package main

import (
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"
)

// joinKey is what a key grants and what became of it; its secret is nowhere in it.
type joinKey struct {
	ID        string     `json:"id"`
	Reusable  bool       `json:"reusable"`
	Ephemeral bool       `json:"ephemeral"`
	Tags      []string   `json:"tags"`
	CreatedAt time.Time  `json:"createdAt"`
	ExpiresAt time.Time  `json:"expiresAt"`
	RevokedAt *time.Time `json:"revokedAt,omitempty"`
	Uses      int        `json:"uses"`
	State     string     `json:"state"`
}

// refusal returns why a key does not admit a node, as of now; empty means that it does.
//
//	revoked            → revoked
//	past its time      → expired
//	one-time and used  → used
func (k *joinKey) refusal(now time.Time) string {
	switch {
	case k.RevokedAt != nil:
		return "revoked"
	case !now.Before(k.ExpiresAt):
		return "expired"
	case !k.Reusable && k.Uses > 0:
		return "used"
	}
	return ""
}

// view is a copy that shares nothing with the registry, with its state as of now.
func (k *joinKey) view(now time.Time) joinKey {
	v := *k
	v.Tags = slices.Clone(k.Tags)
	v.State = k.refusal(now)
	if v.State == "" {
		v.State = "live"
	}
	return v
}

const maxKeys = 10_000

var errTooManyKeys = errors.New("too many join keys")

// keyring holds the join keys by the hash of their secret; a secret is shown once, by add.
type keyring struct {
	mu   sync.Mutex
	keys map[[sha256.Size]byte]*joinKey
}

func newKeyring() *keyring {
	return &keyring{keys: map[[sha256.Size]byte]*joinKey{}}
}

// add makes a key with the given grants and expiry, and returns it with its secret.
func (r *keyring) add(grants joinKey, now time.Time) (joinKey, string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.keys) >= maxKeys {
		return joinKey{}, "", errTooManyKeys
	}
	k := grants
	k.ID = "k" + strings.ToLower(rand.Text()[:12])
	k.CreatedAt = now
	secret := "tskey-auth-" + k.ID + "-" + rand.Text()
	r.keys[sha256.Sum256([]byte(secret))] = &k
	return k.view(now), secret, nil
}

// list is every key ever made, oldest first.
func (r *keyring) list(now time.Time) []joinKey {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make([]joinKey, 0, len(r.keys))
	for _, k := range r.keys {
		all = append(all, k.view(now))
	}
	slices.SortFunc(all, func(a, b joinKey) int {
		if c := a.CreatedAt.Compare(b.CreatedAt); c != 0 {
			return c
		}
		return strings.Compare(a.ID, b.ID)
	})
	return all
}

// revoke makes a key useless from now on, for good; nodes that joined with it stay. It reports whether the key exists.
func (r *keyring) revoke(id string, now time.Time) (joinKey, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, k := range r.keys {
		if k.ID != id {
			continue
		}
		if k.RevokedAt == nil {
			k.RevokedAt = &now
		}
		return k.view(now), true
	}
	return joinKey{}, false
}

// redeem counts a use of the key with this secret, or returns why it is refused.
// The tags that a node requests must all be the key's own.
func (r *keyring) redeem(secret string, tags []string, now time.Time) (joinKey, string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	k := r.keys[sha256.Sum256([]byte(secret))]
	if k == nil {
		return joinKey{}, "invalid key: unknown join key"
	}
	if why := k.refusal(now); why != "" {
		return joinKey{}, "invalid key: join key " + k.ID + " is " + why
	}
	for _, tag := range tags {
		if !slices.Contains(k.Tags, tag) {
			return joinKey{}, "requested tags [" + tag + "] are invalid or not permitted"
		}
	}
	k.Uses++
	return k.view(now), ""
}
