package main

import (
	"crypto/tls"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"
)

func (l lab) dialTCP() (net.Conn, error) {
	return net.DialTimeout("tcp", l.addresses["tcp"], timeout)
}

func (l lab) dialTLS() (net.Conn, error) {
	return tls.DialWithDialer(&net.Dialer{Timeout: timeout}, "tcp", l.addresses["tls"], l.secure("localhost"))
}

// fresh has a line echoed over a new connection.
func fresh(dial func() (net.Conn, error)) error {
	conn, err := dial()
	if err != nil {
		return err
	}
	defer conn.Close()
	return echoed(conn, "hello")
}

func TestTCPTakesEachMode(t *testing.T) {
	l := startLab(t)
	open, err := l.dialTCP()
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	took(t, "healthy", false, func() error { return echoed(open, "hello") })
	l.make("tcp", slowly)
	took(t, "slow, on an open connection", true, func() error { return echoed(open, "hello") })
	took(t, "slow, on a new one", true, func() error { return fresh(l.dialTCP) })
	l.make("tcp", mode{Condition: failing})
	mustFail(t, "failing, on an open connection", echoed(open, "hello"), syscall.ECONNRESET)
	// The reset may come so soon that the dial already returns it; a refusal would be another error.
	conn, err := l.dialTCP()
	if err == nil {
		defer conn.Close()
		conn.SetDeadline(time.Now().Add(timeout))
		_, err = conn.Read(make([]byte, 1))
	}
	mustFail(t, "failing, on a new one", err, syscall.ECONNRESET)
	l.make("tcp", mode{Condition: dead})
	mustFail(t, "dead", fresh(l.dialTCP), syscall.ECONNREFUSED)
	l.make("tcp", mode{Condition: healthy})
	took(t, "mended", false, func() error { return fresh(l.dialTCP) })
	if s := l.state("tcp"); s.Requests != 4 {
		t.Errorf("%d connections counted, want 4", s.Requests)
	}
}

func TestTLSTakesEachMode(t *testing.T) {
	l := startLab(t)
	open, err := l.dialTLS()
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	took(t, "healthy", false, func() error { return echoed(open, "hello") })
	l.make("tls", slowly)
	took(t, "slow, on an open connection", true, func() error { return echoed(open, "hello") })
	took(t, "slow, in the handshake", true, func() error {
		conn, err := l.dialTLS()
		if err == nil {
			conn.Close()
		}
		return err
	})
	l.make("tls", mode{Condition: failing})
	mustFail(t, "failing, on an open connection", echoed(open, "hello"), syscall.ECONNRESET)
	if err := fresh(l.dialTLS); err == nil || !strings.Contains(err.Error(), "remote error: tls") {
		t.Errorf("failing: %v, want the handshake refused", err)
	}
	l.make("tls", mode{Condition: dead})
	mustFail(t, "dead", fresh(l.dialTLS), syscall.ECONNREFUSED)
	l.make("tls", mode{Condition: healthy})
	took(t, "mended", false, func() error { return fresh(l.dialTLS) })
}

func TestCertificateHasTheNamesItWasGiven(t *testing.T) {
	l := startLab(t, "--names", "db.example.ts.net,100.64.0.7")
	for name, isGood := range map[string]bool{"db.example.ts.net": true, "100.64.0.7": true, "localhost": false} {
		conn, err := tls.Dial("tcp", l.addresses["tls"], l.secure(name))
		if (err == nil) != isGood {
			t.Errorf("as %s: %v", name, err)
		}
		if err == nil {
			conn.Close()
		}
	}
}

func TestUDPTakesEachMode(t *testing.T) {
	l := startLab(t)
	conn, err := net.Dial("udp", l.addresses["udp"])
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	took(t, "healthy", false, func() error { return echoed(conn, "hello") })
	l.make("udp", slowly)
	took(t, "slow", true, func() error { return echoed(conn, "hello") })
	l.make("udp", mode{Condition: failing})
	conn.Write([]byte("hello"))
	conn.SetDeadline(time.Now().Add(delay))
	if _, err := conn.Read(make([]byte, 9)); err == nil || !err.(net.Error).Timeout() {
		t.Errorf("failing: %v, want silence", err)
	}
	l.make("udp", mode{Condition: dead})
	mustFail(t, "dead", echoed(conn, "hello"), syscall.ECONNREFUSED)
	l.make("udp", mode{Condition: healthy})
	took(t, "mended", false, func() error { return echoed(conn, "hello") })
	if n := l.state("udp").Requests; n != 4 {
		t.Errorf("%d datagrams counted, want 4", n)
	}
}
