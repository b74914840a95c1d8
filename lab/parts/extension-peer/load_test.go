package main

import (
	"context"
	"strings"
	"testing"
	"time"

	pb "github.com/envoyproxy/gateway/proto/extension"
	"google.golang.org/grpc"
)

func TestEveryAnswerOfALoadIsLookedAt(t *testing.T) {
	for _, c := range []struct {
		name     string
		served   []resource
		verified int
	}{
		{"a server that knows the objects", two, 6},
		{"a server that knows one of them", two[:1], 3},
		{"a server that knows none", nil, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			var result loaded
			if err := ran(t, &result, "", "cluster", "--address", started(t, c.served), "--resources", saved(t, two), "--calls", "6", "--warm", "2"); err != nil {
				t.Fatal(err)
			}
			if result.Calls != 6 || result.Verified != c.verified {
				t.Errorf("%d of %d verified, want %d of 6", result.Verified, result.Calls, c.verified)
			}
		})
	}
}

func TestATranslationIsRightOnlyIfAllClustersComeBackAndOursAreChanged(t *testing.T) {
	for _, c := range []struct {
		name     string
		served   []resource
		loses    bool
		verified int
	}{
		{"all ours are changed", two, false, 3},
		{"one of ours is not changed", two[:1], false, 0},
		{"one that is not ours is changed", append([]resource{{"httproute/shop/service-0/rule/0", object("HTTP")}}, two...), false, 0},
		{"one is lost", two, true, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			h, err := newHooks(c.served, "127.0.0.1:5005")
			if err != nil {
				t.Fatal(err)
			}
			server := grpc.NewServer()
			pb.RegisterEnvoyGatewayExtensionServer(server, losing{h, c.loses})
			var result loaded
			if err := ran(t, &result, "", "translation", "--address", listening(t, server), "--resources", saved(t, two), "--calls", "3", "--clusters", "7"); err != nil {
				t.Fatal(err)
			}
			if result.Verified != c.verified {
				t.Errorf("%d verified, want %d", result.Verified, c.verified)
			}
		})
	}
}

// losing may lose the last cluster of each translation.
type losing struct {
	*hooks
	loses bool
}

func (l losing) PostTranslateModify(ctx context.Context, r *pb.PostTranslateModifyRequest) (*pb.PostTranslateModifyResponse, error) {
	answer, err := l.hooks.PostTranslateModify(ctx, r)
	if l.loses {
		answer.Clusters = answer.Clusters[:len(answer.Clusters)-1]
	}
	return answer, err
}

func TestTheClustersOfATranslationAreAsManyAndAsLargeAsAskedFor(t *testing.T) {
	clusters, err := sampleClusters(two, 8192)
	if err != nil {
		t.Fatal(err)
	}
	ours := map[string]int{}
	for i, c := range clusters {
		if c.GetName() == clearCluster || c.GetName() == grpcCluster {
			ours[c.GetName()] = i
		}
	}
	if len(ours) != 2 || ours[clearCluster] != 4095 || ours[grpcCluster] != 8191 {
		t.Errorf("ours are to be spread evenly, are at %v", ours)
	}
	if bytes := messageBytes(clusters); bytes < 1_900_000 || bytes > 2_500_000 {
		t.Errorf("%d bytes, want about 2 MB", bytes)
	}
}

func TestFiguresAreOfAllDurations(t *testing.T) {
	var all []time.Duration
	for i := 200; i > 0; i-- {
		all = append(all, time.Duration(i)*time.Millisecond)
	}
	got := figuresOf(all)
	if got.P50 != 100 || got.P99 != 198 || got.Longest != 200 || got.Mean != 100.5 || got.PerSecond != 1000/100.5 {
		t.Errorf("%+v", got)
	}
	if one := figuresOf([]time.Duration{time.Second}); one.P50 != 1000 || one.P99 != 1000 || one.PerSecond != 1 {
		t.Errorf("of one duration: %+v", one)
	}
}

func TestALoadThatCannotBeIsRefusedByName(t *testing.T) {
	address, path := started(t, two), saved(t, two)
	for _, c := range []struct{ args, want string }{
		{"", "name what to do"},
		{"dance", "name what to do"},
		{"cluster --resources " + path, "--address"},
		{"cluster --address " + address, "--resources"},
		{"cluster --address " + address + " --resources " + path + " --calls 0", "--calls"},
		{"translation --address " + address + " --resources " + path + " --clusters 1", "--clusters"},
		{"eds --address " + address, "--resources"},
		{"serve extra", "extra"},
		{"serve --resources " + saved(t, []resource{{Cluster: "a"}}), "Object"},
		{"cluster --address 127.0.0.1:1 --resources " + path, "call 1"},
	} {
		var result any
		err := ran(t, &result, "", strings.Fields(c.args)...)
		if err == nil || !strings.Contains(strings.ToLower(err.Error()), strings.ToLower(c.want)) {
			t.Errorf("%s: %v, want %s named", c.args, err, c.want)
		}
	}
}
