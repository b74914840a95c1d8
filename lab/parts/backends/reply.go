package main

import (
	"encoding/json"
	"net/http"
)

// fault describes what is wrong with a call and what would be right.
type fault struct {
	Field   string `json:"field"`
	Message string `json:"message"`
	Fix     string `json:"fix"`
}

// reply writes a value as JSON.
func reply(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(value)
}

func fail(w http.ResponseWriter, status int, f fault) {
	reply(w, status, map[string]fault{"error": f})
}
