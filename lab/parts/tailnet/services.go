package main

import (
	"context"
	"encoding/json"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"tailscale.com/net/tsaddr"
	"tailscale.com/tailcfg"
	"tailscale.com/types/key"
)

// service is a VIP service of the tailnet, with the nodes that report that they serve it.
type service struct {
	name  tailcfg.ServiceName
	addrs []netip.Addr
	hosts map[key.NodePublic]bool // whether the node advertises it
}

// services is the table of VIP services. The vendor's test control server has none, so this is a model of what its real
// one does: every node that serves a service learns its addresses, and others reach it at the first node that also
// advertises it and is online. Which node that is changes at once; approval and regions are not modelled.
type services struct {
	mu       sync.Mutex
	byName   map[tailcfg.ServiceName]*service
	created  int
	hashes   map[key.NodePublic]string
	turns    map[key.NodePublic]*sync.Mutex
	announce func()
}

func newServices(announce func()) *services {
	return &services{
		byName:   map[tailcfg.ServiceName]*service{},
		hashes:   map[key.NodePublic]string{},
		turns:    map[key.NodePublic]*sync.Mutex{},
		announce: announce,
	}
}

// create adds a service with addresses of its own, or returns the existing one.
func (s *services) create(name tailcfg.ServiceName) service {
	s.mu.Lock()
	found := s.byName[name]
	if found == nil {
		s.created++
		v4 := netip.AddrFrom4([4]byte{100, 127, byte(s.created >> 8), byte(s.created)})
		found = &service{name, []netip.Addr{v4, tsaddr.Tailscale4To6(v4)}, map[key.NodePublic]bool{}}
		s.byName[name] = found
	}
	copied := found.copied()
	s.mu.Unlock()
	s.announce()
	return copied
}

// remove deletes a service, and reports whether there was one; nodes that serve it lose its addresses.
func (s *services) remove(name tailcfg.ServiceName) bool {
	s.mu.Lock()
	_, isKnown := s.byName[name]
	delete(s.byName, name)
	s.mu.Unlock()
	s.announce()
	return isKnown
}

// all is every service by name.
func (s *services) all() []service {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := []service{}
	for _, one := range s.byName {
		all = append(all, one.copied())
	}
	slices.SortFunc(all, func(a, b service) int { return strings.Compare(a.name.String(), b.name.String()) })
	return all
}

func (s service) copied() service {
	hosts := make(map[key.NodePublic]bool, len(s.hosts))
	for k, isActive := range s.hosts {
		hosts[k] = isActive
	}
	s.hosts = hosts
	return s
}

// hasChanged reports whether the hash that a node sent of what it serves is another one than before, and keeps it.
func (s *services) hasChanged(k key.NodePublic, hash string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hashes[k] == hash {
		return false
	}
	s.hashes[k] = hash
	return true
}

// served replaces what a node serves.
func (s *services) served(k key.NodePublic, list []*tailcfg.VIPService) {
	s.mu.Lock()
	for _, one := range s.byName {
		delete(one.hosts, k)
	}
	for _, one := range list {
		if known := s.byName[one.Name]; known != nil {
			known.hosts[k] = one.Active
		}
	}
	s.mu.Unlock()
	s.announce()
}

// ask replaces what a node serves with its report. A node is asked once at a time, so that an earlier report, of a
// service that it served and did not advertise yet, does not replace a later one.
func (s *services) ask(k key.NodePublic, report func() ([]*tailcfg.VIPService, error)) error {
	turn := s.turnOf(k)
	turn.Lock()
	defer turn.Unlock()
	list, err := report()
	if err == nil {
		s.served(k, list)
	}
	return err
}

func (s *services) turnOf(k key.NodePublic) *sync.Mutex {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.turns[k] == nil {
		s.turns[k] = &sync.Mutex{}
	}
	return s.turns[k]
}

// primary is the node at which others reach the service: the first that advertises it and is online.
func (s service) primary(find lookup) (member, bool) {
	var found []member
	for k, isActive := range s.hosts {
		if m, ok := find(k); ok && isActive && m.online() && !m.expired() {
			found = append(found, m)
		}
	}
	if len(found) == 0 {
		return member{}, false
	}
	return slices.MinFunc(found, func(a, b member) int { return strings.Compare(string(a.id), string(b.id)) }), true
}

// drawServices adds services to a netmap: to the viewer the addresses of those that it serves, to each peer those of
// which it is the primary, and a name for each.
func drawServices(res *tailcfg.MapResponse, viewer member, all []service, find lookup, domain string) {
	own := tailcfg.ServiceIPMappings{}
	for _, one := range all {
		if _, isHost := one.hosts[viewer.nodeKey]; isHost {
			own[one.name] = one.addrs
		}
		if res.DNSConfig != nil {
			for _, addr := range one.addrs {
				name := one.name.WithoutPrefix() + "." + domain
				res.DNSConfig.ExtraRecords = append(res.DNSConfig.ExtraRecords, tailcfg.DNSRecord{Name: name, Value: addr.String()})
			}
		}
		primary, isUp := one.primary(find)
		if !isUp {
			continue
		}
		for _, p := range res.Peers {
			if p.Key == primary.nodeKey {
				for _, addr := range one.addrs {
					p.AllowedIPs = append(p.AllowedIPs, netip.PrefixFrom(addr, addr.BitLen()))
				}
			}
		}
	}
	if len(own) > 0 {
		value, _ := json.Marshal(own)
		if res.Node.CapMap == nil {
			res.Node.CapMap = tailcfg.NodeCapMap{}
		}
		res.Node.CapMap[tailcfg.NodeAttrServiceHost] = []tailcfg.RawMessage{tailcfg.RawMessage(value)}
	}
}

// A request may be lost, since a node gets it by its map poll: then the next one is made soon, and the last much later.
const (
	askTimeout = 2 * time.Second
	askFor     = time.Minute
)

// askServices asks a node what it serves, as the vendor's control server does when the hash that the node sends changes.
func (c *control) askServices(k key.NodePublic) {
	for until := time.Now().Add(askFor); time.Now().Before(until); {
		err := c.services.ask(k, func() ([]*tailcfg.VIPService, error) {
			ctx, cancel := context.WithTimeout(context.Background(), askTimeout)
			defer cancel()
			return c.servicesOf(ctx, k)
		})
		if err == nil {
			return
		}
		c.log.Warn("node did not report what it serves", "error", err.Error())
		// Its map poll may not be open yet.
		time.Sleep(200 * time.Millisecond)
	}
}

func (c *control) servicesOf(ctx context.Context, k key.NodePublic) ([]*tailcfg.VIPService, error) {
	req, err := http.NewRequestWithContext(ctx, "GET", "http://node/vip-services", nil)
	if err != nil {
		return nil, err
	}
	answer, err := c.vendor.NodeRoundTripper(k).RoundTrip(req)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	var list tailcfg.C2NVIPServicesResponse
	err = json.NewDecoder(answer.Body).Decode(&list)
	return list.VIPServices, err
}
