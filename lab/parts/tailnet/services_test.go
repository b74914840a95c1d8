package main

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"tailscale.com/tailcfg"
	"tailscale.com/types/key"
)

// serve has a node serve a service at a port, and advertise it.
func (n *node) serve(service, port, target string) {
	n.t.Helper()
	out, err := n.cli(timeout, "serve", "--yes", "--service="+service, "--tcp="+port, target)
	if err != nil {
		n.t.Fatalf("%v: %s", err, out)
	}
}

func (l lab) services() []serviceView {
	l.t.Helper()
	var list struct{ Services []serviceView }
	l.must("GET", "/services", "", &list)
	return list.Services
}

// hasPrimary reports whether the connections of others to the only service go to a node; an empty name is none.
func hasPrimary(l lab, fqdn string) error {
	hosts := l.services()[0].Hosts
	found := ""
	for _, h := range hosts {
		for _, n := range l.nodes() {
			if h.IsPrimary && h.ID == n.ID {
				found = n.FQDN
			}
		}
	}
	if found != fqdn {
		return fmt.Errorf("it is %q of %+v", found, hosts)
	}
	return nil
}

func TestServiceLeadsToANodeThatAdvertisesIt(t *testing.T) {
	p := startPair(t)
	l := p.lab
	third := startNode(t, l, "third").join(l.addKey(`{"tags": ["tag:lab"]}`).Key)
	var created serviceView
	l.must("PUT", "/services/svc:web", "", &created)
	echo := net.JoinHostPort("127.0.0.1", startEcho(t))
	p.far.serve("svc:web", "443", "tcp://"+echo)
	eventually(t, "far is the primary", func() error { return hasPrimary(l, "far.example.ts.net") })
	byIP := net.JoinHostPort(created.Addresses[0].String(), "443")
	for _, target := range []string{byIP, "web.example.ts.net:443"} {
		eventually(t, "near reaches "+target, func() error { return reach(p.near.connect, target) })
	}
	if reach(p.near.connect, net.JoinHostPort(created.Addresses[0].String(), "444")) == nil {
		t.Error("a port that is not served answers")
	}

	third.serve("svc:web", "443", "tcp://"+echo)
	if out, err := p.far.cli(timeout, "serve", "drain", "svc:web"); err != nil {
		t.Fatal(err, out)
	}
	eventually(t, "third is the primary", func() error { return hasPrimary(l, "third.example.ts.net") })
	eventually(t, "near reaches it there", func() error { return reach(p.near.connect, byIP) })

	if out, err := third.cli(timeout, "serve", "drain", "svc:web"); err != nil {
		t.Fatal(err, out)
	}
	eventually(t, "no node is the primary", func() error { return hasPrimary(l, "") })
	eventually(t, "it is unreachable", func() error {
		if reach(p.near.connect, byIP) == nil {
			return errors.New("it answers")
		}
		return nil
	})
	l.must("DELETE", "/services/svc:web", "", nil)
	if left := l.services(); len(left) > 0 {
		t.Errorf("%+v is left", left)
	}
}

func TestAnEarlierReportDoesNotReplaceALaterOne(t *testing.T) {
	s := newServices(func() {})
	s.create("svc:web")
	k := key.NewNode().Public()
	report := func(isActive bool) ([]*tailcfg.VIPService, error) {
		return []*tailcfg.VIPService{{Name: "svc:web", Active: isActive}}, nil
	}
	isAsked, isAskedAgain, isAnswered := make(chan struct{}), make(chan struct{}), make(chan struct{})
	var both sync.WaitGroup
	both.Go(func() {
		_ = s.ask(k, func() ([]*tailcfg.VIPService, error) {
			close(isAsked)
			<-isAnswered
			return report(false)
		})
	})
	<-isAsked
	both.Go(func() {
		_ = s.ask(k, func() ([]*tailcfg.VIPService, error) { return report(true) })
		close(isAskedAgain)
	})
	select {
	case <-isAskedAgain:
	case <-time.After(100 * time.Millisecond):
	}
	close(isAnswered)
	both.Wait()
	if !s.all()[0].hosts[k] {
		t.Error("the report from before the service was advertised is kept")
	}
}
