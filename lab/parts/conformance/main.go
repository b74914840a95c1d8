// Command conformance runs the conformance suite of Gateway API, and exports what the suite consists of.
package main

import (
	"encoding/json"
	"flag"
	"io/fs"
	"log"
	"os"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/gateway-api/conformance"
	"sigs.k8s.io/gateway-api/conformance/tests"
	"sigs.k8s.io/gateway-api/conformance/utils/suite"
	"sigs.k8s.io/gateway-api/pkg/features"
)

var (
	export    = flag.String("export", "", "write the manifests of the suite into this new folder, print its tests, and exit")
	manifests = flag.String("manifests", "", "the folder with the manifests to apply")
	names     = flag.String("tests", "", "the tests to run, separated by commas; all if empty")
)

func main() {
	testing.Init()
	flag.Parse()
	if *export != "" {
		exportSuite(*export)
		return
	}
	testing.Main(
		func(_, _ string) (bool, error) { return true, nil },
		[]testing.InternalTest{{Name: "Conformance", F: run}}, nil, nil,
	)
}

// run is conformance.RunConformanceWithOptions with the selected tests.
func run(t *testing.T) {
	options := conformance.DefaultOptions(t)
	options.ManifestFS = []fs.FS{os.DirFS(*manifests)}
	options.ExemptFeatures = append(options.ExemptFeatures, meshFeatures()...)
	tests.ConformanceTests = selected()
	conformance.RunConformanceWithOptions(t, options)
}

// selected returns the tests of gateways, to run one after another: the report counts a parallel test as passed before it runs.
func selected() []suite.ConformanceTest {
	var list []suite.ConformanceTest
	for _, test := range tests.ConformanceTests {
		isForMeshes := slices.Contains(test.Features, features.SupportMesh)
		isWanted := *names == "" || slices.Contains(strings.Split(*names, ","), test.ShortName)
		if isForMeshes || !isWanted {
			continue
		}
		test.Parallel = false
		list = append(list, test)
	}
	return list
}

// meshFeatures returns the features of meshes between Services, which a gateway has not.
func meshFeatures() []features.FeatureName {
	return features.SetsToNamesSet(features.MeshCoreFeatures, features.MeshExtendedFeatures).UnsortedList()
}

type described struct {
	Name        string                 `json:"name"`
	Features    []features.FeatureName `json:"features"`
	Provisional bool                   `json:"provisional"`
}

func exportSuite(folder string) {
	if err := os.CopyFS(folder, conformance.Manifests); err != nil {
		log.Fatal(err)
	}
	var list []described
	for _, test := range selected() {
		list = append(list, described{test.ShortName, test.Features, test.Provisional})
	}
	if err := json.NewEncoder(os.Stdout).Encode(list); err != nil {
		log.Fatal(err)
	}
}
