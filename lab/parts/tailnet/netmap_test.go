package main

import (
	"testing"
	"time"

	"tailscale.com/tailcfg"
	"tailscale.com/types/key"
)

func TestRedrawShowsEachViewerWhatItMaySee(t *testing.T) {
	now := time.Now()
	up := member{name: "a.example.ts.net", streams: 1}
	with := func(change func(*member)) member { m := up; change(&m); return m }
	offline := with(func(m *member) { m.offline = true })
	expired := with(func(m *member) { m.expiredAt = now })
	removed := with(func(m *member) { m.expiredAt, m.removed = now, true })
	waiting := with(func(m *member) { m.waits = true })
	gone := with(func(m *member) { m.streams = 0 })

	for _, c := range []struct {
		name                     string
		viewer, peer             member
		isShown, isUp, isOutOfIt bool
	}{
		{"both up", up, up, true, true, false},
		{"peer not connected", up, gone, true, false, false},
		{"peer taken offline", up, offline, true, false, true},
		{"viewer taken offline", offline, up, true, false, true},
		{"peer expired", up, expired, true, true, true},
		{"peer removed", up, removed, false, false, true},
		{"viewer removed", removed, up, false, false, true},
		{"peer waits for approval", up, waiting, false, false, true},
		{"viewer waits for approval", waiting, up, false, false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := key.NewNode().Public()
			res := &tailcfg.MapResponse{Node: &tailcfg.Node{}, Peers: []*tailcfg.Node{{ID: 7, Key: k}}}
			redraw(res, c.viewer, func(key.NodePublic) (member, bool) { return c.peer, true }, now)
			if res.Node.MachineAuthorized == c.viewer.waits {
				t.Errorf("approved %t, want %t", res.Node.MachineAuthorized, !c.viewer.waits)
			}
			if !res.ControlTime.Equal(now) {
				t.Errorf("control time %s, want that of the machine", res.ControlTime)
			}
			if !c.isShown {
				if len(res.Peers) != 0 || len(res.PeersRemoved) != 1 || res.PeersRemoved[0] != 7 {
					t.Errorf("peers %v, removed %v: want the peer withdrawn by name", res.Peers, res.PeersRemoved)
				}
				return
			}
			if len(res.Peers) != 1 {
				t.Fatalf("peers %v, want one", res.Peers)
			}
			p := res.Peers[0]
			if *p.Online != c.isUp || (p.Key != k) != c.isOutOfIt || p.Expired != c.peer.expired() {
				t.Errorf("online %t, key changed %t, expired %t", *p.Online, p.Key != k, p.Expired)
			}
		})
	}
}

func TestRedrawHidesAPeerThatIsNoMemberYet(t *testing.T) {
	res := &tailcfg.MapResponse{Node: &tailcfg.Node{}, Peers: []*tailcfg.Node{{ID: 7, Key: key.NewNode().Public()}}}
	redraw(res, member{}, func(key.NodePublic) (member, bool) { return member{}, false }, time.Now())
	if len(res.Peers) != 0 {
		t.Errorf("peers %v", res.Peers)
	}
}
