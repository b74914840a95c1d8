package main

import (
	"context"

	pb "github.com/envoyproxy/gateway/proto/extension"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
)

// hooks are the six calls of Envoy Gateway; the one about a whole translation changes clusters that lead to the mesh.
type hooks struct {
	pb.UnimplementedEnvoyGatewayExtensionServer
	changes changes
	// Whether the endpoints behind a cluster take HTTP/2 only, by its name.
	isHTTP2 map[string]bool
}

func newHooks(resources []resource, edsTarget string) (*hooks, error) {
	changes, err := newChanges(edsTarget)
	if err != nil {
		return nil, err
	}
	h := &hooks{changes: changes, isHTTP2: make(map[string]bool, len(resources))}
	for _, r := range resources {
		if h.isHTTP2[r.Cluster], err = r.speaksHTTP2(); err != nil {
			return nil, err
		}
	}
	return h, nil
}

func (h *hooks) change(c *clusterv3.Cluster) {
	if isHTTP2, isMesh := h.isHTTP2[c.GetName()]; isMesh {
		h.changes.apply(c, isHTTP2)
	}
}

func (h *hooks) PostClusterModify(_ context.Context, r *pb.PostClusterModifyRequest) (*pb.PostClusterModifyResponse, error) {
	return &pb.PostClusterModifyResponse{Cluster: r.GetCluster()}, nil
}

func (h *hooks) PostTranslateModify(_ context.Context, r *pb.PostTranslateModifyRequest) (*pb.PostTranslateModifyResponse, error) {
	for _, c := range r.GetClusters() {
		h.change(c)
	}
	return &pb.PostTranslateModifyResponse{
		Clusters:  r.GetClusters(),
		Secrets:   r.GetSecrets(),
		Listeners: r.GetListeners(),
		Routes:    r.GetRoutes(),
	}, nil
}

func (h *hooks) PostRouteModify(_ context.Context, r *pb.PostRouteModifyRequest) (*pb.PostRouteModifyResponse, error) {
	return &pb.PostRouteModifyResponse{Route: r.GetRoute()}, nil
}

func (h *hooks) PostVirtualHostModify(_ context.Context, r *pb.PostVirtualHostModifyRequest) (*pb.PostVirtualHostModifyResponse, error) {
	return &pb.PostVirtualHostModifyResponse{VirtualHost: r.GetVirtualHost()}, nil
}

func (h *hooks) PostHTTPListenerModify(_ context.Context, r *pb.PostHTTPListenerModifyRequest) (*pb.PostHTTPListenerModifyResponse, error) {
	return &pb.PostHTTPListenerModifyResponse{Listener: r.GetListener()}, nil
}

func (h *hooks) PostEndpointsModify(_ context.Context, r *pb.PostEndpointsModifyRequest) (*pb.PostEndpointsModifyResponse, error) {
	return &pb.PostEndpointsModifyResponse{LoadAssignment: r.GetLoadAssignment()}, nil
}
