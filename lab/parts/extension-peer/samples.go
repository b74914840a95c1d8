package main

import (
	"fmt"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	leastv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/least_request/v3"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

const leastRequest = "envoy.load_balancing_policies.least_request"

// sampleCluster is a cluster as Envoy Gateway makes it of a rule of a route.
func sampleCluster(name string) (*clusterv3.Cluster, error) {
	policy, err := anypb.New(&leastv3.LeastRequest{})
	if err != nil {
		return nil, err
	}
	return &clusterv3.Cluster{
		Name:                 name,
		ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_EDS},
		EdsClusterConfig: &clusterv3.Cluster_EdsClusterConfig{
			EdsConfig: &corev3.ConfigSource{
				ResourceApiVersion:    corev3.ApiVersion_V3,
				ConfigSourceSpecifier: &corev3.ConfigSource_Ads{Ads: &corev3.AggregatedConfigSource{}},
			},
			ServiceName: name,
		},
		ConnectTimeout:                durationpb.New(10 * time.Second),
		PerConnectionBufferLimitBytes: wrapperspb.UInt32(32768),
		DnsLookupFamily:               clusterv3.Cluster_V4_PREFERRED,
		IgnoreHealthOnHostRemoval:     true,
		CommonLbConfig:                &clusterv3.Cluster_CommonLbConfig{},
		CircuitBreakers: &clusterv3.CircuitBreakers{
			Thresholds: []*clusterv3.CircuitBreakers_Thresholds{{MaxRetries: wrapperspb.UInt32(1024)}},
		},
		LoadBalancingPolicy: &clusterv3.LoadBalancingPolicy{Policies: []*clusterv3.LoadBalancingPolicy_Policy{{
			TypedExtensionConfig: &corev3.TypedExtensionConfig{Name: leastRequest, TypedConfig: policy},
		}}},
	}, nil
}

// sampleClusters are as many clusters, those of the resources evenly spread among clusters of others.
func sampleClusters(resources []resource, count int) ([]*clusterv3.Cluster, error) {
	if len(resources) > count {
		return nil, fmt.Errorf("--clusters %d: there are %d resources", count, len(resources))
	}
	clusters := make([]*clusterv3.Cluster, count)
	used := 0
	for i := range clusters {
		name := fmt.Sprintf("httproute/shop/service-%d/rule/0", i)
		if due := (i + 1) * len(resources) / count; due > used {
			name = resources[used].Cluster
			used++
		}
		var err error
		if clusters[i], err = sampleCluster(name); err != nil {
			return nil, err
		}
	}
	return clusters, nil
}
