package main

import (
	"context"
	"sync"
	"time"
)

// condition is what a service can be made.
type condition string

const (
	healthy condition = "healthy"
	slow    condition = "slow"    // answers after a delay
	failing condition = "failing" // reachable, and answers with its protocol's failure
	dead    condition = "dead"    // not listening
)

// mode is the condition of a service; the delay belongs to slow.
type mode struct {
	Condition condition `json:"mode"`
	DelayMs   int       `json:"delayMs,omitempty"`
}

// gate holds the mode of a service and notifies those that wait when it changes.
type gate struct {
	mu      sync.Mutex
	mode    mode
	changed chan struct{}
}

func newGate() *gate {
	return &gate{mode: mode{Condition: healthy}, changed: make(chan struct{})}
}

// now is the mode and a channel that is closed when it changes.
func (g *gate) now() (mode, <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.mode, g.changed
}

func (g *gate) set(m mode) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.mode = m
	close(g.changed)
	g.changed = make(chan struct{})
}

// pass waits as long as the service is slow, and returns its condition: a change ends or prolongs the wait.
func (g *gate) pass(ctx context.Context) condition {
	start := time.Now()
	for {
		m, changed := g.now()
		if m.Condition != slow {
			return m.Condition
		}
		rest := time.NewTimer(time.Duration(m.DelayMs)*time.Millisecond - time.Since(start))
		select {
		case <-rest.C:
			return healthy
		case <-changed:
			rest.Stop()
		case <-ctx.Done():
			rest.Stop()
			return dead
		}
	}
}
