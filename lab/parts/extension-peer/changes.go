package main

import (
	"strings"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	proxyv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/http_11_proxy/v3"
	rawv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/raw_buffer/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	httpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"
)

const (
	proxySocket = "envoy.transport_sockets.http_11_proxy"
	rawSocket   = "envoy.transport_sockets.raw_buffer"
	tlsSocket   = "envoy.transport_sockets.tls"
	httpOptions = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"
)

// changes are what a cluster needs so that its endpoints are reached over the mesh, made once for all clusters.
type changes struct {
	eds     *corev3.ConfigSource
	socket  *corev3.TransportSocket
	matches []*clusterv3.Cluster_TransportSocketMatch
	http2   *anypb.Any
}

func newChanges(edsTarget string) (changes, error) {
	raw, err := anypb.New(&rawv3.RawBuffer{})
	if err != nil {
		return changes{}, err
	}
	clear, err := throughProxy(socket(rawSocket, raw))
	if err != nil {
		return changes{}, err
	}
	closed, err := closedSocket()
	if err != nil {
		return changes{}, err
	}
	match, err := structpb.NewStruct(map[string]any{"mesh": "clear"})
	if err != nil {
		return changes{}, err
	}
	http2, err := anypb.New(&httpv3.HttpProtocolOptions{
		UpstreamProtocolOptions: &httpv3.HttpProtocolOptions_ExplicitHttpConfig_{
			ExplicitHttpConfig: &httpv3.HttpProtocolOptions_ExplicitHttpConfig{
				ProtocolConfig: &httpv3.HttpProtocolOptions_ExplicitHttpConfig_Http2ProtocolOptions{
					Http2ProtocolOptions: &corev3.Http2ProtocolOptions{},
				},
			},
		},
	})
	if err != nil {
		return changes{}, err
	}
	matches := []*clusterv3.Cluster_TransportSocketMatch{{Name: "mesh/clear", Match: match, TransportSocket: clear}}
	return changes{eds: edsFrom(edsTarget), socket: closed, matches: matches, http2: http2}, nil
}

func throughProxy(inner *corev3.TransportSocket) (*corev3.TransportSocket, error) {
	config, err := anypb.New(&proxyv3.Http11ProxyUpstreamTransport{TransportSocket: inner})
	if err != nil {
		return nil, err
	}
	return socket(proxySocket, config), nil
}

// closedSocket trusts no certificate: it is for endpoints that name no socket.
func closedSocket() (*corev3.TransportSocket, error) {
	config, err := anypb.New(&tlsv3.UpstreamTlsContext{CommonTlsContext: &tlsv3.CommonTlsContext{
		TlsParams: &tlsv3.TlsParameters{
			TlsMinimumProtocolVersion: tlsv3.TlsParameters_TLSv1_2,
			TlsMaximumProtocolVersion: tlsv3.TlsParameters_TLSv1_3,
		},
		ValidationContextType: &tlsv3.CommonTlsContext_ValidationContext{
			ValidationContext: &tlsv3.CertificateValidationContext{VerifyCertificateHash: []string{strings.Repeat("0", 64)}},
		},
	}})
	if err != nil {
		return nil, err
	}
	return throughProxy(socket(tlsSocket, config))
}

func socket(name string, config *anypb.Any) *corev3.TransportSocket {
	return &corev3.TransportSocket{Name: name, ConfigType: &corev3.TransportSocket_TypedConfig{TypedConfig: config}}
}

// edsFrom lets Envoy follow endpoints at an address, and come back to it soon after an outage.
func edsFrom(target string) *corev3.ConfigSource {
	arg := func(value int64) *corev3.GrpcService_GoogleGrpc_ChannelArgs_Value {
		return &corev3.GrpcService_GoogleGrpc_ChannelArgs_Value{
			ValueSpecifier: &corev3.GrpcService_GoogleGrpc_ChannelArgs_Value_IntValue{IntValue: value},
		}
	}
	service := &corev3.GrpcService{TargetSpecifier: &corev3.GrpcService_GoogleGrpc_{GoogleGrpc: &corev3.GrpcService_GoogleGrpc{
		TargetUri:  target,
		StatPrefix: "mesh",
		ChannelArgs: &corev3.GrpcService_GoogleGrpc_ChannelArgs{
			Args: map[string]*corev3.GrpcService_GoogleGrpc_ChannelArgs_Value{
				"grpc.initial_reconnect_backoff_ms": arg(200),
				"grpc.min_reconnect_backoff_ms":     arg(200),
				"grpc.max_reconnect_backoff_ms":     arg(200),
				"grpc.keepalive_time_ms":            arg(30_000),
				"grpc.keepalive_timeout_ms":         arg(10_000),
				"grpc.http2.max_pings_without_data": arg(0),
				"grpc.enable_http_proxy":            arg(0),
			},
		},
	}}}
	return &corev3.ConfigSource{
		ResourceApiVersion:  corev3.ApiVersion_V3,
		InitialFetchTimeout: durationpb.New(time.Minute),
		ConfigSourceSpecifier: &corev3.ConfigSource_ApiConfigSource{ApiConfigSource: &corev3.ApiConfigSource{
			ApiType:                   corev3.ApiConfigSource_DELTA_GRPC,
			TransportApiVersion:       corev3.ApiVersion_V3,
			SetNodeOnFirstMessageOnly: true,
			GrpcServices:              []*corev3.GrpcService{service},
		}},
	}
}

// apply changes a cluster in place, and leaves what the user has set.
func (c changes) apply(cluster *clusterv3.Cluster, isHTTP2 bool) {
	cluster.EdsClusterConfig = &clusterv3.Cluster_EdsClusterConfig{EdsConfig: c.eds, ServiceName: cluster.GetName()}
	cluster.TransportSocket = c.socket
	cluster.TransportSocketMatches = c.matches
	if cluster.CommonLbConfig == nil {
		cluster.CommonLbConfig = &clusterv3.Cluster_CommonLbConfig{}
	}
	if cluster.CommonLbConfig.HealthyPanicThreshold == nil {
		cluster.CommonLbConfig.HealthyPanicThreshold = &typev3.Percent{}
	}
	if !isHTTP2 {
		return
	}
	if cluster.TypedExtensionProtocolOptions == nil {
		cluster.TypedExtensionProtocolOptions = map[string]*anypb.Any{}
	}
	if cluster.TypedExtensionProtocolOptions[httpOptions] == nil {
		cluster.TypedExtensionProtocolOptions[httpOptions] = c.http2
	}
}

// isMesh reports whether a cluster has been changed so that Envoy can reach endpoints on the mesh.
func isMesh(cluster *clusterv3.Cluster) bool {
	source := cluster.GetEdsClusterConfig().GetEdsConfig().GetApiConfigSource()
	return source.GetApiType() == corev3.ApiConfigSource_DELTA_GRPC &&
		len(source.GetGrpcServices()) == 1 &&
		cluster.GetTransportSocket().GetName() == proxySocket
}
