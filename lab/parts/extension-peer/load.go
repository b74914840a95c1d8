package main

import (
	"context"
	"flag"
	"fmt"
	"io"

	pb "github.com/envoyproxy/gateway/proto/extension"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
)

// load has the flags of all loads.
type load struct {
	address   string
	resources []resource
	warm      int
	calls     int
}

// parseLoad reads the flags of a load, which may have more of its own.
func parseLoad(f *flag.FlagSet, args []string) (load, error) {
	var l load
	f.StringVar(&l.address, "address", "", "`address` of the extension server")
	path := f.String("resources", "", "`path` of a JSON list of clusters and the objects behind them")
	f.IntVar(&l.warm, "warm", 0, "`number` of calls that are not measured")
	f.IntVar(&l.calls, "calls", 1000, "`number` of calls that are measured")
	err := parse(f, args)
	if err == nil {
		l.resources, err = readResources(*path)
	}
	switch {
	case err != nil:
		return l, err
	case len(l.resources) == 0:
		return l, fmt.Errorf("--resources is missing: which clusters lead to the mesh")
	case l.calls < 1:
		return l, fmt.Errorf("--calls %d: must be at least 1", l.calls)
	}
	return l, nil
}

// loaded is the output of a load: how long calls took, and how many answers were right.
type loaded struct {
	figures
	// The same calls without the client's own encoding and decoding.
	Bare         figures `json:"bare"`
	Calls        int     `json:"calls"`
	Verified     int     `json:"verified"`
	RequestBytes int     `json:"requestBytes"`
	AnswerBytes  int     `json:"answerBytes"`
}

// loadCluster calls the Translation hook again and again, with one cluster after the other.
func loadCluster(ctx context.Context, args []string, _ io.Reader, out io.Writer) error {
	l, err := parseLoad(flag.NewFlagSet("cluster", flag.ContinueOnError), args)
	if err != nil {
		return err
	}
	requests := make([]*pb.PostTranslateModifyRequest, len(l.resources))
	for i, r := range l.resources {
		cluster, err := sampleCluster(r.Cluster)
		if err != nil {
			return err
		}
		requests[i] = &pb.PostTranslateModifyRequest{Clusters: []*clusterv3.Cluster{cluster}}
	}
	return measure(ctx, l, out, func(conn *grpc.ClientConn, i int) (outcome, error) {
		request, answer := requests[i%len(requests)], &pb.PostTranslateModifyResponse{}
		time, err := call(ctx, conn, pb.EnvoyGatewayExtension_PostTranslateModify_FullMethodName, request, answer)
		cluster := only(answer.GetClusters())
		isRight := cluster.GetName() == request.GetClusters()[0].GetName() && isMesh(cluster)
		return outcome{time, isRight, request, answer}, err
	})
}

func clusterRequest(r resource) (*pb.PostClusterModifyRequest, error) {
	cluster, err := sampleCluster(r.Cluster)
	return &pb.PostClusterModifyRequest{
		Cluster: cluster,
		PostClusterContext: &pb.PostClusterExtensionContext{
			BackendExtensionResources: []*pb.ExtensionResource{{UnstructuredBytes: r.Object}},
		},
	}, err
}

// loadTranslation calls the Translation hook again and again with the same clusters, of which some lead to the mesh.
func loadTranslation(ctx context.Context, args []string, _ io.Reader, out io.Writer) error {
	f := flag.NewFlagSet("translation", flag.ContinueOnError)
	count := f.Int("clusters", 8192, "`number` of clusters in each translation")
	l, err := parseLoad(f, args)
	if err != nil {
		return err
	}
	clusters, err := sampleClusters(l.resources, *count)
	if err != nil {
		return err
	}
	isOurs := make(map[string]bool, len(l.resources))
	for _, r := range l.resources {
		isOurs[r.Cluster] = true
	}
	request := &pb.PostTranslateModifyRequest{Clusters: clusters}
	return measure(ctx, l, out, func(conn *grpc.ClientConn, _ int) (outcome, error) {
		answer := &pb.PostTranslateModifyResponse{}
		time, err := call(ctx, conn, pb.EnvoyGatewayExtension_PostTranslateModify_FullMethodName, request, answer)
		return outcome{time, isTranslated(clusters, answer.GetClusters(), isOurs), request, answer}, err
	})
}

// isTranslated reports whether all clusters came back in order, ours changed, and the others as they were.
func isTranslated(before, after []*clusterv3.Cluster, isOurs map[string]bool) bool {
	if len(before) != len(after) {
		return false
	}
	for i, was := range before {
		is := after[i]
		switch {
		case was.GetName() != is.GetName():
			return false
		case isOurs[was.GetName()] && !isMesh(is):
			return false
		case !isOurs[was.GetName()] && !proto.Equal(was, is):
			return false
		}
	}
	return true
}

// outcome is one call, and whether its answer was right.
type outcome struct {
	time            took
	isRight         bool
	request, answer proto.Message
}

// measure makes the calls of a load on one connection, one after the other, and returns the figures.
func measure(ctx context.Context, l load, out io.Writer, do func(conn *grpc.ClientConn, i int) (outcome, error)) error {
	conn, err := dial(l.address)
	if err != nil {
		return err
	}
	defer conn.Close()
	times := make([]took, 0, l.calls)
	result := loaded{Calls: l.calls}
	for i := range l.warm + l.calls {
		o, err := do(conn, i)
		if err != nil {
			return fmt.Errorf("call %d: %w", i+1, err)
		}
		if i < l.warm {
			continue
		}
		times = append(times, o.time)
		if o.isRight {
			result.Verified++
		}
		if i == l.warm {
			result.RequestBytes, result.AnswerBytes = proto.Size(o.request), proto.Size(o.answer)
		}
	}
	whole, bare := split(times)
	result.figures, result.Bare = figuresOf(whole), figuresOf(bare)
	return writeLine(out, result)
}
