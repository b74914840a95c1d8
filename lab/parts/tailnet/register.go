package main

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"time"

	"tailscale.com/net/tsaddr"
	"tailscale.com/tailcfg"
	"tailscale.com/types/key"
)

var errVendor = errors.New("the control server did not register the node")

// serveRegister admits a node by its join key, or lets a member in again; no other node gets an address.
func (c *control) serveRegister(w http.ResponseWriter, r *http.Request) {
	var req tailcfg.RegisterRequest
	if !readMessage(w, r, &req) {
		return
	}
	if req.NodeKey.IsZero() || req.Version == 0 || req.Hostinfo == nil {
		http.Error(w, "bad request: node key, version and host information are required", http.StatusBadRequest)
		return
	}
	now := time.Now()
	what, why := admit(&req, machineOf(r.Context()), c.members.get, now)
	var res tailcfg.RegisterResponse
	var err error
	switch what {
	case joinIt:
		res, err = c.join(r, &req, now)
	case againIt:
		res, err = c.register(r, &req)
	case leaveIt:
		c.leave(req.NodeKey, now)
		res.NodeKeyExpired = true
	case renewIt:
		res.NodeKeyExpired = true
	case loginIt:
		res.AuthURL = c.url + "/login/" + rand.Text()
	case waitIt:
		<-r.Context().Done()
		return
	case refuseIt:
		res = c.refuse(&req, why)
	}
	if err != nil {
		c.log.Error("register failed", "hostname", req.Hostinfo.Hostname, "error", err.Error())
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	json.NewEncoder(w).Encode(res)
}

// join redeems the join key and makes the node a member; one that renews its node key keeps address and name, and a
// machine whose node expired for good learns that it still is.
func (c *control) join(r *http.Request, req *tailcfg.RegisterRequest, now time.Time) (tailcfg.RegisterResponse, error) {
	if c.members.isFull() {
		return c.refuse(req, "the tailnet is full: restart it"), nil
	}
	k, why := c.keys.redeem(req.Auth.AuthKey, req.Hostinfo.RequestTags, now)
	if why != "" {
		return c.refuse(req, why), nil
	}
	machine := machineOf(r.Context())
	if c.members.hasExpiredForGood(machine) {
		c.log.Warn("node stays expired", "hostname", req.Hostinfo.Hostname, "joinKey", k.ID)
		return tailcfg.RegisterResponse{NodeKeyExpired: true}, nil
	}
	// One node after the other: their numbers are counted.
	c.joining.Lock()
	defer c.joining.Unlock()
	c.renumber(req.NodeKey)
	if old, isKnown := c.members.get(req.OldNodeKey); !isKnown || old.removed || old.machine != machine {
		req.OldNodeKey = key.NodePublic{}
	}
	res, err := c.register(r, req)
	if err != nil {
		return res, err
	}
	m := c.members.admit(member{
		nodeKey:   req.NodeKey,
		machine:   machine,
		id:        c.vendor.Node(req.NodeKey).StableID,
		joinKeyID: k.ID,
		ephemeral: k.Ephemeral || req.Ephemeral,
		tags:      k.Tags,
		joinedAt:  now,
		lastSeen:  now,
	}, req.OldNodeKey, req.Hostinfo.Hostname, c.domain)
	c.log.Info("node joined", "id", m.id, "name", m.name, "joinKey", k.ID)
	return res, nil
}

// renumber gives a node key that was forgotten the record of a new node, if the vendor's server knows the key. It
// cannot delete the old record and gives out the number of its records plus one, so the old one stays, under a key of nobody.
func (c *control) renumber(k key.NodePublic) {
	n := c.vendor.Node(k)
	if n == nil {
		return
	}
	old := n.Clone()
	old.Key = key.NewNode().Public()
	c.vendor.UpdateNode(old)
	number := c.vendor.NumNodes()
	n.ID = tailcfg.NodeID(number)
	n.StableID = tailcfg.StableNodeID(fmt.Sprintf("TESTCTRL%08x", number))
	v4 := netip.AddrFrom4([4]byte{100, 64, byte(number >> 8), byte(number)})
	n.Addresses = []netip.Prefix{netip.PrefixFrom(v4, 32), netip.PrefixFrom(tsaddr.Tailscale4To6(v4), 128)}
	n.AllowedIPs = n.Addresses
	c.vendor.UpdateNode(n)
}

// register has the vendor's server register the node; its join key has been checked before.
func (c *control) register(r *http.Request, req *tailcfg.RegisterRequest) (tailcfg.RegisterResponse, error) {
	var res tailcfg.RegisterResponse
	forward, err := withMessage(r.Context(), r, req)
	if err != nil {
		return res, err
	}
	answer := httptest.NewRecorder()
	c.vendor.ServeHTTP(answer, forward)
	if answer.Code != http.StatusOK || c.vendor.Node(req.NodeKey) == nil {
		return res, errVendor
	}
	return res, json.Unmarshal(answer.Body.Bytes(), &res)
}

// leave ends a member that logs out: its node key expires, and an ephemeral node is removed.
func (c *control) leave(k key.NodePublic, now time.Time) {
	m, _ := c.members.get(k)
	c.members.updateMember(m, func(m *member) {
		m.expiredAt = now
		m.removed = m.removed || m.ephemeral
	})
	c.log.Info("node logged out", "id", m.id, "name", m.name)
}

func (c *control) refuse(req *tailcfg.RegisterRequest, why string) tailcfg.RegisterResponse {
	c.log.Warn("node refused", "hostname", req.Hostinfo.Hostname, "reason", why)
	return tailcfg.RegisterResponse{Error: why}
}
