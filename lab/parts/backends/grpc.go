package main

import (
	"context"
	"crypto/tls"
	"net"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/reflection"
	"google.golang.org/grpc/status"
)

var errUnavailable = status.Error(codes.Unavailable, errFailing.Error())

// newGRPC is a gRPC service: echo, health, reflection; with certificates, inside TLS. Failing, health is NOT_SERVING
// and every other call, running or new, ends with UNAVAILABLE.
func newGRPC(name, backend, address string, secure *tls.Config) *service {
	s := &service{name: name, gate: newGate()}
	checks := health.NewServer()
	s.changed = func(m mode) {
		serving := healthpb.HealthCheckResponse_SERVING
		if m.Condition == failing || m.Condition == dead {
			serving = healthpb.HealthCheckResponse_NOT_SERVING
		}
		checks.SetServingStatus("", serving)
		checks.SetServingStatus(echoService, serving)
	}
	s.changed(mode{Condition: healthy})

	transport := insecure.NewCredentials()
	if secure != nil {
		transport = credentials.NewTLS(secure)
	}
	server := grpc.NewServer(
		grpc.Creds(transport),
		grpc.UnaryInterceptor(s.gateCall),
		grpc.StreamInterceptor(s.gateStream),
		grpc.ConnectionTimeout(30*time.Second),
		grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionIdle: idleLimit}),
		// Proxies ping often; a lab does not mind.
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: time.Second, PermitWithoutStream: true}),
	)
	server.RegisterService(echoRPC{backend}.desc(), struct{}{})
	healthpb.RegisterHealthServer(server, checks)
	reflection.Register(server)
	s.port = newTCPPort(address, func(ln net.Listener) { server.Serve(ln) })
	return s
}

// refuses reports whether a method gets UNAVAILABLE in this condition; health answers for itself.
func refuses(c condition, method string) bool {
	return c == dead || c == failing && !strings.HasPrefix(method, "/grpc.health.v1.Health/")
}

func (s *service) gateCall(ctx context.Context, in any, info *grpc.UnaryServerInfo, do grpc.UnaryHandler) (any, error) {
	defer s.begin()()
	if refuses(s.gate.pass(ctx), info.FullMethod) {
		return nil, errUnavailable
	}
	return do(ctx, in)
}

// gateStream ends a stream as soon as the service fails.
func (s *service) gateStream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, do grpc.StreamHandler) error {
	defer s.begin()()
	done := make(chan error, 1)
	go func() { done <- do(srv, slowStream{stream, s.gate}) }()
	for {
		m, changed := s.gate.now()
		if refuses(m.Condition, info.FullMethod) {
			return errUnavailable
		}
		select {
		case err := <-done:
			return err
		case <-changed:
		}
	}
}

// slowStream waits before each message that it hands on while the service is slow.
type slowStream struct {
	grpc.ServerStream
	gate *gate
}

func (s slowStream) RecvMsg(m any) error {
	err := s.ServerStream.RecvMsg(m)
	if err == nil {
		s.gate.pass(s.Context())
	}
	return err
}
