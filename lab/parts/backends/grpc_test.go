package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	reflectionpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// rpc is a client of the gRPC service.
type rpc struct {
	ctx  context.Context
	conn *grpc.ClientConn
}

func (l lab) rpc(t *testing.T) rpc {
	t.Helper()
	return l.rpcOf(t, "grpc", insecure.NewCredentials())
}

func (l lab) rpcOf(t *testing.T, service string, transport credentials.TransportCredentials) rpc {
	t.Helper()
	conn, err := grpc.NewClient(l.addresses[service], grpc.WithTransportCredentials(transport))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	t.Cleanup(func() { cancel(); conn.Close() })
	return rpc{ctx, conn}
}

func (c rpc) say(text string) (map[string]any, error) {
	var out structpb.Struct
	err := c.conn.Invoke(c.ctx, "/lab.v1.Echo/Say", wrapperspb.String(text), &out)
	return out.AsMap(), err
}

// sayIs asserts the status of a call.
func (c rpc) sayIs(want codes.Code) error {
	if _, err := c.say("hello"); status.Code(err) != want {
		return fmt.Errorf("%v, want %s", err, want)
	}
	return nil
}

func (c rpc) healthIs(want healthpb.HealthCheckResponse_ServingStatus) error {
	res, err := healthpb.NewHealthClient(c.conn).Check(c.ctx, &healthpb.HealthCheckRequest{Service: echoService})
	if err == nil && res.Status != want {
		err = fmt.Errorf("%s, want %s", res.Status, want)
	}
	return err
}

func (c rpc) chat(t *testing.T) grpc.ClientStream {
	t.Helper()
	stream, err := c.conn.NewStream(c.ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, "/lab.v1.Echo/Chat")
	if err != nil {
		t.Fatal(err)
	}
	return stream
}

func chatted(stream grpc.ClientStream, text string) error {
	if err := stream.SendMsg(wrapperspb.Bytes([]byte(text))); err != nil {
		return err
	}
	var got wrapperspb.BytesValue
	if err := stream.RecvMsg(&got); err != nil {
		return err
	}
	if string(got.Value) != text {
		return fmt.Errorf("sent %q, got %q", text, got.Value)
	}
	return nil
}

func TestGRPCTakesEachMode(t *testing.T) {
	l := startLab(t)
	c := l.rpc(t)
	took(t, "healthy", false, func() error { return errors.Join(c.sayIs(codes.OK), c.healthIs(healthpb.HealthCheckResponse_SERVING)) })
	l.make("grpc", slowly)
	took(t, "slow", true, func() error { return c.sayIs(codes.OK) })
	l.make("grpc", mode{Condition: failing})
	took(t, "failing", false, func() error {
		return errors.Join(c.sayIs(codes.Unavailable), c.healthIs(healthpb.HealthCheckResponse_NOT_SERVING))
	})
	if n := l.state("grpc").OpenConnections; n != 1 {
		t.Errorf("%d connections, want one for all calls so far", n)
	}
	l.make("grpc", mode{Condition: dead})
	if err := c.sayIs(codes.Unavailable); err != nil {
		t.Error("dead:", err)
	}
	if n := l.state("grpc").OpenConnections; n != 0 {
		t.Errorf("%d connections survive death", n)
	}
	l.make("grpc", mode{Condition: healthy})
	if err := l.rpc(t).sayIs(codes.OK); err != nil {
		t.Error("mended:", err)
	}
	if n := l.state("grpc").Requests; n != 6 {
		t.Errorf("%d calls counted, want 6", n)
	}
}

func TestAnOpenStreamTakesEachMode(t *testing.T) {
	l := startLab(t)
	c := l.rpc(t)
	stream := c.chat(t)
	took(t, "healthy", false, func() error { return chatted(stream, "hello") })
	l.make("grpc", slowly)
	took(t, "slow", true, func() error { return chatted(stream, "hello") })
	for _, condition := range []condition{failing, dead} {
		l.make("grpc", mode{Condition: condition})
		if err := stream.RecvMsg(&emptypb.Empty{}); status.Code(err) != codes.Unavailable {
			t.Errorf("%s: an idle stream ends with %v, want UNAVAILABLE", condition, err)
		}
		l.make("grpc", mode{Condition: healthy})
		c = l.rpc(t)
		stream = c.chat(t)
		took(t, "mended", false, func() error { return chatted(stream, "hello") })
	}
}

