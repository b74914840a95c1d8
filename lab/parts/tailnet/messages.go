package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
)

const maxMessage = 1 << 20

// readMessage decodes a node's request, or answers it with the reason and reports false.
func readMessage(w http.ResponseWriter, r *http.Request, into any) bool {
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxMessage)).Decode(into); err != nil {
		http.Error(w, "bad request: "+err.Error(), http.StatusBadRequest)
		return false
	}
	return true
}

// withMessage is the request with another body and context, for the vendor's server.
func withMessage(ctx context.Context, r *http.Request, message any) (*http.Request, error) {
	body, err := json.Marshal(message)
	if err != nil {
		return nil, err
	}
	return http.NewRequestWithContext(ctx, r.Method, r.URL.Path, bytes.NewReader(body))
}
