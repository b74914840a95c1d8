package main

import (
	"net/http"
	"net/netip"

	"tailscale.com/tailcfg"
)

// serviceView is a VIP service as the admin endpoint shows it.
type serviceView struct {
	Name      tailcfg.ServiceName `json:"name"`
	Addresses []netip.Addr        `json:"addresses"`
	Hosts     []hostView          `json:"hosts"`
}

// hostView is a node that serves a VIP service.
type hostView struct {
	ID        tailcfg.StableNodeID `json:"id"`
	Active    bool                 `json:"active"`
	IsPrimary bool                 `json:"primary"`
}

func (c *control) viewService(s service) serviceView {
	v := serviceView{Name: s.name, Addresses: s.addrs, Hosts: []hostView{}}
	primary, isUp := s.primary(c.members.get)
	for _, m := range c.members.all() {
		if isActive, isHost := s.hosts[m.nodeKey]; isHost {
			v.Hosts = append(v.Hosts, hostView{m.id, isActive, isUp && primary.id == m.id})
		}
	}
	return v
}

func (c *control) listServices(w http.ResponseWriter, _ *http.Request) {
	list := []serviceView{}
	for _, s := range c.services.all() {
		list = append(list, c.viewService(s))
	}
	reply(w, http.StatusOK, map[string]any{"services": list})
}

// createService gives a service addresses; nodes that serve it already begin to answer there.
func (c *control) createService(w http.ResponseWriter, r *http.Request) {
	name := tailcfg.ServiceName(r.PathValue("name"))
	if err := name.Validate(); err != nil {
		fail(w, http.StatusUnprocessableEntity, fault{Field: "name", Message: err.Error(), Fix: "use svc: and a DNS label, such as svc:web"})
		return
	}
	created := c.services.create(name)
	for _, m := range c.members.all() {
		if m.streams > 0 {
			go c.askServices(m.nodeKey)
		}
	}
	c.log.Info("service created", "name", name)
	reply(w, http.StatusOK, c.viewService(created))
}

func (c *control) removeService(w http.ResponseWriter, r *http.Request) {
	name := tailcfg.ServiceName(r.PathValue("name"))
	if !c.services.remove(name) {
		fail(w, http.StatusNotFound, fault{Field: "name", Message: "no service " + name.String(), Fix: "GET /services lists the names"})
		return
	}
	c.log.Info("service removed", "name", name)
	reply(w, http.StatusOK, map[string]any{})
}
