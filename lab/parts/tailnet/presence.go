package main

import (
	"context"
	"time"
)

// streamOpened and streamClosed count the map polls of a node: it is online while it has one.
func (c *control) streamOpened(m member) {
	after, _ := c.members.updateMember(m, func(m *member) { m.streams++ })
	c.log.Info("node connected", "id", m.id, "name", m.name, "streams", after.streams)
}

func (c *control) streamClosed(m member) {
	after, _ := c.members.updateMember(m, func(m *member) {
		m.streams--
		m.lastSeen = time.Now()
	})
	c.log.Info("node disconnected", "id", m.id, "name", m.name, "streams", after.streams)
}

// reapEphemeral removes ephemeral nodes that have had no connection for the given time, until the context ends.
func (c *control) reapEphemeral(ctx context.Context, after time.Duration) {
	tick := time.NewTicker(min(after, time.Second))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			for _, m := range c.members.all() {
				if m.ephemeral && m.streams == 0 && now.Sub(m.lastSeen) > after {
					c.removeMember(m, now)
				}
			}
		}
	}
}

// removeMember makes a tombstone of a member, unless it came back.
func (c *control) removeMember(m member, now time.Time) {
	after, ok := c.members.updateMember(m, func(m *member) {
		if m.streams == 0 {
			m.expiredAt, m.removed = now, true
		}
	})
	if ok && after.removed {
		c.log.Info("ephemeral node removed", "id", m.id, "name", m.name)
	}
}
