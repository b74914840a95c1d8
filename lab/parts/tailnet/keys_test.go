package main

import (
	"regexp"
	"testing"
	"time"
)

func TestAKeyIsRefusedInTheWordsOfItsServer(t *testing.T) {
	now := time.Now()
	for _, c := range []struct {
		name              string
		end               func(*keyring, string, string)
		vendor, headscale string
	}{
		{"good", func(*keyring, string, string) {}, `^$`, `^$`},
		{"used", func(r *keyring, _, secret string) { r.redeem(secret, nil, now) }, `^invalid key: join key k\w+ is used$`, `^authkey already used$`},
		{"expired", func(r *keyring, _, _ string) { now = now.Add(time.Hour) }, `^invalid key: join key k\w+ is expired$`, `^authkey expired$`},
		{"revoked", func(r *keyring, id, _ string) { r.revoke(id, now) }, `^invalid key: join key k\w+ is revoked$`, `^authkey revoked$`},
		{"forgotten", func(r *keyring, id, _ string) { r.forget(id, now) }, `^invalid key: unknown join key$`, `^invalid pre auth key$`},
	} {
		for form, want := range map[dialect]string{vendorDialect: c.vendor, headscaleDialect: c.headscale} {
			t.Run(c.name+" of "+string(form), func(t *testing.T) {
				r := newKeyring()
				k, secret, err := r.add(joinKey{ExpiresAt: now.Add(time.Hour)}, form, now)
				if err != nil {
					t.Fatal(err)
				}
				c.end(r, k.ID, secret)
				if _, why := r.redeem(secret, nil, now); !regexp.MustCompile(want).MatchString(why) {
					t.Errorf("refused with %q, want %s", why, want)
				}
				if n := len(r.list(now)); (n == 0) != (c.name == "forgotten") {
					t.Errorf("%d keys in the list", n)
				}
			})
		}
	}
}
