package main

import (
	"testing"

	pb "github.com/envoyproxy/gateway/proto/extension"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
)

func messageBytes(clusters []*clusterv3.Cluster) int {
	return proto.Size(&pb.PostTranslateModifyRequest{Clusters: clusters})
}

func TestAClusterOfTheMeshGetsWhatItNeedsAndKeepsWhatTheUserSet(t *testing.T) {
	users := &anypb.Any{TypeUrl: "type.googleapis.com/user", Value: []byte("set")}
	for _, c := range []struct {
		name, cluster string
		set           *anypb.Any
		isChanged     bool
		hasHTTP2      bool
	}{
		{"clear", clearCluster, nil, true, false},
		{"gRPC", grpcCluster, nil, true, true},
		{"gRPC with options of the user", grpcCluster, users, true, true},
		{"of others", "httproute/shop/service/rule/0", nil, false, false},
		{"without a name", "", nil, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			h, err := newHooks(two, "127.0.0.1:5005")
			if err != nil {
				t.Fatal(err)
			}
			before, err := sampleCluster(c.cluster)
			if err != nil {
				t.Fatal(err)
			}
			if c.set != nil {
				before.TypedExtensionProtocolOptions = map[string]*anypb.Any{httpOptions: c.set}
			}
			sent := proto.Clone(before).(*clusterv3.Cluster)
			answer, err := h.PostTranslateModify(t.Context(), &pb.PostTranslateModifyRequest{Clusters: []*clusterv3.Cluster{sent}})
			if err != nil {
				t.Fatal(err)
			}
			after := answer.GetClusters()[0]
			options, hasOptions := after.GetTypedExtensionProtocolOptions()[httpOptions]
			if isMesh(after) != c.isChanged || proto.Equal(before, after) == c.isChanged || hasOptions != c.hasHTTP2 {
				t.Errorf("changed wrongly: %v", after)
			}
			if c.set != nil && !proto.Equal(options, c.set) {
				t.Errorf("what the user set became %v", options)
			}
		})
	}
}

func TestNothingIsAnError(t *testing.T) {
	h, err := newHooks(nil, "")
	if err != nil {
		t.Fatal(err)
	}
	if answer, err := h.PostClusterModify(t.Context(), &pb.PostClusterModifyRequest{}); err != nil || answer.GetCluster() != nil {
		t.Errorf("no cluster became %v, %v", answer, err)
	}
	if answer, err := h.PostTranslateModify(t.Context(), &pb.PostTranslateModifyRequest{}); err != nil || len(answer.GetClusters()) != 0 {
		t.Errorf("an empty translation became %v, %v", answer, err)
	}
}
