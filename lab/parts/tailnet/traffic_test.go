package main

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"tailscale.com/tailcfg"
)

// pair is two nodes that reach each other, with a service at both.
type pair struct {
	lab      lab
	near     *node
	far      *node
	farID    tailcfg.StableNodeID
	byIP     string
	byName   string
	nearName string
}

func startPair(t *testing.T) pair {
	t.Helper()
	l := startLab(t)
	p := pair{lab: l, near: startNode(t, l, "near"), far: startNode(t, l, "far")}
	k := l.addKey(`{"reusable": true, "tags": ["tag:lab"]}`).Key
	p.near.join(k)
	p.far.join(k)
	port := startEcho(t)
	far := l.find("far.example.ts.net")
	p.farID = far.ID
	p.byIP = net.JoinHostPort(far.Addresses[0].String(), port)
	p.byName = net.JoinHostPort(far.FQDN, port)
	p.nearName = net.JoinHostPort("near.example.ts.net", port)
	start := time.Now()
	eventually(t, "near reaches far", func() error { return reach(p.near.connect, p.byName) })
	t.Logf("first line through after %s", time.Since(start))
	return p
}

// do changes the far node by an admin call.
func (p pair) do(method, path string) {
	p.lab.t.Helper()
	p.lab.must(method, "/nodes/"+string(p.farID)+path, "", nil)
}

// isCut reports whether no new connection passes in either direction, by either proxy, by address or by name.
func (p pair) isCut() error {
	tries := []struct {
		what   string
		dial   way
		target string
	}{
		{"near by CONNECT and address", p.near.connect, p.byIP},
		{"near by CONNECT and name", p.near.connect, p.byName},
		{"near by SOCKS and name", p.near.socks, p.byName},
		{"far by CONNECT and name", p.far.connect, p.nearName},
	}
	passed := make(chan error, len(tries))
	for _, try := range tries {
		go func() {
			if reach(try.dial, try.target) == nil {
				passed <- fmt.Errorf("%s still passes", try.what)
				return
			}
			passed <- nil
		}()
	}
	var all error
	for range tries {
		all = errors.Join(all, <-passed)
	}
	return all
}

func isOnline(l lab, id tailcfg.StableNodeID, want bool) error {
	var v nodeView
	l.must("GET", "/nodes/"+string(id), "", &v)
	if v.Online != want {
		return fmt.Errorf("online is %t", v.Online)
	}
	return nil
}

