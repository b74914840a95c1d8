package main

import (
	"net/http"
	"net/netip"
	"time"

	"tailscale.com/tailcfg"
)

// nodeView is a node as the admin endpoint shows it.
type nodeView struct {
	ID         tailcfg.StableNodeID `json:"id"`
	Hostname   string               `json:"hostname"`
	FQDN       string               `json:"fqdn"`
	Addresses  []netip.Addr         `json:"addresses"`
	Tags       []string             `json:"tags"`
	Online     bool                 `json:"online"`
	Reachable  bool                 `json:"reachable"` // online, and its peers know by which relay
	Offline    bool                 `json:"takenOffline"`
	Expired    bool                 `json:"expired"`
	Authorized bool                 `json:"authorized"`
	Ephemeral  bool                 `json:"ephemeral"`
	JoinKeyID  string               `json:"joinKeyId"`
	JoinedAt   time.Time            `json:"joinedAt"`
	LastSeen   time.Time            `json:"lastSeen"`
}

func (c *control) view(m member) nodeView {
	v := nodeView{
		ID: m.id, FQDN: m.name, Tags: m.tags, Online: m.online(), Offline: m.offline, Expired: m.expired(),
		Ephemeral: m.ephemeral, JoinKeyID: m.joinKeyID, JoinedAt: m.joinedAt, LastSeen: m.lastSeen,
	}
	if m.streams > 0 {
		v.LastSeen = time.Now()
	}
	if n := c.vendor.Node(m.nodeKey); n != nil {
		v.Hostname = n.Hostinfo.Hostname()
		v.Reachable = m.online() && !m.expired() && n.HomeDERP != 0
		v.Authorized = n.MachineAuthorized && !m.waits && !m.expired() && !m.removed
		for _, a := range n.Addresses {
			v.Addresses = append(v.Addresses, a.Addr())
		}
	}
	return v
}

func (c *control) listNodes(w http.ResponseWriter, _ *http.Request) {
	nodes := []nodeView{}
	for _, m := range c.members.all() {
		nodes = append(nodes, c.view(m))
	}
	reply(w, http.StatusOK, map[string]any{"nodes": nodes})
}

func (c *control) getNode(w http.ResponseWriter, r *http.Request) {
	c.changeNode(w, r, "", func(*member) {})
}

// expireNode expires a node's key: it must join again, and until then no peer reaches it.
func (c *control) expireNode(w http.ResponseWriter, r *http.Request) {
	c.changeNode(w, r, "node expired", func(m *member) { m.expiredAt = time.Now() })
}

// expireNodeForGood expires a node's key as headscale does with a tagged node: a join key that the machine registers with
// is used up, and the node stays expired until it is deleted.
func (c *control) expireNodeForGood(w http.ResponseWriter, r *http.Request) {
	c.changeNode(w, r, "node expired for good", func(m *member) { m.expiredAt, m.expiredForGood = time.Now(), true })
}

// removeNode takes a node out for good and logs it out: to come back it must join as a new one.
func (c *control) removeNode(w http.ResponseWriter, r *http.Request) {
	c.changeNode(w, r, "node removed", func(m *member) { m.expiredAt, m.removed = time.Now(), true })
}

// forgetNode takes a node out for good as headscale does, which does not log it out: its client keeps its last netmap
// and its state, its map requests fail, and its node key is that of a stranger.
func (c *control) forgetNode(w http.ResponseWriter, r *http.Request) {
	c.changeNode(w, r, "node forgotten", c.members.forget)
}

// takeNodeOffline cuts every path between a node and its peers; all keep their netmaps, names and addresses.
func (c *control) takeNodeOffline(w http.ResponseWriter, r *http.Request) {
	c.changeNode(w, r, "node taken offline", func(m *member) { m.offline, m.lastSeen = true, time.Now() })
}

// bringNodeBack undoes takeNodeOffline.
func (c *control) bringNodeBack(w http.ResponseWriter, r *http.Request) {
	c.changeNode(w, r, "node brought back", func(m *member) { m.offline = false })
}

// withdrawApproval makes a node wait for approval, as one that joins a tailnet with device approval: no peer reaches it.
func (c *control) withdrawApproval(w http.ResponseWriter, r *http.Request) {
	c.changeNode(w, r, "approval withdrawn", func(m *member) { m.waits = true })
}

// approveNode undoes withdrawApproval.
func (c *control) approveNode(w http.ResponseWriter, r *http.Request) {
	c.changeNode(w, r, "node approved", func(m *member) { m.waits = false })
}

// setTags replaces the tags of a node.
func (c *control) setTags(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Tags []string `json:"tags"`
	}
	if !readBody(w, r, &body) {
		return
	}
	if f := checkTags(body.Tags); f != nil {
		fail(w, http.StatusUnprocessableEntity, *f)
		return
	}
	c.changeNode(w, r, "tags set", func(m *member) { m.tags = append([]string{}, body.Tags...) })
}

// changeNode applies a change to the node that the path names and answers with the node after it.
func (c *control) changeNode(w http.ResponseWriter, r *http.Request, event string, change func(*member)) {
	id := tailcfg.StableNodeID(r.PathValue("id"))
	m, ok := c.members.update(id, change)
	if !ok {
		fail(w, http.StatusNotFound, fault{Field: "id", Message: "no node " + string(id), Fix: "GET /nodes lists the ids"})
		return
	}
	if event != "" {
		c.log.Info(event, "id", m.id, "name", m.name)
	}
	reply(w, http.StatusOK, c.view(m))
}
