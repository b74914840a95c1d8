package main

import (
	"time"

	"tailscale.com/tailcfg"
	"tailscale.com/types/key"
)

// lookup finds a member by its node key.
type lookup func(key.NodePublic) (member, bool)

// redraw changes a netmap that the vendor's server made for one viewer into what this tailnet shows it.
//
//	viewer   peer                 what the viewer gets of the peer
//	removed  any                  nothing, and its own key expired
//	unknown  any                  no netmap: it was forgotten, see serveMap
//	waiting  any                  nothing, and that it waits for approval
//	any      removed, waiting     nothing
//	         or unknown
//	any      expired              a peer marked expired, behind a dead key
//	offline  any                  an offline peer behind a dead key
//	any      offline              an offline peer behind a dead key
//	any      else                 the peer
//
// A dead key is no node's key: WireGuard drops the session with the true one and its handshakes fail,
// so names and addresses still resolve and traffic hangs, as with a machine whose cable was pulled.
func redraw(res *tailcfg.MapResponse, viewer member, find lookup, now time.Time) {
	// The vendor's server sets the time to 2020, which makes clients distrust every expiry.
	res.ControlTime = &now
	res.Node.Name = viewer.name + "."
	res.Node.Tags = viewer.tags
	res.Node.KeyExpiry = viewer.expiredAt
	res.Node.MachineAuthorized = !viewer.waits

	var shown []*tailcfg.Node
	var hidden []tailcfg.NodeID
	for _, p := range res.Peers {
		peer, ok := find(p.Key)
		if !ok || peer.removed || peer.waits || viewer.removed || viewer.waits {
			hidden = append(hidden, p.ID)
			continue
		}
		redrawPeer(p, viewer, peer)
		shown = append(shown, p)
	}
	res.Peers = shown
	if len(shown) == 0 {
		// A client takes an empty list of peers for "as before".
		res.PeersRemoved = hidden
	}
}

// redrawPeer changes one peer into what the viewer gets of it.
func redrawPeer(p *tailcfg.Node, viewer, peer member) {
	isUp := peer.online() && !viewer.offline
	p.Name = peer.name + "."
	p.Tags = peer.tags
	p.Online = &isUp
	p.KeyExpiry = peer.expiredAt
	p.Expired = peer.expired()
	if !isUp && !peer.lastSeen.IsZero() {
		p.LastSeen = &peer.lastSeen
	}
	if peer.expired() || peer.offline || viewer.offline {
		p.Key = key.NodePublicWithBadOldPrefix(p.Key)
		p.DiscoKey = key.DiscoPublic{}
		p.Endpoints = nil
	}
}