func TestNodesReachEachOther(t *testing.T) {
	p := startPair(t)
	for _, c := range []struct {
		name   string
		dial   way
		target string
	}{
		{"CONNECT by address", p.near.connect, p.byIP},
		{"CONNECT by FQDN", p.near.connect, p.byName},
		{"CONNECT by short name", p.near.connect, "far" + p.byName[len("far.example.ts.net"):]},
		{"SOCKS5 by address", p.near.socks, p.byIP},
		{"SOCKS5 by FQDN", p.near.socks, p.byName},
		{"the other direction", p.far.connect, p.nearName},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := reach(c.dial, c.target); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestOfflineNodeIsUnreachableUntilItIsBack(t *testing.T) {
	p := startPair(t)
	open, err := p.near.connect(p.byName)
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	if err := say(open, "before"); err != nil {
		t.Fatal(err)
	}

	p.do("POST", "/offline")
	eventually(t, "the open connection stalls", func() error {
		if say(open, "during") == nil {
			return errors.New("it still passes")
		}
		return nil
	})
	if err := p.isCut(); err != nil {
		t.Error(err)
	}
	if err := isOnline(p.lab, p.farID, false); err != nil {
		t.Error(err)
	}
	for _, peer := range p.near.status().Peer {
		if peer.DNSName != "far.example.ts.net." || peer.Online {
			t.Errorf("near sees %+v, want far, not online", peer)
		}
	}

	p.do("POST", "/online")
	start := time.Now()
	eventually(t, "far is back", func() error { return reach(p.near.connect, p.byName) })
	eventually(t, "near is seen by far", func() error { return reach(p.far.connect, p.nearName) })
	t.Logf("back after %s", time.Since(start))
}

func TestNodeWithoutApprovalIsOutUntilItIsApproved(t *testing.T) {
	p := startPair(t)
	p.do("POST", "/withdraw-approval")
	eventually(t, "far waits for approval", func() error { return isState(p.far, "NeedsMachineAuth") })
	if err := p.isCut(); err != nil {
		t.Error(err)
	}
	if far := p.lab.find("far.example.ts.net"); far.Expired || far.Authorized {
		t.Errorf("far is %+v, want it not expired and not authorized", far)
	}
	p.do("POST", "/approve")
	eventually(t, "near reaches far again", func() error { return reach(p.near.connect, p.byName) })
	if far := p.lab.find("far.example.ts.net"); !far.Authorized {
		t.Errorf("far is %+v, want it authorized", far)
	}
}

func TestExpiredNodeIsOutUntilItJoinsAnew(t *testing.T) {
	p := startPair(t)
	before := p.lab.find("far.example.ts.net")
	p.do("POST", "/expire")
	eventually(t, "far must log in", func() error { return isState(p.far, "NeedsLogin") })
	if err := p.isCut(); err != nil {
		t.Error(err)
	}
	if far := p.lab.find("far.example.ts.net"); !far.Expired || far.Authorized {
		t.Errorf("far is %+v, want it expired and not authorized", far)
	}
	out, err := p.far.up("tskey-auth-wrong")
	if err == nil {
		t.Errorf("an expired node came back with a wrong key: %s", out)
	}
	p.far.join(p.lab.addKey(`{}`).Key)
	after := p.lab.find("far.example.ts.net")
	if after.ID != before.ID || after.Addresses[0] != before.Addresses[0] || after.Expired || len(after.Tags) > 0 {
		t.Errorf("after joining again: %+v, want the identity of %+v and the new key's tags", after, before)
	}
	if n := len(p.lab.nodes()); n != 2 {
		t.Errorf("%d nodes, want the old record of far replaced", n)
	}
	eventually(t, "near reaches far again", func() error { return reach(p.near.connect, p.byName) })
}

func TestNodeExpiredForGoodUsesUpKeysUntilItIsDeleted(t *testing.T) {
	for _, deletion := range []struct{ name, method, path string }{{"removed", "DELETE", ""}, {"forgotten", "POST", "/forget"}} {
		t.Run(deletion.name, func(t *testing.T) {
			p := startPair(t)
			p.do("POST", "/expire-for-good")
			eventually(t, "far must log in", func() error { return isState(p.far, "NeedsLogin") })
			for _, try := range []struct {
				when   string
				before func()
			}{
				{"at once", func() {}},
				{"after a restart", func() { p.far.stop(); p.far.start() }},
				{"after a logout", func() { p.far.cli(timeout, "logout") }},
			} {
				try.before()
				k := p.lab.addKey(`{}`)
				out, err := p.far.up(k.Key)
				if err == nil || !strings.Contains(out, k.ID+" is used") {
					t.Errorf("%s: %v %s, want the key used by its first attempt", try.when, err, out)
				}
				if far := p.lab.find("far.example.ts.net"); !far.Expired || far.ID != p.farID || len(p.lab.nodes()) != 2 {
					t.Errorf("%s far is %+v, want the same node, expired", try.when, far)
				}
			}
			p.do(deletion.method, deletion.path)
			p.far.join(p.lab.addKey(`{}`).Key)
			if after := p.lab.find("far.example.ts.net"); after.ID == p.farID || after.Expired {
				t.Errorf("it came back as %+v, want a new node", after)
			}
			eventually(t, "near reaches far again", func() error { return reach(p.near.connect, p.byName) })
		})
	}
}

// losesFar waits until near has no peer any more.
func (p pair) losesFar(t *testing.T) {
	t.Helper()
	eventually(t, "near forgets far", func() error {
		if peers := p.near.status().Peer; len(peers) > 0 {
			return fmt.Errorf("%+v", peers)
		}
		return nil
	})
	if err := p.isCut(); err != nil {
		t.Error(err)
	}
}

// joinsAsAnother lets far, which is in no list, join with a new key.
func (p pair) joinsAsAnother(t *testing.T) {
	t.Helper()
	if nodes := p.lab.nodes(); len(nodes) != 1 {
		t.Errorf("nodes %+v, want near only", nodes)
	}
	p.far.join(p.lab.addKey(`{}`).Key)
	if after := p.lab.find("far.example.ts.net"); after.ID == p.farID {
		t.Errorf("it came back as the old node %s", after.ID)
	}
}

func TestRemovedNodeIsGoneForGood(t *testing.T) {
	p := startPair(t)
	p.do("DELETE", "")
	eventually(t, "far must log in", func() error { return isState(p.far, "NeedsLogin") })
	p.losesFar(t)
	p.far.stop()
	p.far.start()
	eventually(t, "far must log in after a restart, too", func() error { return isState(p.far, "NeedsLogin") })
	p.joinsAsAnother(t)
}

func TestForgottenNodeIsNotLoggedOut(t *testing.T) {
	p := startPair(t)
	p.do("POST", "/forget")
	p.losesFar(t)
	near := p.lab.find("near.example.ts.net")
	p.lab.must("PUT", "/nodes/"+string(near.ID)+"/tags", `{"tags": ["tag:new"]}`, nil)
	eventually(t, "near has new tags", func() error { return hasTags(p.near.status().Self.Tags, "[tag:new]") })
	// A change of its host information makes a client send a map request of its own.
	if out, err := p.far.cli(timeout, "set", "--hostname=renamed"); err != nil {
		t.Fatal(err, out)
	}
	eventually(t, "far gets a 404", func() error { return p.far.hasLogged("404: node not found") })
	far := p.far.status()
	if far.BackendState != "Running" || len(far.Self.TailscaleIPs) != 2 || len(far.Peer) != 1 {
		t.Errorf("far is %+v, want it running, with addresses and near as its peer", far)
	}
	for _, peer := range far.Peer {
		if err := hasTags(peer.Tags, "[tag:lab]"); err != nil {
			t.Error("far got another netmap:", err)
		}
	}

	p.far.stop()
	p.far.start()
	eventually(t, "far must log in after a restart", func() error { return isState(p.far, "NeedsLogin") })
	p.joinsAsAnother(t)
	eventually(t, "near reaches far again", func() error { return reach(p.near.connect, p.byName) })
}

func TestTagsOfANodeCanBeSet(t *testing.T) {
	p := startPair(t)
	p.lab.must("PUT", "/nodes/"+string(p.farID)+"/tags", `{"tags": ["tag:db"]}`, nil)
	eventually(t, "both nodes see the new tags", func() error {
		err := hasTags(p.far.status().Self.Tags, "[tag:db]")
		for _, peer := range p.near.status().Peer {
			err = errors.Join(err, hasTags(peer.Tags, "[tag:db]"))
		}
		return err
	})
	if err := reach(p.near.connect, p.byName); err != nil {
		t.Error("tags changed who reaches whom:", err)
	}
}

func TestLogoutExpiresANode(t *testing.T) {
	p := startPair(t)
	if out, err := p.far.cli(timeout, "logout"); err != nil {
		t.Fatal(err, out)
	}
	if far := p.lab.find("far.example.ts.net"); !far.Expired {
		t.Errorf("far is %+v, want it expired", far)
	}
	if err := reach(p.near.connect, p.byIP); err == nil {
		t.Error("a node that logged out is reachable")
	}
}

func hasTags(got []string, want string) error {
	if fmt.Sprint(got) != want {
		return fmt.Errorf("it has %v", got)
	}
	return nil
}

func isState(n *node, want string) error {
	if got := n.status().BackendState; got != want {
		return errors.New(got)
	}
	return nil
}
