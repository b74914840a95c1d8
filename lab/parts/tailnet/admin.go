package main

import (
	"encoding/json"
	"errors"
	"net/http"
)

const maxAdminBody = 64 << 10

// admin is the HTTP and JSON endpoint by which tests see and change the tailnet.
func (c *control) admin() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /nodes", c.listNodes)
	mux.HandleFunc("GET /nodes/{id}", c.getNode)
	mux.HandleFunc("DELETE /nodes/{id}", c.removeNode)
	mux.HandleFunc("POST /nodes/{id}/forget", c.forgetNode)
	mux.HandleFunc("POST /nodes/{id}/expire", c.expireNode)
	mux.HandleFunc("POST /nodes/{id}/expire-for-good", c.expireNodeForGood)
	mux.HandleFunc("POST /nodes/{id}/offline", c.takeNodeOffline)
	mux.HandleFunc("POST /nodes/{id}/online", c.bringNodeBack)
	mux.HandleFunc("POST /nodes/{id}/withdraw-approval", c.withdrawApproval)
	mux.HandleFunc("POST /nodes/{id}/approve", c.approveNode)
	mux.HandleFunc("PUT /nodes/{id}/tags", c.setTags)
	mux.HandleFunc("POST /keys", c.addKey)
	mux.HandleFunc("GET /keys", c.listKeys)
	mux.HandleFunc("DELETE /keys/{id}", c.revokeKey)
	mux.HandleFunc("POST /keys/{id}/forget", c.forgetKey)
	mux.HandleFunc("GET /services", c.listServices)
	mux.HandleFunc("PUT /services/{name}", c.createService)
	mux.HandleFunc("DELETE /services/{name}", c.removeService)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		fail(w, http.StatusNotFound, fault{Field: "path", Message: "no such call: " + r.Method + " " + r.URL.Path,
			Fix: "use GET /nodes, GET|DELETE /nodes/{id}, POST /nodes/{id}/forget|expire|expire-for-good|offline|online|withdraw-approval|approve, PUT /nodes/{id}/tags, GET|POST /keys, DELETE /keys/{id}, POST /keys/{id}/forget, GET /services, PUT|DELETE /services/{name}"})
	})
	return mux
}

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

// readBody decodes the body of a call, or answers what is wrong with it and reports false. Unknown fields are wrong.
func readBody(w http.ResponseWriter, r *http.Request, into any) bool {
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxAdminBody))
	d.DisallowUnknownFields()
	err := d.Decode(into)
	if err == nil {
		return true
	}
	status, field := http.StatusBadRequest, "body"
	var kind *json.UnmarshalTypeError
	if errors.As(err, &kind) && kind.Field != "" {
		field = kind.Field
	}
	var size *http.MaxBytesError
	if errors.As(err, &size) {
		status = http.StatusRequestEntityTooLarge
	}
	fail(w, status, fault{Field: field, Message: err.Error(), Fix: "send one JSON object with the documented fields"})
	return false
}
