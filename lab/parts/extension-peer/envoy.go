package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	endpointservice "github.com/envoyproxy/go-control-plane/envoy/service/endpoint/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
)

const assignmentType = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment"

// arrival is an assignment that has reached an Envoy, or the end of the stream that should have brought it.
type arrival struct {
	envoy      int
	cluster    string
	at         time.Time
	assignment *endpointv3.ClusterLoadAssignment
	version    string
	// Why the stream is over.
	err error
}

// has reports whether an assignment has an endpoint with an address.
func (a arrival) has(address string) bool {
	for _, locality := range a.assignment.GetEndpoints() {
		for _, e := range locality.GetLbEndpoints() {
			if e.GetEndpoint().GetAddress().GetSocketAddress().GetAddress() == address {
				return true
			}
		}
	}
	return false
}

// envoy follows clusters as Envoy does: one connection, one stream for each of its clusters.
type envoy struct {
	number  int
	gateway string
	conn    *grpc.ClientConn
	// What is built into it: part of the first request of each stream.
	extensions []*corev3.Extension
}

// someExtensions returns extensions that take about size bytes in a request; those of an Envoy take 60,000.
func someExtensions(bytes int) []*corev3.Extension {
	var list []*corev3.Extension
	for size := 0; size < bytes; {
		number := len(list)
		one := &corev3.Extension{
			Name:     fmt.Sprintf("envoy.filters.http.extension_%d", number),
			Category: "envoy.filters.http",
			TypeUrls: []string{fmt.Sprintf("envoy.extensions.filters.http.extension_%d.v3.Settings", number)},
		}
		list = append(list, one)
		size += proto.Size(one) + 2
	}
	return list
}

// follow opens the stream of one cluster, reports each response, and acknowledges it.
func (e envoy) follow(ctx context.Context, cluster string, report func(arrival)) error {
	stream, err := endpointservice.NewEndpointDiscoveryServiceClient(e.conn).DeltaEndpoints(ctx)
	if err != nil {
		return err
	}
	first := &discoveryv3.DeltaDiscoveryRequest{
		Node:                   &corev3.Node{Id: fmt.Sprintf("envoy-%d", e.number), Cluster: e.gateway, Extensions: e.extensions},
		TypeUrl:                assignmentType,
		ResourceNamesSubscribe: []string{cluster},
	}
	// EOF means that the stream is over already: receiving returns the cause.
	if err := stream.Send(first); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	go e.receive(stream, cluster, report)
	return nil
}

func (e envoy) receive(stream endpointservice.EndpointDiscoveryService_DeltaEndpointsClient, cluster string, report func(arrival)) {
	for {
		response, err := stream.Recv()
		at := time.Now()
		if err == nil {
			err = stream.Send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: assignmentType, ResponseNonce: response.GetNonce()})
		}
		if err != nil {
			report(arrival{envoy: e.number, cluster: cluster, at: at, err: err})
			return
		}
		for _, name := range response.GetRemovedResources() {
			report(arrival{envoy: e.number, cluster: name, at: at})
		}
		for _, r := range response.GetResources() {
			assignment := &endpointv3.ClusterLoadAssignment{}
			err := r.GetResource().UnmarshalTo(assignment)
			report(arrival{e.number, cluster, at, assignment, r.GetVersion(), err})
		}
	}
}
