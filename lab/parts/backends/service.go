package main

import (
	"fmt"
	"sync"
	"sync/atomic"
)

// port is where a service is reached.
type port interface {
	start() error
	stop()
	cut()
	where() string
	connections() int
}

// service is one protocol with its mode, its port and its counter.
type service struct {
	name     string
	gate     *gate
	port     port
	requests atomic.Int64
	open     atomic.Int64 // requests, calls and connections that are under way

	// cutsWhenFailing is true for protocols whose failure is the connection itself.
	cutsWhenFailing bool
	// changed, if any, hears of each new mode.
	changed func(mode)

	mu sync.Mutex // one change at a time
}

// state is a service as the control endpoint shows it.
type state struct {
	mode
	Address         string `json:"address"`
	Requests        int64  `json:"requests"`
	OpenRequests    int64  `json:"openRequests"`
	OpenConnections int    `json:"openConnections"`
}

func (s *service) state() state {
	m, _ := s.gate.now()
	return state{mode: m, Address: s.port.where(), Requests: s.requests.Load(), OpenRequests: s.open.Load(), OpenConnections: s.port.connections()}
}

// begin counts a request, and gives what is to be called at its end.
func (s *service) begin() (end func()) {
	s.requests.Add(1)
	s.open.Add(1)
	return func() { s.open.Add(-1) }
}

// set changes the mode of the service; when it returns, new and open connections behave so.
func (s *service) set(m mode) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.put(m)
	switch {
	case m.Condition == dead:
		s.port.stop()
		return nil
	case m.Condition == failing && s.cutsWhenFailing:
		s.port.cut()
	}
	if err := s.port.start(); err != nil {
		s.put(mode{Condition: dead})
		return fmt.Errorf("%s cannot listen on %s again: %w", s.name, s.port.where(), err)
	}
	return nil
}

// put changes the mode and lets whoever must know hear of it.
func (s *service) put(m mode) {
	s.gate.set(m)
	if s.changed != nil {
		s.changed(m)
	}
}
