package main

import (
	"context"
	"errors"
	"io"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// echoRPC is the echo service under the name of its backend.
type echoRPC struct{ name string }

// desc binds the methods of the echo service to their names.
func (e echoRPC) desc() *grpc.ServiceDesc {
	return &grpc.ServiceDesc{
		ServiceName: echoService,
		HandlerType: (*any)(nil),
		Methods: []grpc.MethodDesc{
			{MethodName: "Say", Handler: unary("Say", func() proto.Message { return &wrapperspb.StringValue{} }, e.say)},
			{MethodName: "Fail", Handler: unary("Fail", func() proto.Message { return &wrapperspb.Int32Value{} }, e.fail)},
		},
		Streams: []grpc.StreamDesc{
			{StreamName: "Count", Handler: e.count, ServerStreams: true},
			{StreamName: "Chat", Handler: e.chat, ServerStreams: true, ClientStreams: true},
		},
		Metadata: echoFile,
	}
}

// unary is a method as gRPC wants it, from a function on messages.
func unary(name string, request func() proto.Message, do func(context.Context, proto.Message) (proto.Message, error)) grpc.MethodHandler {
	return func(srv any, ctx context.Context, decode func(any) error, intercept grpc.UnaryServerInterceptor) (any, error) {
		in := request()
		if err := decode(in); err != nil {
			return nil, err
		}
		info := &grpc.UnaryServerInfo{Server: srv, FullMethod: "/" + echoService + "/" + name}
		return intercept(ctx, in, info, func(ctx context.Context, in any) (any, error) { return do(ctx, in.(proto.Message)) })
	}
}

// say describes the call: backend, message, authority, remote address, metadata.
func (e echoRPC) say(ctx context.Context, in proto.Message) (proto.Message, error) {
	answer := map[string]any{"backend": e.name, "message": in.(*wrapperspb.StringValue).GetValue()}
	if p, ok := peer.FromContext(ctx); ok {
		answer["remote"] = p.Addr.String()
	}
	md, _ := metadata.FromIncomingContext(ctx)
	headers := map[string]any{}
	for key, values := range md {
		if key == ":authority" {
			answer["authority"] = values[0]
			continue
		}
		list := make([]any, len(values))
		for i, v := range values {
			list[i] = v
		}
		headers[key] = list
	}
	answer["metadata"] = headers
	return structpb.NewStruct(answer)
}

// fail answers with the status code that it is given.
func (e echoRPC) fail(_ context.Context, in proto.Message) (proto.Message, error) {
	if code := codes.Code(in.(*wrapperspb.Int32Value).GetValue()); code != codes.OK {
		return nil, status.Error(code, "as requested")
	}
	return &emptypb.Empty{}, nil
}

const countEvery = 100 * time.Millisecond

// count sends the numbers below the one that it is given, one after another with a pause behind each.
func (e echoRPC) count(_ any, stream grpc.ServerStream) error {
	var below wrapperspb.Int32Value
	if err := stream.RecvMsg(&below); err != nil {
		return err
	}
	for n := range below.GetValue() {
		if err := stream.SendMsg(wrapperspb.Int32(n)); err != nil {
			return err
		}
		select {
		case <-stream.Context().Done():
			return stream.Context().Err()
		case <-time.After(countEvery):
		}
	}
	return nil
}

// chat sends back each message as it comes.
func (e echoRPC) chat(_ any, stream grpc.ServerStream) error {
	for {
		var message wrapperspb.BytesValue
		err := stream.RecvMsg(&message)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := stream.SendMsg(&message); err != nil {
			return err
		}
	}
}
