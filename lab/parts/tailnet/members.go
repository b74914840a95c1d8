package main

import (
	"slices"
	"strings"
	"sync"
	"time"

	"tailscale.com/tailcfg"
	"tailscale.com/types/key"
)

// member is what this program knows of a node beside the vendor's record of it.
// One node key is one member: a node that joins again gets a new one.
type member struct {
	nodeKey        key.NodePublic
	machine        key.MachinePublic
	id             tailcfg.StableNodeID
	name           string // fully qualified, without the final dot
	joinKeyID      string
	ephemeral      bool
	tags           []string
	joinedAt       time.Time
	lastSeen       time.Time
	streams        int // open map polls; a node is online while it has one
	offline        bool
	waits          bool      // for approval
	expiredAt      time.Time // zero while the node key is good
	expiredForGood bool      // no join key ends it
	removed        bool      // a tombstone: its client learns that its key expired, and no other node sees it
}

func (m member) online() bool  { return m.streams > 0 && !m.offline && !m.removed }
func (m member) expired() bool { return !m.expiredAt.IsZero() }

const maxMembers = 10_000

// roster is the table of members. Every change is announced, so that all nodes get a new netmap.
type roster struct {
	mu       sync.Mutex
	byKey    map[key.NodePublic]*member
	announce func()
}

func newRoster(announce func()) *roster {
	return &roster{byKey: map[key.NodePublic]*member{}, announce: announce}
}

// get is a copy of the member with this node key.
func (r *roster) get(k key.NodePublic) (member, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	m, ok := r.byKey[k]
	if !ok {
		return member{}, false
	}
	return *m, true
}

// all is every member that was not removed, in the order of joining.
func (r *roster) all() []member {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []member
	for _, m := range r.byKey {
		if !m.removed {
			all = append(all, *m)
		}
	}
	slices.SortFunc(all, func(a, b member) int { return strings.Compare(string(a.id), string(b.id)) })
	return all
}

// hasExpiredForGood reports whether a living member of this machine did.
func (r *roster) hasExpiredForGood(machine key.MachinePublic) bool {
	return slices.ContainsFunc(r.all(), func(m member) bool { return m.machine == machine && m.expiredForGood })
}

// isFull reports whether no further node may join.
func (r *roster) isFull() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.byKey) >= maxMembers
}

// admit adds a member under a free name; the member it replaces, if any, leaves its name to it.
func (r *roster) admit(m member, replaces key.NodePublic, hostname, domain string) member {
	r.mu.Lock()
	if old := r.byKey[replaces]; old != nil {
		m.name = old.name
		old.removed = true
	} else {
		m.name = freeName(hostname, domain, r.isTaken)
	}
	r.byKey[m.nodeKey] = &m
	admitted := m
	r.mu.Unlock()
	r.announce()
	return admitted
}

// isTaken reports whether a living member has the name; the caller holds the lock.
func (r *roster) isTaken(name string) bool {
	for _, m := range r.byKey {
		if m.name == name && !m.removed {
			return true
		}
	}
	return false
}

// update applies a change to the living member with this id and returns the result, or reports that there is none.
func (r *roster) update(id tailcfg.StableNodeID, change func(*member)) (member, bool) {
	return r.change(func(m *member) bool { return m.id == id && !m.removed }, change)
}

// updateMember applies a change to this very member, removed or not; one that was forgotten is none, even if its node
// key has joined again.
func (r *roster) updateMember(same member, change func(*member)) (member, bool) {
	return r.change(func(m *member) bool { return m.nodeKey == same.nodeKey && m.id == same.id }, change)
}

// forget is a change after which no table has the member.
func (r *roster) forget(m *member) {
	m.removed = true
	delete(r.byKey, m.nodeKey)
}

func (r *roster) change(which func(*member) bool, change func(*member)) (member, bool) {
	r.mu.Lock()
	var found *member
	for _, m := range r.byKey {
		if which(m) {
			found = m
		}
	}
	if found == nil {
		r.mu.Unlock()
		return member{}, false
	}
	change(found)
	after := *found
	r.mu.Unlock()
	r.announce()
	return after, true
}
