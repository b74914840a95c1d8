package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
)

// verdict is the outcome of all checks of a server.
type verdict struct {
	Health     map[string]string   `json:"health"`
	Reflection map[string][]string `json:"reflection"`
	Hooks      map[string]string   `json:"hooks"`
	Endpoints  []string            `json:"endpoints"`
	Problems   []string            `json:"problems"`
}

// check calls every method of a server once, as other clients would, and fails when something is not as it must be.
func check(ctx context.Context, args []string, _ io.Reader, out io.Writer) error {
	f := flag.NewFlagSet("check", flag.ContinueOnError)
	address := f.String("address", "", "`address` of the extension server")
	path := f.String("resources", "", "`path` of a JSON list of clusters and the objects behind them")
	gateway := f.String("gateway", "default/gateway", "`namespace/name` of the Gateway whose Envoy subscribes to endpoints")
	if err := parse(f, args); err != nil {
		return err
	}
	resources, err := readResources(*path)
	if err != nil {
		return err
	}
	if len(resources) == 0 {
		return fmt.Errorf("--resources is missing: which cluster leads to the mesh")
	}
	conn, err := dial(*address)
	if err != nil {
		return err
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	result := judge(ctx, conn, resources[0], *gateway)
	if err := writeLine(out, result); err != nil {
		return err
	}
	if len(result.Problems) > 0 {
		return fmt.Errorf("%d problems", len(result.Problems))
	}
	return nil
}

func judge(ctx context.Context, conn *grpc.ClientConn, r resource, gateway string) verdict {
	v := verdict{Problems: []string{}}
	note := func(what string, err error) {
		if err != nil {
			v.Problems = append(v.Problems, fmt.Sprintf("%s: %v", what, err))
		}
	}
	var err error
	v.Health, err = checkHealth(ctx, conn)
	note("health", err)
	v.Reflection, err = checkReflection(ctx, conn)
	note("reflection", err)
	v.Hooks, err = checkHooks(ctx, conn, r)
	note("hooks", err)
	v.Endpoints, err = checkEndpoints(ctx, conn, r.Cluster, gateway)
	note("endpoints", err)
	return v
}

// checkHealth calls both methods, for the server as a whole and for a service that does not exist.
func checkHealth(ctx context.Context, conn *grpc.ClientConn) (map[string]string, error) {
	client := healthpb.NewHealthClient(conn)
	statuses := map[string]string{}
	checked, err := client.Check(ctx, &healthpb.HealthCheckRequest{})
	if err != nil {
		return statuses, err
	}
	statuses["check"] = checked.GetStatus().String()
	_, err = client.Check(ctx, &healthpb.HealthCheckRequest{Service: "unknown"})
	statuses["checkUnknown"] = status.Code(err).String()
	for name, service := range map[string]string{"watch": "", "watchUnknown": "unknown"} {
		watching, cancel := context.WithCancel(ctx)
		defer cancel()
		stream, err := client.Watch(watching, &healthpb.HealthCheckRequest{Service: service})
		if err != nil {
			return statuses, err
		}
		first, err := stream.Recv()
		if err != nil {
			return statuses, fmt.Errorf("%s: %w", name, err)
		}
		statuses[name] = first.GetStatus().String()
	}
	for name, want := range map[string]string{
		"check": "SERVING", "watch": "SERVING", "checkUnknown": codes.NotFound.String(), "watchUnknown": "SERVICE_UNKNOWN",
	} {
		if statuses[name] != want {
			return statuses, fmt.Errorf("%s is %s, want %s", name, statuses[name], want)
		}
	}
	return statuses, nil
}

// checkEndpoints opens one delta stream and gives the addresses that come first.
func checkEndpoints(ctx context.Context, conn *grpc.ClientConn, cluster, gateway string) ([]string, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	arrivals := make(chan arrival, 1)
	hear := func(a arrival) {
		select {
		case arrivals <- a:
		default: // Only the first is of interest.
		}
	}
	addresses := []string{}
	if err := (envoy{gateway: gateway, conn: conn}).follow(ctx, cluster, hear); err != nil {
		return addresses, err
	}
	select {
	case a := <-arrivals:
		for _, locality := range a.assignment.GetEndpoints() {
			for _, e := range locality.GetLbEndpoints() {
				at := e.GetEndpoint().GetAddress().GetSocketAddress()
				addresses = append(addresses, fmt.Sprintf("%s:%d", at.GetAddress(), at.GetPortValue()))
			}
		}
		slices.Sort(addresses)
		switch {
		case a.err != nil:
			return addresses, a.err
		case len(addresses) == 0:
			return addresses, fmt.Errorf("none came for %s", cluster)
		case a.version == "":
			return addresses, fmt.Errorf("%s came without a version", cluster)
		}
		return addresses, nil
	case <-time.After(timeout / 3):
		return addresses, fmt.Errorf("no answer for %s", cluster)
	}
}
