package main

import (
	"time"

	"tailscale.com/tailcfg"
	"tailscale.com/types/key"
)

// verdict is what to do with a node that registers.
type verdict string

const (
	refuseIt verdict = "refuse"
	renewIt  verdict = "renew" // report that its node key expired: it registers again with a new one
	leaveIt  verdict = "leave" // it logs out
	againIt  verdict = "again" // a member that restarted
	joinIt   verdict = "join"  // by its join key
	loginIt  verdict = "login" // send it to a page without a login, so that it reports that it needs a key
	waitIt   verdict = "wait"  // it waits for that login
)

// admit decides by what the node sent, the machine it came from and the member that has its node key. A node that was
// forgotten is unknown.
//
//	node key   other machine's           → refuse
//	logout     known → leave             unknown → refuse
//	known      expired for good, with a join key → join
//	           expired or removed → renew  else → again
//	unknown    with a join key → join    waiting → wait    else → login
func admit(req *tailcfg.RegisterRequest, machine key.MachinePublic, find lookup, now time.Time) (verdict, string) {
	m, isKnown := find(req.NodeKey)
	hasKey := req.Auth != nil && req.Auth.AuthKey != ""
	isLogout := !req.Expiry.IsZero() && req.Expiry.Before(now)
	switch {
	case isKnown && m.machine != machine:
		return refuseIt, "node key belongs to another machine"
	case isLogout && isKnown:
		return leaveIt, ""
	case isLogout:
		return refuseIt, "node is unknown"
	case isKnown && m.expiredForGood && !m.removed && hasKey:
		return joinIt, ""
	case isKnown && (m.expired() || m.removed):
		return renewIt, ""
	case isKnown:
		return againIt, ""
	case req.Followup != "":
		return waitIt, ""
	case !hasKey:
		return loginIt, ""
	}
	return joinIt, ""
}
