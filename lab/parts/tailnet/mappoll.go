package main

import (
	"net/http"
	"time"

	"tailscale.com/tailcfg"
)

// serveMap passes a member's map request to the vendor's server and redraws every netmap on its way back. Once the
// member is forgotten, a poll that is open gets keep-alives and no further netmap.
func (c *control) serveMap(w http.ResponseWriter, r *http.Request) {
	var req tailcfg.MapRequest
	if !readMessage(w, r, &req) {
		return
	}
	m, isKnown := c.members.get(req.NodeKey)
	if !isKnown || m.machine != machineOf(r.Context()) {
		http.Error(w, "node not found", http.StatusNotFound)
		return
	}
	if req.Hostinfo != nil && c.services.hasChanged(m.nodeKey, req.Hostinfo.ServicesHash) {
		go c.askServices(m.nodeKey)
	}
	isCompressed := req.Compress != ""
	req.Compress = ""
	forward, err := withMessage(r.Context(), r, &req)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	if req.Stream {
		c.streamOpened(m)
		defer c.streamClosed(m)
	}
	c.vendor.ServeHTTP(&frameWriter{
		ResponseWriter: w,
		isCompressed:   isCompressed,
		change: func(res *tailcfg.MapResponse) bool {
			viewer, ok := c.members.get(req.NodeKey)
			if ok {
				redraw(res, viewer, c.members.get, time.Now())
				drawServices(res, viewer, c.services.all(), c.members.get, c.domain)
			}
			return ok
		},
	}, forward)
}
