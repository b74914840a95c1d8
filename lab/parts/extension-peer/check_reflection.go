package main

import (
	"context"
	"fmt"
	"slices"

	pb "github.com/envoyproxy/gateway/proto/extension"
	endpointservice "github.com/envoyproxy/go-control-plane/envoy/service/endpoint/v3"
	"google.golang.org/grpc"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	v1 "google.golang.org/grpc/reflection/grpc_reflection_v1"
	v1alpha "google.golang.org/grpc/reflection/grpc_reflection_v1alpha"
)

// mustList are the services that reflection must name.
var mustList = []string{
	pb.EnvoyGatewayExtension_ServiceDesc.ServiceName,
	endpointservice.EndpointDiscoveryService_ServiceDesc.ServiceName,
	healthpb.Health_ServiceDesc.ServiceName,
	v1.ServerReflection_ServiceDesc.ServiceName,
	v1alpha.ServerReflection_ServiceDesc.ServiceName,
}

// checkReflection lists services in both versions and requests the description of each.
func checkReflection(ctx context.Context, conn *grpc.ClientConn) (map[string][]string, error) {
	listed := map[string][]string{}
	for version, list := range map[string]func(context.Context, *grpc.ClientConn) ([]string, error){
		"v1": listV1, "v1alpha": listV1alpha,
	} {
		names, err := list(ctx, conn)
		slices.Sort(names)
		listed[version] = names
		if err != nil {
			return listed, fmt.Errorf("%s: %w", version, err)
		}
		for _, name := range mustList {
			if !slices.Contains(names, name) {
				return listed, fmt.Errorf("%s does not list %s", version, name)
			}
		}
	}
	return listed, nil
}

func listV1(ctx context.Context, conn *grpc.ClientConn) ([]string, error) {
	stream, err := v1.NewServerReflectionClient(conn).ServerReflectionInfo(ctx)
	if err != nil {
		return nil, err
	}
	request := func(message *v1.ServerReflectionRequest) (*v1.ServerReflectionResponse, error) {
		if err := stream.Send(message); err != nil {
			return nil, err
		}
		return stream.Recv()
	}
	answer, err := request(&v1.ServerReflectionRequest{MessageRequest: &v1.ServerReflectionRequest_ListServices{}})
	if err != nil {
		return nil, err
	}
	var names []string
	for _, s := range answer.GetListServicesResponse().GetService() {
		names = append(names, s.GetName())
		file, err := request(&v1.ServerReflectionRequest{MessageRequest: &v1.ServerReflectionRequest_FileContainingSymbol{
			FileContainingSymbol: s.GetName(),
		}})
		if err != nil {
			return names, err
		}
		if len(file.GetFileDescriptorResponse().GetFileDescriptorProto()) == 0 {
			return names, fmt.Errorf("%s is not described: %s", s.GetName(), file.GetErrorResponse().GetErrorMessage())
		}
	}
	return names, stream.CloseSend()
}

func listV1alpha(ctx context.Context, conn *grpc.ClientConn) ([]string, error) {
	stream, err := v1alpha.NewServerReflectionClient(conn).ServerReflectionInfo(ctx)
	if err != nil {
		return nil, err
	}
	list := &v1alpha.ServerReflectionRequest{MessageRequest: &v1alpha.ServerReflectionRequest_ListServices{}}
	if err := stream.Send(list); err != nil {
		return nil, err
	}
	answer, err := stream.Recv()
	if err != nil {
		return nil, err
	}
	var names []string
	for _, s := range answer.GetListServicesResponse().GetService() {
		names = append(names, s.GetName())
	}
	return names, stream.CloseSend()
}
