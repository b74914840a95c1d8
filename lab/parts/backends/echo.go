package main

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"time"
)

const idleLimit = 10 * time.Minute

var errFailing = errors.New("the service is set to fail")

// newEcho is a TCP service that sends back what it gets; with certificates, inside TLS.
//
//	failing   TCP: accepts and resets   TLS: refuses the handshake   open connections: reset
//	slow      each chunk, and the TLS handshake, waits
func newEcho(ctx context.Context, name, address string, secure *tls.Config) *service {
	s := &service{name: name, gate: newGate(), cutsWhenFailing: true}
	if secure != nil {
		secure = secure.Clone()
		secure.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
			if s.gate.pass(ctx) != healthy {
				return nil, errFailing
			}
			return nil, nil
		}
	}
	s.port = newTCPPort(address, func(ln net.Listener) {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			end := s.begin()
			go func() {
				defer end()
				s.echo(ctx, conn.(*trackedConn), secure)
			}()
		}
	})
	return s
}

// echo serves one connection until its end, its idle limit or a mode that resets it.
func (s *service) echo(ctx context.Context, raw *trackedConn, secure *tls.Config) {
	defer raw.Close()
	var conn net.Conn = raw
	if secure != nil {
		conn = tls.Server(raw, secure)
	} else if m, _ := s.gate.now(); m.Condition == failing {
		raw.reset()
		return
	}
	buffer := make([]byte, 64<<10)
	for {
		conn.SetDeadline(time.Now().Add(idleLimit))
		n, err := conn.Read(buffer)
		if err != nil {
			return
		}
		if s.gate.pass(ctx) != healthy {
			raw.reset()
			return
		}
		if _, err := conn.Write(buffer[:n]); err != nil {
			return
		}
	}
}
