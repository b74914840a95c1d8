// Command tailnet is a whole tailnet for tests on one machine: the vendor's test control server with its DERP
// and STUN servers, join keys that hold, and an admin endpoint to see and change it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/net/netutil"
)

const maxConnections = 4096

func main() {
	c, err := parseConfig(os.Args[1:], os.Stderr)
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "tailnet:", err)
		os.Exit(2)
	}
	log := newLog(os.Stderr, c.verbose)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	if err := run(ctx, c, log); err != nil {
		log.Error("tailnet failed", "error", err.Error())
		os.Exit(1)
	}
}

// run serves until the context ends and returns when everything is closed.
func run(ctx context.Context, c config, log *slog.Logger) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ln, err := net.Listen("tcp", c.listen)
	if err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	defer ln.Close()
	adminLn, err := net.Listen("tcp", c.admin)
	if err != nil {
		return fmt.Errorf("--admin: %w", err)
	}
	defer adminLn.Close()
	if c.url == "" {
		c.url = "http://" + ln.Addr().String()
	}
	r, err := startRelay(ctx, c, log)
	if err != nil {
		return err
	}
	defer r.close()
	tailnet := newControl(c.url, c.domain, r.region, log)
	go tailnet.reapEphemeral(ctx, c.ephemeralAfter)

	failed := make(chan error, 2)
	defer serve(ctx, ln, tailnet.open(), failed).Close()
	defer serve(ctx, adminLn, tailnet.admin(), failed).Close()

	derp := r.region.Regions[1].Nodes[0]
	addresses := map[string]string{
		"url": c.url, "admin": "http://" + adminLn.Addr().String(), "domain": c.domain,
		"derp": r.address(),
		"stun": net.JoinHostPort(c.derpHost, strconv.Itoa(derp.STUNPort)),
	}
	if c.readyFile != "" {
		if err := writeReady(c.readyFile, addresses); err != nil {
			return fmt.Errorf("--ready-file: %w", err)
		}
		defer os.Remove(c.readyFile)
	}
	log.Info("tailnet ready", "url", c.url, "admin", addresses["admin"], "derp", addresses["derp"], "stun", addresses["stun"])
	select {
	case <-ctx.Done():
		log.Info("tailnet stops")
		return nil
	case err := <-failed:
		return err
	}
}

// serve answers on a listener until it is closed; requests, and Noise connections too, end with the context.
func serve(ctx context.Context, ln net.Listener, h http.Handler, failed chan<- error) *http.Server {
	s := &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 10 * time.Second,
		MaxHeaderBytes:    64 << 10,
		BaseContext:       func(net.Listener) context.Context { return ctx },
	}
	go func() {
		if err := s.Serve(netutil.LimitListener(ln, maxConnections)); !errors.Is(err, http.ErrServerClosed) {
			failed <- err
		}
	}()
	return s
}
