package main

import (
	"context"
	"fmt"

	pb "github.com/envoyproxy/gateway/proto/extension"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
)

// hookCall is a call of a hook and what is to become of the message inside.
type hookCall struct {
	name string
	// What was sent and what came back, or the error of the call.
	do func() (before, after proto.Message, err error)
	// Whether the message must come back changed, so that it leads to the mesh; or else as it was.
	isOurs bool
}

// checkHooks calls every hook: with a cluster of ours, and with messages that do not concern the mesh.
func checkHooks(ctx context.Context, conn *grpc.ClientConn, r resource) (map[string]string, error) {
	results := map[string]string{}
	ours, err := clusterRequest(r)
	if err != nil {
		return results, err
	}
	foreign, err := sampleCluster("httproute/shop/service/rule/0")
	if err != nil {
		return results, err
	}
	for _, c := range hookCalls(ctx, pb.NewEnvoyGatewayExtensionClient(conn), ours, foreign) {
		before, after, err := c.do()
		cluster, isCluster := after.(*clusterv3.Cluster)
		switch {
		case err != nil:
			results[c.name] = err.Error()
			return results, fmt.Errorf("%s: %w", c.name, err)
		case proto.Equal(before, after):
			results[c.name] = "unchanged"
		case isCluster && isMesh(cluster):
			results[c.name] = "changed"
		default:
			results[c.name] = "spoiled"
		}
		if want := map[bool]string{true: "changed", false: "unchanged"}[c.isOurs]; results[c.name] != want {
			return results, fmt.Errorf("%s came back %s, want %s", c.name, results[c.name], want)
		}
	}
	return results, nil
}

func hookCalls(ctx context.Context, client pb.EnvoyGatewayExtensionClient, ours *pb.PostClusterModifyRequest, foreign *clusterv3.Cluster) []hookCall {
	route := &routev3.Route{Name: "httproute/shop/service/rule/0/match/0"}
	host := &routev3.VirtualHost{Name: "shop", Domains: []string{"shop.example.com"}}
	listener := &listenerv3.Listener{Name: "default/gateway/http"}
	assignment := &endpointv3.ClusterLoadAssignment{ClusterName: foreign.GetName()}
	return []hookCall{
		{"Route", func() (proto.Message, proto.Message, error) {
			answer, err := client.PostRouteModify(ctx, &pb.PostRouteModifyRequest{Route: route})
			return route, answer.GetRoute(), err
		}, false},
		{"VirtualHost", func() (proto.Message, proto.Message, error) {
			answer, err := client.PostVirtualHostModify(ctx, &pb.PostVirtualHostModifyRequest{VirtualHost: host})
			return host, answer.GetVirtualHost(), err
		}, false},
		{"HTTPListener", func() (proto.Message, proto.Message, error) {
			answer, err := client.PostHTTPListenerModify(ctx, &pb.PostHTTPListenerModifyRequest{Listener: listener})
			return listener, answer.GetListener(), err
		}, false},
		{"Endpoints", func() (proto.Message, proto.Message, error) {
			answer, err := client.PostEndpointsModify(ctx, &pb.PostEndpointsModifyRequest{LoadAssignment: assignment})
			return assignment, answer.GetLoadAssignment(), err
		}, false},
		{"Cluster", func() (proto.Message, proto.Message, error) {
			answer, err := client.PostClusterModify(ctx, ours)
			return ours.GetCluster(), answer.GetCluster(), err
		}, false},
		{"Translation", func() (proto.Message, proto.Message, error) {
			answer, err := client.PostTranslateModify(ctx, &pb.PostTranslateModifyRequest{Clusters: []*clusterv3.Cluster{ours.GetCluster()}})
			return ours.GetCluster(), only(answer.GetClusters()), err
		}, true},
		{"Translation of others", func() (proto.Message, proto.Message, error) {
			answer, err := client.PostTranslateModify(ctx, &pb.PostTranslateModifyRequest{Clusters: []*clusterv3.Cluster{foreign}})
			return foreign, only(answer.GetClusters()), err
		}, false},
	}
}

// only is the one cluster of a list; of any other list it is a cluster that cannot be right.
func only(list []*clusterv3.Cluster) *clusterv3.Cluster {
	if len(list) != 1 {
		return &clusterv3.Cluster{Name: fmt.Sprintf("%d clusters came back", len(list))}
	}
	return list[0]
}
