package main

import (
	"errors"
	"net"
	"sync"
)

// Envoys keep one for each cluster and worker: 1,000 routes to one service in 4 Envoys have 8,000.
const maxConnections = 16384

// tcpPort is a listening address that can be closed and opened again, and that knows its connections.
type tcpPort struct {
	serve func(net.Listener) // returns when the listener is closed

	mu       sync.Mutex
	address  string // fixed by the first open, so that port 0 is chosen once
	listener net.Listener
	open     map[*trackedConn]struct{}
}

func newTCPPort(address string, serve func(net.Listener)) *tcpPort {
	return &tcpPort{serve: serve, address: address, open: map[*trackedConn]struct{}{}}
}

// start listens; it does nothing if the port listens already.
func (p *tcpPort) start() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listener != nil {
		return nil
	}
	ln, err := net.Listen("tcp", p.address)
	if err != nil {
		return err
	}
	p.address, p.listener = ln.Addr().String(), ln
	go p.serve(trackedListener{ln, p})
	return nil
}

// stop closes the listener and resets every connection: from now on the machine refuses.
func (p *tcpPort) stop() {
	p.mu.Lock()
	if p.listener != nil {
		p.listener.Close()
		p.listener = nil
	}
	p.mu.Unlock()
	p.cut()
}

// cut resets every open connection.
func (p *tcpPort) cut() {
	p.mu.Lock()
	conns := make([]*trackedConn, 0, len(p.open))
	for c := range p.open {
		conns = append(conns, c)
	}
	p.mu.Unlock()
	for _, c := range conns {
		c.reset()
	}
}

func (p *tcpPort) where() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.address
}

func (p *tcpPort) connections() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.open)
}

// admit takes note of a connection, unless the port is closed or full.
func (p *tcpPort) admit(ln net.Listener, c *trackedConn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listener != ln || len(p.open) >= maxConnections {
		return false
	}
	p.open[c] = struct{}{}
	return true
}

func (p *tcpPort) forget(c *trackedConn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.open, c)
}

type trackedListener struct {
	net.Listener
	port *tcpPort
}

// Accept waits for a connection that the port admits.
func (l trackedListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		tcp, ok := conn.(*net.TCPConn)
		if !ok {
			return nil, errors.New("not a TCP connection")
		}
		tracked := &trackedConn{TCPConn: tcp, port: l.port}
		if l.port.admit(l.Listener, tracked) {
			return tracked, nil
		}
		tracked.reset()
	}
}

// trackedConn is a connection that its port knows while it is open.
type trackedConn struct {
	*net.TCPConn
	port *tcpPort
}

func (c *trackedConn) Close() error {
	c.port.forget(c)
	return c.TCPConn.Close()
}

// reset closes the connection so that the peer sees a reset, not an end.
func (c *trackedConn) reset() {
	c.TCPConn.SetLinger(0)
	c.Close()
}
