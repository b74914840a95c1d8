package main

import (
	"net/http"
	"time"

	"tailscale.com/tailcfg"
)

// serveMap passes a member's map request to the vendor's server and redraws every netmap on its way back.
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
	isCompressed := req.Compress != ""
	req.Compress = ""
	forward, err := withMessage(r.Context(), r, &req)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	if req.Stream {
		c.streamOpened(req.NodeKey)
		defer c.streamClosed(req.NodeKey)
	}
	c.vendor.ServeHTTP(&frameWriter{
		ResponseWriter: w,
		isCompressed:   isCompressed,
		change: func(res *tailcfg.MapResponse) {
			if viewer, ok := c.members.get(req.NodeKey); ok {
				redraw(res, viewer, c.members.get, time.Now())
			}
		},
	}, forward)
}
