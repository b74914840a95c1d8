package main

import (
	"encoding/json"
	"fmt"
	"os"
)

// resource is an object of the user, and the cluster that Envoy Gateway makes of the route that refers to it.
type resource struct {
	Cluster string          `json:"cluster"`
	Object  json.RawMessage `json:"object"`
}

// meshEndpoints is as much of the kind as is needed here.
type meshEndpoints struct {
	Spec struct {
		Endpoints []struct {
			Protocol string `json:"protocol"`
		} `json:"endpoints"`
	} `json:"spec"`
}

// speaksHTTP2 reports whether the endpoints of an object take HTTP/2 only.
func (r resource) speaksHTTP2() (bool, error) {
	var object meshEndpoints
	if err := json.Unmarshal(r.Object, &object); err != nil {
		return false, fmt.Errorf("the object of %s: %w", r.Cluster, err)
	}
	endpoints := object.Spec.Endpoints
	return len(endpoints) > 0 && endpoints[0].Protocol == "gRPC", nil
}

// readResources reads a list of resources; no path is an empty list.
func readResources(path string) ([]resource, error) {
	if path == "" {
		return nil, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var list []resource
	if err := json.Unmarshal(text, &list); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	for i, r := range list {
		if r.Cluster == "" || len(r.Object) == 0 || r.Object[0] != '{' {
			return nil, fmt.Errorf("%s: number %d has no cluster or no object", path, i+1)
		}
	}
	return list, nil
}
