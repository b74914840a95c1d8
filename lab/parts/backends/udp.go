package main

import (
	"context"
	"net"
	"sync"
)

const maxDatagramsInHand = 1024

// udpPort is a socket that can be closed, so that the machine answers "port unreachable", and opened again.
type udpPort struct {
	serve func(net.PacketConn) // returns when the socket is closed

	mu      sync.Mutex
	address string
	socket  net.PacketConn
}

func (p *udpPort) start() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.socket != nil {
		return nil
	}
	socket, err := net.ListenPacket("udp", p.address)
	if err != nil {
		return err
	}
	p.address, p.socket = socket.LocalAddr().String(), socket
	go p.serve(socket)
	return nil
}

func (p *udpPort) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.socket != nil {
		p.socket.Close()
		p.socket = nil
	}
}

// cut has nothing to cut: UDP has no connections.
func (p *udpPort) cut() {}

func (p *udpPort) connections() int { return 0 }

func (p *udpPort) where() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.address
}

// newUDP is a service that sends each datagram back; failing, it sends nothing.
func newUDP(ctx context.Context, address string) *service {
	s := &service{name: "udp", gate: newGate()}
	inHand := make(chan struct{}, maxDatagramsInHand)
	s.port = &udpPort{address: address, serve: func(socket net.PacketConn) {
		buffer := make([]byte, 64<<10)
		for {
			n, from, err := socket.ReadFrom(buffer)
			if err != nil {
				return
			}
			s.requests.Add(1)
			select {
			case inHand <- struct{}{}:
			default:
				continue // too many wait: lost, as datagrams may be
			}
			datagram := append([]byte(nil), buffer[:n]...)
			go func() {
				defer func() { <-inHand }()
				if s.gate.pass(ctx) == healthy {
					socket.WriteTo(datagram, from)
				}
			}()
		}
	}}
	return s
}
