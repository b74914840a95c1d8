package main

import (
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
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

// dialect is the control server whose form a join key has, and whose words refuse it.
type dialect string

const (
	vendorDialect    dialect = "vendor"
	headscaleDialect dialect = "headscale"
)

const headscalePrefix = "hskey-auth-"

// newSecret makes the secret of a key.
func (d dialect) newSecret(id string) string {
	if d == headscaleDialect {
		var text [38]byte
		rand.Read(text[:])
		return fmt.Sprintf("%s%x-%x", headscalePrefix, text[:6], text[6:])
	}
	return "tskey-auth-" + id + "-" + rand.Text()
}

// refusalText is why a node may not join with this secret, in the words of its server; the key is nil if it is unknown.
func refusalText(secret string, k *joinKey, why string) string {
	isHeadscale := strings.HasPrefix(secret, headscalePrefix)
	switch {
	case isHeadscale && k == nil:
		return "invalid pre auth key"
	case isHeadscale && why == "used":
		return "authkey already used"
	case isHeadscale:
		return "authkey " + why
	case k == nil:
		return "invalid key: unknown join key"
	}
	return "invalid key: join key " + k.ID + " is " + why
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
func (r *keyring) add(grants joinKey, form dialect, now time.Time) (joinKey, string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.keys) >= maxKeys {
		return joinKey{}, "", errTooManyKeys
	}
	k := grants
	k.ID = "k" + strings.ToLower(rand.Text()[:12])
	k.CreatedAt = now
	secret := form.newSecret(k.ID)
	r.keys[sha256.Sum256([]byte(secret))] = &k
	return k.view(now), secret, nil
}

// list is every key that was made and not forgotten, oldest first.
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
	return r.end(id, now, func(_ [sha256.Size]byte, k *joinKey) {
		if k.RevokedAt == nil {
			k.RevokedAt = &now
		}
	})
}

// forget drops a key, so that its secret is unknown; nodes that joined with it stay. It reports whether the key existed.
func (r *keyring) forget(id string, now time.Time) (joinKey, bool) {
	return r.end(id, now, func(hash [sha256.Size]byte, _ *joinKey) { delete(r.keys, hash) })
}

func (r *keyring) end(id string, now time.Time, end func([sha256.Size]byte, *joinKey)) (joinKey, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for hash, k := range r.keys {
		if k.ID == id {
			end(hash, k)
			return k.view(now), true
		}
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
		return joinKey{}, refusalText(secret, nil, "")
	}
	if why := k.refusal(now); why != "" {
		return joinKey{}, refusalText(secret, k, why)
	}
	for _, tag := range tags {
		if !slices.Contains(k.Tags, tag) {
			return joinKey{}, "requested tags [" + tag + "] are invalid or not permitted"
		}
	}
	k.Uses++
	return k.view(now), ""
}
