package main

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// newHTTP is an HTTP service; with certificates, inside TLS and with HTTP/2 for clients that negotiate it.
// Failing, it answers each request with 503.
func newHTTP(ctx context.Context, name, address string, answers http.Handler, secure *tls.Config, log *slog.Logger) *service {
	s := &service{name: name, gate: newGate()}
	server := &http.Server{
		Handler:           s.gated(answers),
		TLSConfig:         secure,
		ReadHeaderTimeout: 30 * time.Second,
		IdleTimeout:       idleLimit,
		MaxHeaderBytes:    1 << 20,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	s.port = newTCPPort(address, func(ln net.Listener) {
		if secure != nil {
			server.ServeTLS(ln, "", "")
			return
		}
		server.Serve(ln)
	})
	return s
}

// gated counts each request and lets it through according to the mode.
func (s *service) gated(answers http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer s.begin()()
		switch s.gate.pass(r.Context()) {
		case failing:
			http.Error(w, errFailing.Error(), http.StatusServiceUnavailable)
		case dead:
			panic(http.ErrAbortHandler)
		case healthy, slow:
			answers.ServeHTTP(w, r)
		}
	})
}
