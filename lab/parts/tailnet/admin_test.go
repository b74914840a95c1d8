package main

import (
	"net/http"
	"testing"
)

func TestAdminSaysWhatIsWrongAndWhatIsRight(t *testing.T) {
	l := startLab(t)
	for _, c := range []struct {
		name, method, path, body string
		status                   int
		field                    string
	}{
		{"no such call", "GET", "/nope", "", 404, "path"},
		{"wrong method", "PATCH", "/nodes", "", 404, "path"},
		{"no such node", "POST", "/nodes/x/expire", "", 404, "id"},
		{"no such node to remove", "DELETE", "/nodes/x", "", 404, "id"},
		{"no such node to forget", "POST", "/nodes/x/forget", "", 404, "id"},
		{"no such key", "DELETE", "/keys/x", "", 404, "id"},
		{"no such key to forget", "POST", "/keys/x/forget", "", 404, "id"},
		{"no body", "POST", "/keys", "", 400, "body"},
		{"unknown field", "POST", "/keys", `{"reuseable": true}`, 400, "body"},
		{"wrong type", "POST", "/keys", `{"reusable": "yes"}`, 400, "reusable"},
		{"no tag", "POST", "/keys", `{"tags": ["tag:ok", "web"]}`, 422, "tags[1]"},
		{"no dialect", "POST", "/keys", `{"dialect": "esperanto"}`, 422, "dialect"},
		{"no time to live", "POST", "/keys", `{"expirySeconds": 0}`, 422, "expirySeconds"},
		{"no tag for a node", "PUT", "/nodes/x/tags", `{"tags": ["web"]}`, 422, "tags[0]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got struct{ Error fault }
			status := l.call(c.method, c.path, c.body, &got)
			if status != c.status || got.Error.Field != c.field || got.Error.Message == "" || got.Error.Fix == "" {
				t.Errorf("got %d %+v, want %d with field %s, a message and a fix", status, got.Error, c.status, c.field)
			}
		})
	}
}

// The vendor's server ends the process at what it does not expect; none of it may get there.
func TestUnexpectedRequestsDoNotEndTheProcess(t *testing.T) {
	l := startLab(t)
	for _, path := range []string{"/", "/machine/register", "/machine/map", "/machine/nope", "/ts2021", "/c2n/x", "/key"} {
		res, err := http.Post(l.url+path, "application/json", http.NoBody)
		if err != nil {
			t.Fatal(path, err)
		}
		res.Body.Close()
		if res.StatusCode < 400 {
			t.Errorf("%s: %s", path, res.Status)
		}
	}
	l.must("GET", "/nodes", "", nil)
}
