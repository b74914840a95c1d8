// Command backends is one process with a service of each protocol for tests: every one can be made slow,
// failing or dead, and mended, by a control call.
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

	"google.golang.org/protobuf/reflect/protoregistry"
)

func main() {
	c, err := parseConfig(os.Args[1:], os.Stderr)
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "backends:", err)
		os.Exit(2)
	}
	log := slog.New(slog.NewJSONHandler(os.Stderr, nil))
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	err = registerEcho(protoregistry.GlobalFiles)
	if err == nil {
		err = run(ctx, c, log)
	}
	if err != nil {
		log.Error("backends failed", "error", err.Error())
		os.Exit(1)
	}
}

// run serves until the context ends and returns when everything is closed.
func run(ctx context.Context, c config, log *slog.Logger) error {
	secure, authority, err := issue(c.names)
	if err != nil {
		return fmt.Errorf("--names: %w", err)
	}
	if c.caFile != "" {
		if err := writeAtOnce(c.caFile, authority); err != nil {
			return fmt.Errorf("--ca-file: %w", err)
		}
	}
	at := func(protocol string) string { return net.JoinHostPort(c.host, strconv.Itoa(*c.ports[protocol])) }
	answers := newAnswers(c.name)
	services := map[string]*service{
		"http":  newHTTP(ctx, "http", at("http"), answers, nil, log),
		"grpc":  newGRPC("grpc", c.name, at("grpc"), nil),
		"grpcs": newGRPC("grpcs", c.name, at("grpcs"), secure),
		"https": newHTTP(ctx, "https", at("https"), answers, secure, log),
		"tls":   newEcho(ctx, "tls", at("tls"), secure),
		"tcp":   newEcho(ctx, "tcp", at("tcp"), nil),
		"udp":   newUDP(ctx, at("udp")),
	}
	addresses := map[string]string{}
	for _, name := range protocols {
		s := services[name]
		defer s.port.stop()
		if err := s.port.start(); err != nil {
			return fmt.Errorf("--%s-port: %w", name, err)
		}
		addresses[name] = s.port.where()
	}
	ln, err := net.Listen("tcp", c.control)
	if err != nil {
		return fmt.Errorf("--control: %w", err)
	}
	addresses["control"] = "http://" + ln.Addr().String()
	return serve(ctx, c, ln, control{services, log}, addresses)
}

// serve answers control calls until the context ends.
func serve(ctx context.Context, c config, ln net.Listener, calls control, addresses map[string]string) error {
	server := &http.Server{Handler: calls.handler(), ReadHeaderTimeout: 10 * time.Second, MaxHeaderBytes: 64 << 10}
	defer server.Close()
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ln) }()
	if c.readyFile != "" {
		if err := writeReady(c.readyFile, addresses); err != nil {
			return fmt.Errorf("--ready-file: %w", err)
		}
		defer os.Remove(c.readyFile)
	}
	calls.log.Info("backends ready", "name", c.name, "control", addresses["control"])
	select {
	case <-ctx.Done():
		calls.log.Info("backends stop", "name", c.name)
		return nil
	case err := <-ended:
		return err
	}
}
