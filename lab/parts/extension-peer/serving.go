package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
)

// awaitServing waits until a server, which may not have started yet, is SERVING, and writes when that was.
func awaitServing(ctx context.Context, args []string, _ io.Reader, out io.Writer) error {
	f := flag.NewFlagSet("serving", flag.ContinueOnError)
	address := f.String("address", "", "`address` of the extension server")
	if err := parse(f, args); err != nil {
		return err
	}
	often := backoff.Config{BaseDelay: 2 * time.Millisecond, Multiplier: 1, MaxDelay: 2 * time.Millisecond}
	conn, err := dial(*address, grpc.WithConnectParams(grpc.ConnectParams{Backoff: often, MinConnectTimeout: time.Second}))
	if err != nil {
		return err
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	for {
		answer, err := healthpb.NewHealthClient(conn).Check(ctx, &healthpb.HealthCheckRequest{}, grpc.WaitForReady(true))
		if err == nil && answer.GetStatus() == healthpb.HealthCheckResponse_SERVING {
			return writeLine(out, map[string]float64{"atUnixMs": float64(time.Now().UnixMicro()) / 1000})
		}
		if ctx.Err() != nil {
			return fmt.Errorf("not SERVING in time, last %s: %w", answer.GetStatus(), ctx.Err())
		}
		time.Sleep(time.Millisecond)
	}
}