func TestHealthIsWatched(t *testing.T) {
	l := startLab(t)
	c := l.rpc(t)
	watch, err := healthpb.NewHealthClient(c.conn).Watch(c.ctx, &healthpb.HealthCheckRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		make condition
		want healthpb.HealthCheckResponse_ServingStatus
	}{
		{healthy, healthpb.HealthCheckResponse_SERVING},
		{failing, healthpb.HealthCheckResponse_NOT_SERVING},
		{healthy, healthpb.HealthCheckResponse_SERVING},
	} {
		l.make("grpc", mode{Condition: step.make})
		if res, err := watch.Recv(); err != nil || res.Status != step.want {
			t.Errorf("made %s: %v %v, want %s", step.make, res, err, step.want)
		}
	}
}

func TestGRPCDescribesTheCall(t *testing.T) {
	c := startLab(t).rpc(t)
	got, err := c.say("hello")
	if err != nil || got["backend"] != "test" || got["message"] != "hello" || got["authority"] == "" || got["remote"] == "" {
		t.Errorf("%v %v", got, err)
	}
	err = c.conn.Invoke(c.ctx, "/lab.v1.Echo/Fail", wrapperspb.Int32(int32(codes.NotFound)), &emptypb.Empty{})
	if status.Code(err) != codes.NotFound {
		t.Errorf("%v, want the status that was requested", err)
	}
}

func TestReflectionKnowsTheEchoService(t *testing.T) {
	c := startLab(t).rpc(t)
	stream, err := reflectionpb.NewServerReflectionClient(c.conn).ServerReflectionInfo(c.ctx)
	if err != nil {
		t.Fatal(err)
	}
	stream.Send(&reflectionpb.ServerReflectionRequest{MessageRequest: &reflectionpb.ServerReflectionRequest_ListServices{}})
	res, err := stream.Recv()
	if err != nil {
		t.Fatal(err)
	}
	isEcho := func(s *reflectionpb.ServiceResponse) bool { return s.Name == echoService }
	if list := res.GetListServicesResponse().GetService(); !slices.ContainsFunc(list, isEcho) {
		t.Errorf("services: %v", list)
	}
	stream.Send(&reflectionpb.ServerReflectionRequest{MessageRequest: &reflectionpb.ServerReflectionRequest_FileContainingSymbol{FileContainingSymbol: echoService + ".Say"}})
	if res, err = stream.Recv(); err != nil || len(res.GetFileDescriptorResponse().GetFileDescriptorProto()) == 0 {
		t.Errorf("description of Say: %v %v", res, err)
	}
}

func TestAClientReconnectsOnceMended(t *testing.T) {
	l := startLab(t)
	c := l.rpc(t)
	l.make("grpc", mode{Condition: dead})
	if err := c.sayIs(codes.Unavailable); err != nil {
		t.Error(err)
	}
	l.make("grpc", mode{Condition: healthy})
	start := time.Now()
	eventually(t, "the same client gets through", func() error { return c.sayIs(codes.OK) })
	t.Logf("after %s, by the client's own backoff", time.Since(start))
}

func TestGRPCOverTLSHasTheNameOfItsCertificate(t *testing.T) {
	l := startLab(t, "--names", "web.example.ts.net")
	c := l.rpcOf(t, "grpcs", credentials.NewTLS(l.secure("web.example.ts.net")))
	if got, err := c.say("hello"); err != nil || got["message"] != "hello" {
		t.Errorf("%v %v", got, err)
	}
	other := l.rpcOf(t, "grpcs", credentials.NewTLS(l.secure("other.example.ts.net")))
	if err := other.sayIs(codes.Unavailable); err != nil {
		t.Error("under another name:", err)
	}
}

func TestCountSendsEachNumberAtOnceAndEndsWithItsCaller(t *testing.T) {
	l := startLab(t)
	c := l.rpc(t)
	ctx, cancel := context.WithCancel(c.ctx)
	defer cancel()
	stream, err := c.conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, "/lab.v1.Echo/Count")
	if err != nil {
		t.Fatal(err)
	}
	stream.SendMsg(wrapperspb.Int32(1 << 30))
	stream.CloseSend()
	for want := range int32(3) {
		var got wrapperspb.Int32Value
		if err := stream.RecvMsg(&got); err != nil || got.Value != want {
			t.Fatalf("%d %v, want %d", got.Value, err, want)
		}
	}
	if n := l.state("grpc").OpenRequests; n != 1 {
		t.Errorf("%d calls are open, want 1", n)
	}
	cancel()
	eventually(t, "the service sees that the caller has gone", func() error {
		if n := l.state("grpc").OpenRequests; n != 0 {
			return fmt.Errorf("%d calls are open", n)
		}
		return nil
	})
}
