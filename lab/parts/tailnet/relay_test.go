package main

import (
	"context"
	"net"
	"testing"
	"time"

	"tailscale.com/derp"
	"tailscale.com/derp/derphttp"
	"tailscale.com/envknob"
	"tailscale.com/net/netmon"
	"tailscale.com/tailcfg"
	"tailscale.com/types/key"
)

// TestRelayWithoutTLS sends a packet from a client without TLS to one with it, while a third client sends nothing.
func TestRelayWithoutTLS(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	r, err := startRelay(ctx, config{derpHost: "127.0.0.1"}, newLog(t.Output(), false))
	if err != nil {
		t.Fatal(err)
	}
	defer r.close()
	silent, err := net.Dial("tcp", r.address())
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	region := func() *tailcfg.DERPRegion { return r.region.Regions[1] }
	connect := func(plain string) *derphttp.Client {
		envknob.Setenv("TS_DEBUG_USE_DERP_HTTP", plain)
		defer envknob.Setenv("TS_DEBUG_USE_DERP_HTTP", "")
		c := derphttp.NewRegionClient(key.NewNode(), t.Logf, netmon.NewStatic(), region)
		t.Cleanup(func() { c.Close() })
		if err := c.Connect(ctx); err != nil {
			t.Fatal(err)
		}
		return c
	}
	plain, secure := connect("true"), connect("false")
	defer context.AfterFunc(ctx, func() { secure.Close() })()
	go func() {
		// The relay drops what comes before it has registered the receiver.
		again := time.NewTicker(100 * time.Millisecond)
		defer again.Stop()
		for ctx.Err() == nil {
			plain.Send(secure.SelfPublicKey(), []byte("hello"))
			<-again.C
		}
	}()
	for {
		m, err := secure.Recv()
		if err != nil {
			t.Fatal(err)
		}
		if p, ok := m.(derp.ReceivedPacket); ok {
			if got := string(p.Data); got != "hello" || p.Source != plain.SelfPublicKey() {
				t.Fatalf("received %q from %s", got, p.Source)
			}
			return
		}
	}
}
