package main

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
)

const maxDelayMs = 10 * 60 * 1000

// control is the HTTP and JSON endpoint that shows and changes the services.
//
//	GET /services           every service
//	PUT /services           {"mode": ..., "delayMs": ...} for every service
//	GET /services/{name}    one service
//	PUT /services/{name}    the same for one
type control struct {
	services map[string]*service
	log      *slog.Logger
}

func (c control) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /services", c.showAll)
	mux.HandleFunc("PUT /services", c.changeAll)
	mux.HandleFunc("GET /services/{name}", c.showOne)
	mux.HandleFunc("PUT /services/{name}", c.changeOne)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		fail(w, http.StatusNotFound, fault{Field: "path", Message: "no such call: " + r.Method + " " + r.URL.Path,
			Fix: "use GET or PUT on /services or /services/{name}"})
	})
	return mux
}

func (c control) showAll(w http.ResponseWriter, _ *http.Request) {
	all := map[string]state{}
	for name, s := range c.services {
		all[name] = s.state()
	}
	reply(w, http.StatusOK, map[string]any{"services": all})
}

func (c control) showOne(w http.ResponseWriter, r *http.Request) {
	if s := c.find(w, r); s != nil {
		reply(w, http.StatusOK, s.state())
	}
}

func (c control) changeOne(w http.ResponseWriter, r *http.Request) {
	s := c.find(w, r)
	if s == nil {
		return
	}
	if m, ok := readMode(w, r); ok && c.apply(w, s, m) {
		reply(w, http.StatusOK, s.state())
	}
}

func (c control) changeAll(w http.ResponseWriter, r *http.Request) {
	m, ok := readMode(w, r)
	if !ok {
		return
	}
	for _, name := range protocols {
		if !c.apply(w, c.services[name], m) {
			return
		}
	}
	c.showAll(w, r)
}

// apply changes a service, or answers why it cannot and reports false.
func (c control) apply(w http.ResponseWriter, s *service, m mode) bool {
	if err := s.set(m); err != nil {
		fail(w, http.StatusConflict, fault{Field: "mode", Message: err.Error(), Fix: "free the port and try again"})
		return false
	}
	c.log.Info("service changed", "service", s.name, "mode", string(m.Condition), "delayMs", m.DelayMs)
	return true
}

// find is the service that the path names, or nil after answering that there is none.
func (c control) find(w http.ResponseWriter, r *http.Request) *service {
	s := c.services[r.PathValue("name")]
	if s == nil {
		fail(w, http.StatusNotFound, fault{Field: "name", Message: "no service " + r.PathValue("name"), Fix: "use one of " + strings.Join(protocols, ", ")})
	}
	return s
}

// readMode decodes and checks a mode, or answers what is wrong with it and reports false.
func readMode(w http.ResponseWriter, r *http.Request) (mode, bool) {
	var m mode
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, 4<<10))
	d.DisallowUnknownFields()
	if err := d.Decode(&m); err != nil {
		fail(w, http.StatusBadRequest, fault{Field: "body", Message: err.Error(), Fix: `send {"mode": "healthy"}`})
		return m, false
	}
	switch m.Condition {
	case healthy, slow, failing, dead:
	default:
		fail(w, http.StatusUnprocessableEntity, fault{Field: "mode", Message: fmt.Sprintf("%q is no mode", m.Condition), Fix: "use healthy, slow, failing or dead"})
		return m, false
	}
	if isSlow := m.Condition == slow; isSlow != (m.DelayMs > 0) || m.DelayMs < 0 || m.DelayMs > maxDelayMs {
		fail(w, http.StatusUnprocessableEntity, fault{Field: "delayMs", Message: fmt.Sprintf("%d", m.DelayMs),
			Fix: fmt.Sprintf("give 1 to %d with slow, and nothing with another mode", maxDelayMs)})
		return m, false
	}
	return m, true
}
