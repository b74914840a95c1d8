package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	endpointservice "github.com/envoyproxy/go-control-plane/envoy/service/endpoint/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/anypb"
)

// asProgram names the variable that makes the test binary the program itself.
const asProgram = "EXTENSION_PEER_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

const (
	clearCluster = "httproute/mesh/clear/rule/0"
	grpcCluster  = "grpcroute/mesh/grpc/rule/0"
)

func object(protocol string) json.RawMessage {
	return json.RawMessage(fmt.Sprintf(`{"kind": "MeshEndpoints", "spec": {"endpoints": [{"protocol": %q}]}}`, protocol))
}

var two = []resource{{clearCluster, object("HTTP")}, {grpcCluster, object("gRPC")}}

// saved writes resources into a file.
func saved(t *testing.T, resources []resource) string {
	t.Helper()
	text, err := json.Marshal(resources)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "resources.json")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// started serves until the test ends, and gives the address.
func started(t *testing.T, resources []resource, more ...func(*grpc.Server)) string {
	t.Helper()
	hooks, err := newHooks(resources, "127.0.0.1:5005")
	if err != nil {
		t.Fatal(err)
	}
	server := newServer(hooks)
	for _, add := range more {
		add(server)
	}
	return listening(t, server)
}

func listening(t *testing.T, server *grpc.Server) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go server.Serve(ln)
	t.Cleanup(server.Stop)
	return ln.Addr().String()
}

// ran runs a mode with some input, and reads its last line of output.
func ran(t *testing.T, into any, input string, args ...string) error {
	t.Helper()
	var out bytes.Buffer
	err := run(t.Context(), args, bytes.NewBufferString(input), &out)
	lines := bytes.Split(bytes.TrimSpace(out.Bytes()), []byte("\n"))
	if last := lines[len(lines)-1]; len(last) > 0 {
		if err := json.Unmarshal(last, into); err != nil {
			t.Fatalf("output is not JSON: %s", out.String())
		}
	}
	return err
}

// oneAddress answers every subscription with the one address that a file has, and again when it has another.
type oneAddress struct {
	endpointservice.UnimplementedEndpointDiscoveryServiceServer
	path string
}

func withEndpoints(path string) func(*grpc.Server) {
	return func(server *grpc.Server) {
		endpointservice.RegisterEndpointDiscoveryServiceServer(server, oneAddress{path: path})
	}
}

func (o oneAddress) DeltaEndpoints(stream endpointservice.EndpointDiscoveryService_DeltaEndpointsServer) error {
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	if first.GetNode().GetCluster() == "" || first.GetTypeUrl() != assignmentType {
		return fmt.Errorf("the first request must name the node and the type: %v", first)
	}
	for sent := ""; stream.Context().Err() == nil; time.Sleep(time.Millisecond) {
		text, _ := os.ReadFile(o.path)
		if address := string(text); address != sent {
			if err := stream.Send(assigned(first.GetResourceNamesSubscribe()[0], address)); err != nil {
				return err
			}
			if ack, err := stream.Recv(); err != nil || ack.GetResponseNonce() != address || ack.GetErrorDetail() != nil {
				return fmt.Errorf("not taken: %v, %w", ack, err)
			}
			sent = address
		}
	}
	return context.Cause(stream.Context())
}

func assigned(cluster, address string) *discoveryv3.DeltaDiscoveryResponse {
	at := &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
		Address: address, PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: 80},
	}}}
	assignment, err := anypb.New(&endpointv3.ClusterLoadAssignment{
		ClusterName: cluster,
		Endpoints: []*endpointv3.LocalityLbEndpoints{{LbEndpoints: []*endpointv3.LbEndpoint{{
			HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{Address: at}},
		}}}},
	})
	if err != nil {
		panic(err)
	}
	return &discoveryv3.DeltaDiscoveryResponse{
		TypeUrl:   assignmentType,
		Nonce:     address,
		Resources: []*discoveryv3.Resource{{Name: cluster, Version: address, Resource: assignment}},
	}
}
