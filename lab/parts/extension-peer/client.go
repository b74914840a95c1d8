package main

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
)

// dial opens a connection as Envoy Gateway does: in clear, and with room for large messages.
func dial(address string, more ...grpc.DialOption) (*grpc.ClientConn, error) {
	if address == "" {
		return nil, fmt.Errorf("--address is missing: where the extension server listens")
	}
	options := append(more,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(largest), grpc.MaxCallSendMsgSize(largest)),
	)
	return grpc.NewClient(address, options...)
}

// asIs passes messages that are encoded already, so that the time of a call does not include that of encoding.
type asIs struct{}

func (asIs) Name() string { return "proto" }

func (asIs) Marshal(message any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(*message.(*[]byte))}, nil
}

func (asIs) Unmarshal(data mem.BufferSlice, message any) error {
	*message.(*[]byte) = data.Materialize()
	return nil
}

// took is how long a call took: all of it as Envoy Gateway sees it, and without its own encoding and decoding.
type took struct {
	whole, bare time.Duration
}

// call makes one call and measures it.
func call(ctx context.Context, conn *grpc.ClientConn, method string, request, answer proto.Message) (took, error) {
	start := time.Now()
	out, err := proto.Marshal(request)
	if err != nil {
		return took{}, err
	}
	var in []byte
	sent := time.Now()
	if err := conn.Invoke(ctx, method, &out, &in, grpc.ForceCodecV2(asIs{})); err != nil {
		return took{}, err
	}
	got := time.Now()
	if err := proto.Unmarshal(in, answer); err != nil {
		return took{}, err
	}
	return took{whole: time.Since(start), bare: got.Sub(sent)}, nil
}
