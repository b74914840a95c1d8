package main

import (
	"testing"
	"time"

	"tailscale.com/tailcfg"
	"tailscale.com/types/key"
)

func TestAdmit(t *testing.T) {
	mine, other := key.NewMachine().Public(), key.NewMachine().Public()
	now := time.Now()
	withKey := tailcfg.RegisterRequest{Auth: &tailcfg.RegisterResponseAuth{AuthKey: "k"}}
	logout := tailcfg.RegisterRequest{Expiry: time.Unix(123, 0)}
	known := func(change func(*member)) *member { m := &member{machine: mine}; change(m); return m }

	for _, c := range []struct {
		name  string
		req   tailcfg.RegisterRequest
		known *member
		want  verdict
	}{
		{"a stranger with a join key", withKey, nil, joinIt},
		{"a stranger without", tailcfg.RegisterRequest{}, nil, loginIt},
		{"a stranger who waits for a login", tailcfg.RegisterRequest{Followup: "http://x/login/y"}, nil, waitIt},
		{"a stranger who logs out", logout, nil, refuseIt},
		{"a member that restarted", tailcfg.RegisterRequest{}, known(func(*member) {}), againIt},
		{"a member that logs out", logout, known(func(*member) {}), leaveIt},
		{"an expired member, even with a join key", withKey, known(func(m *member) { m.expiredAt = now }), renewIt},
		{"a member expired for good, with a join key", withKey, known(func(m *member) { m.expiredAt, m.expiredForGood = now, true }), joinIt},
		{"a member expired for good, without", tailcfg.RegisterRequest{}, known(func(m *member) { m.expiredAt, m.expiredForGood = now, true }), renewIt},
		{"a removed member that was expired for good", withKey, known(func(m *member) { m.expiredForGood, m.removed = true, true }), renewIt},
		{"a removed member, even with a join key", withKey, known(func(m *member) { m.removed = true }), renewIt},
		{"another machine with a member's node key", withKey, known(func(m *member) { m.machine = other }), refuseIt},
	} {
		t.Run(c.name, func(t *testing.T) {
			find := func(key.NodePublic) (member, bool) {
				if c.known == nil {
					return member{}, false
				}
				return *c.known, true
			}
			if got, _ := admit(&c.req, mine, find, now); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}
