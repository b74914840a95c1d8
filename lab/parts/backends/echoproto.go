package main

import (
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"

	// The messages that the echo service uses.
	_ "google.golang.org/protobuf/types/known/emptypb"
	_ "google.golang.org/protobuf/types/known/structpb"
	_ "google.golang.org/protobuf/types/known/wrapperspb"
)

const (
	echoFile    = "lab/v1/echo.proto"
	echoService = "lab.v1.Echo"
)

// registerEcho makes the echo service known to reflection, as if this file had been compiled:
//
//	package lab.v1;
//	service Echo {
//	  rpc Say(google.protobuf.StringValue) returns (google.protobuf.Struct);
//	  rpc Count(google.protobuf.Int32Value) returns (stream google.protobuf.Int32Value);
//	  rpc Chat(stream google.protobuf.BytesValue) returns (stream google.protobuf.BytesValue);
//	  rpc Fail(google.protobuf.Int32Value) returns (google.protobuf.Empty);
//	}
func registerEcho(files *protoregistry.Files) error {
	method := func(name, in string, manyIn bool, out string, manyOut bool) *descriptorpb.MethodDescriptorProto {
		return &descriptorpb.MethodDescriptorProto{
			Name: &name, InputType: proto.String(".google.protobuf." + in), OutputType: proto.String(".google.protobuf." + out),
			ClientStreaming: &manyIn, ServerStreaming: &manyOut,
		}
	}
	file, err := protodesc.NewFile(&descriptorpb.FileDescriptorProto{
		Name:       proto.String(echoFile),
		Package:    proto.String("lab.v1"),
		Syntax:     proto.String("proto3"),
		Dependency: []string{"google/protobuf/empty.proto", "google/protobuf/struct.proto", "google/protobuf/wrappers.proto"},
		Service: []*descriptorpb.ServiceDescriptorProto{{
			Name: proto.String("Echo"),
			Method: []*descriptorpb.MethodDescriptorProto{
				method("Say", "StringValue", false, "Struct", false),
				method("Count", "Int32Value", false, "Int32Value", true),
				method("Chat", "BytesValue", true, "BytesValue", true),
				method("Fail", "Int32Value", false, "Empty", false),
			},
		}},
	}, files)
	if err != nil {
		return err
	}
	return files.RegisterFile(file)
}
