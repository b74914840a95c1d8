package main

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"golang.org/x/net/http2"
	"tailscale.com/control/controlhttp/controlhttpserver"
	"tailscale.com/tailcfg"
	"tailscale.com/tstest/integration/testcontrol"
	"tailscale.com/types/key"
)

// control stands before the vendor's test control server: it ends the Noise connection, so that it can read
// what a node requests, and decides who joins and who sees whom. The rest (addresses, netmaps, map polls,
// DNS, relay) is the vendor's.
type control struct {
	vendor   *testcontrol.Server
	private  key.MachinePrivate
	legacy   key.MachinePublic
	url      string
	domain   string
	keys     *keyring
	members  *roster
	services *services
	joining  sync.Mutex
	log      *slog.Logger
}

// newControl makes an empty tailnet for nodes that reach it at url.
func newControl(url, domain string, region *tailcfg.DERPMap, log *slog.Logger) *control {
	vendor := &testcontrol.Server{
		Logf:            vendorLog(log, "control"),
		DERPMap:         region,
		ExplicitBaseURL: url,
		MagicDNSDomain:  domain,
		DNSConfig:       &tailcfg.DNSConfig{Proxied: true, Domains: []string{domain}},
	}
	// Adding no record changes nothing and makes every map poll answer again.
	announce := func() { vendor.AddDNSRecords() }
	return &control{
		vendor:   vendor,
		private:  key.NewMachine(),
		legacy:   key.NewMachine().Public(),
		url:      url,
		domain:   domain,
		keys:     newKeyring(),
		members:  newRoster(announce),
		services: newServices(announce),
		log:      log,
	}
}

// open serves what a node requests before it has a Noise connection.
func (c *control) open() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /key", c.serveKey)
	mux.HandleFunc("/ts2021", c.serveNoise)
	mux.HandleFunc("GET /login/", func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "there is no login here: join with tailscale up --auth-key=<key>", http.StatusForbidden)
	})
	mux.HandleFunc("GET /generate_204", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	return mux
}

// inside serves what a node requests through its Noise connection. The vendor's server ends the process
// at a path it does not know, so only known ones pass.
func (c *control) inside() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /machine/register", c.serveRegister)
	mux.HandleFunc("POST /machine/map", c.serveMap)
	mux.Handle("POST /machine/set-dns", c.vendor)
	mux.Handle("POST /machine/update-health", c.vendor)
	mux.Handle("POST /c2n/", c.vendor)
	return mux
}

func (c *control) serveKey(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(tailcfg.OverTLSPublicKeyResponse{LegacyPublicKey: c.legacy, PublicKey: c.private.Public()})
}

// serveNoise turns the request into a Noise connection and serves HTTP/2 on it until either side or the process ends.
func (c *control) serveNoise(w http.ResponseWriter, r *http.Request) {
	ctx := r.Context()
	conn, err := controlhttpserver.AcceptHTTP(ctx, w, r, c.private, nil)
	if err != nil {
		c.log.Warn("noise handshake failed", "remote", r.RemoteAddr, "error", err.Error())
		return
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	h2 := http2.Server{ReadIdleTimeout: 30 * time.Second}
	h2.ServeConn(conn, &http2.ServeConnOpts{
		Context: withMachine(ctx, conn.Peer()),
		BaseConfig: &http.Server{
			Handler:  c.inside(),
			ErrorLog: slog.NewLogLogger(c.log.Handler(), slog.LevelWarn),
		},
	})
}
