package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"google.golang.org/grpc"
)

func addressFile(t *testing.T, address string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "address")
	if err := os.WriteFile(path, []byte(address), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestCheckFindsNothingWrongWithAWholeServer(t *testing.T) {
	address := started(t, two, withEndpoints(addressFile(t, "100.64.0.7")))
	var result verdict
	if err := ran(t, &result, "", "check", "--address", address, "--resources", saved(t, two)); err != nil {
		t.Fatal(err, result.Problems)
	}
	if !slices.Equal(result.Endpoints, []string{"100.64.0.7:80"}) || result.Hooks["Translation"] != "changed" || result.Health["check"] != "SERVING" {
		t.Errorf("%+v", result)
	}
}

func TestCheckNamesWhatIsWrong(t *testing.T) {
	endpoints := withEndpoints(addressFile(t, "100.64.0.7"))
	for _, c := range []struct {
		name   string
		served []resource
		more   []func(*grpc.Server)
		want   []string
	}{
		{"no endpoints", two, nil, []string{"reflection", "endpoints"}},
		{"our cluster comes back as it was", nil, []func(*grpc.Server){endpoints}, []string{"hooks"}},
		{"everything comes back changed", append([]resource{{"httproute/shop/service/rule/0", object("HTTP")}}, two...), []func(*grpc.Server){endpoints}, []string{"hooks"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var result verdict
			err := ran(t, &result, "", "check", "--address", started(t, c.served, c.more...), "--resources", saved(t, two))
			if err == nil || len(result.Problems) != len(c.want) {
				t.Fatalf("%v, %q, want problems of %v", err, result.Problems, c.want)
			}
			for i, want := range c.want {
				if !strings.HasPrefix(result.Problems[i], want+":") {
					t.Errorf("%q, want one of %s", result.Problems[i], want)
				}
			}
		})
	}
}

func TestEnvoysFollowEachClusterAndTimeEachChange(t *testing.T) {
	to := addressFile(t, "100.64.0.1")
	address := started(t, two, withEndpoints(to))
	var input strings.Builder
	for _, next := range []string{"100.64.0.2", "100.64.0.3"} {
		line, err := json.Marshal(change{From: addressFile(t, next), To: to, Cluster: grpcCluster, Address: next})
		if err != nil {
			t.Fatal(err)
		}
		input.Write(append(line, '\n'))
	}
	var result changed
	if err := ran(t, &result, input.String(), "eds", "--address", address, "--resources", saved(t, two), "--envoys", "3"); err != nil {
		t.Fatal(err)
	}
	if result.Cluster != grpcCluster || len(result.TookMs) != 3 || slices.Min(result.TookMs) <= 0 {
		t.Errorf("%+v", result)
	}
}

func TestEnvoysSayWhichStreamIsOver(t *testing.T) {
	var result any
	err := ran(t, &result, "", "eds", "--address", started(t, two), "--resources", saved(t, two[:1]), "--envoys", "1")
	if err == nil || !strings.Contains(err.Error(), clearCluster) {
		t.Errorf("%v, want %s named", err, clearCluster)
	}
}

func TestProcessServesAndEndsOnSIGTERM(t *testing.T) {
	process := exec.Command(os.Args[0], "serve", "--resources", saved(t, two))
	process.Env = append(os.Environ(), asProgram+"=1")
	out, err := process.StdoutPipe()
	if err == nil {
		err = process.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer process.Process.Kill()
	var serving struct{ Address string }
	if err := json.NewDecoder(out).Decode(&serving); err != nil {
		t.Fatal(err)
	}
	var at struct{ AtUnixMs float64 }
	if err := ran(t, &at, "", "serving", "--address", serving.Address); err != nil || at.AtUnixMs == 0 {
		t.Errorf("it reported that it serves: %v, %v", at, err)
	}
	process.Process.Signal(syscall.SIGTERM)
	if err := process.Wait(); err != nil {
		t.Error("it should end with status 0:", err)
	}
}
