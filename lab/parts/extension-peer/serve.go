package main

import (
	"context"
	"flag"
	"io"
	"net"

	pb "github.com/envoyproxy/gateway/proto/extension"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection"
)

// largest is the size of a message that both directions allow.
const largest = 100 << 20

// serve answers the hooks until the context ends; its first line of output has the address.
func serve(ctx context.Context, args []string, _ io.Reader, out io.Writer) error {
	f := flag.NewFlagSet("serve", flag.ContinueOnError)
	address := f.String("address", "127.0.0.1:0", "`address` to listen on")
	path := f.String("resources", "", "`path` of a JSON list of clusters and the objects behind them")
	target := f.String("eds-target", "127.0.0.1:5005", "`address` from which Envoy gets endpoints")
	if err := parse(f, args); err != nil {
		return err
	}
	resources, err := readResources(*path)
	if err != nil {
		return err
	}
	hooks, err := newHooks(resources, *target)
	if err != nil {
		return err
	}
	ln, err := net.Listen("tcp", *address)
	if err != nil {
		return err
	}
	server := newServer(hooks)
	defer context.AfterFunc(ctx, server.Stop)()
	if err := writeLine(out, map[string]string{"address": ln.Addr().String()}); err != nil {
		return err
	}
	return server.Serve(ln)
}

// newServer is the extension server with health and reflection.
func newServer(hooks *hooks) *grpc.Server {
	server := grpc.NewServer(grpc.MaxRecvMsgSize(largest), grpc.MaxSendMsgSize(largest))
	pb.RegisterEnvoyGatewayExtensionServer(server, hooks)
	healthpb.RegisterHealthServer(server, health.NewServer())
	reflection.Register(server)
	return server
}
