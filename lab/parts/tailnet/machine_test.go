package main

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"tailscale.com/tailcfg"
	"tailscale.com/types/key"
)

// send sends a message as if it came from a machine through its Noise connection.
func send(t *testing.T, c *control, machine key.MachinePublic, path string, message any) *httptest.ResponseRecorder {
	t.Helper()
	body, err := json.Marshal(message)
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(string(body)))
	w := httptest.NewRecorder()
	c.inside().ServeHTTP(w, r.WithContext(withMachine(r.Context(), machine)))
	return w
}

func TestANodeKeyIsOfUseToItsMachineOnly(t *testing.T) {
	c := newControl("http://127.0.0.1:1", "example.ts.net", &tailcfg.DERPMap{}, slog.New(slog.DiscardHandler))
	_, secret, err := c.keys.add(joinKey{ExpiresAt: time.Now().Add(time.Hour)}, vendorDialect, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	owner, thief, node := key.NewMachine().Public(), key.NewMachine().Public(), key.NewNode().Public()
	join := tailcfg.RegisterRequest{Version: 100, NodeKey: node, Hostinfo: &tailcfg.Hostinfo{Hostname: "n"}, Auth: &tailcfg.RegisterResponseAuth{AuthKey: secret}}
	if w := send(t, c, owner, "/machine/register", join); len(c.members.all()) != 1 {
		t.Fatalf("the owner does not join: %d %s", w.Code, w.Body)
	}
	poll := tailcfg.MapRequest{Version: 100, NodeKey: node, Hostinfo: &tailcfg.Hostinfo{Hostname: "n"}}
	if w := send(t, c, owner, "/machine/map", poll); w.Code != http.StatusOK {
		t.Errorf("the owner gets no netmap: %d %s", w.Code, w.Body)
	}
	if w := send(t, c, thief, "/machine/map", poll); w.Code != http.StatusNotFound {
		t.Errorf("another machine gets a netmap: %d", w.Code)
	}
	var res tailcfg.RegisterResponse
	if w := send(t, c, thief, "/machine/register", join); json.Unmarshal(w.Body.Bytes(), &res) != nil || res.Error == "" {
		t.Errorf("another machine registers: %d %s", w.Code, w.Body)
	}
}

func TestAForgottenNodeIsAStranger(t *testing.T) {
	c := newControl("http://127.0.0.1:1", "example.ts.net", &tailcfg.DERPMap{}, slog.New(slog.DiscardHandler))
	_, secret, err := c.keys.add(joinKey{Reusable: true, ExpiresAt: time.Now().Add(time.Hour)}, vendorDialect, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	machine, node := key.NewMachine().Public(), key.NewNode().Public()
	again := tailcfg.RegisterRequest{Version: 100, NodeKey: node, Hostinfo: &tailcfg.Hostinfo{Hostname: "n"}}
	join := again
	join.Auth = &tailcfg.RegisterResponseAuth{AuthKey: secret}
	send(t, c, machine, "/machine/register", join)
	before := c.members.all()[0]
	address := c.view(before).Addresses[0]
	c.members.update(before.id, c.members.forget)

	for _, stream := range []bool{false, true} {
		poll := tailcfg.MapRequest{Version: 100, NodeKey: node, Stream: stream, OmitPeers: !stream}
		if w := send(t, c, machine, "/machine/map", poll); w.Code != http.StatusNotFound || w.Body.String() != "node not found\n" {
			t.Errorf("a map request with stream %t: %d %q", stream, w.Code, w.Body)
		}
	}
	var res tailcfg.RegisterResponse
	if w := send(t, c, machine, "/machine/register", again); json.Unmarshal(w.Body.Bytes(), &res) != nil || res.AuthURL == "" || res.NodeKeyExpired {
		t.Errorf("without a join key it is not sent to log in: %d %s", w.Code, w.Body)
	}
	if w := send(t, c, machine, "/machine/register", join); len(c.members.all()) != 1 {
		t.Fatalf("it does not join with its old node key and a join key: %d %s", w.Code, w.Body)
	}
	after := c.members.all()[0]
	if now := c.view(after).Addresses[0]; after.id == before.id || after.name != before.name || now == address {
		t.Errorf("it joins as %s %s %s, want a new node with the name of %s %s %s", after.id, after.name, now, before.id, before.name, address)
	}
	other := join
	other.NodeKey = key.NewNode().Public()
	send(t, c, key.NewMachine().Public(), "/machine/register", other)
	for _, m := range c.members.all() {
		if m.nodeKey == other.NodeKey && (m.id == after.id || m.id == before.id) {
			t.Errorf("another node gets the id %s, which is not free", m.id)
		}
	}
}

// No message of a node reaches the vendor's server that would end the process.
func TestMalformedMessagesAreAnswered(t *testing.T) {
	c := newControl("http://127.0.0.1:1", "example.ts.net", &tailcfg.DERPMap{}, slog.New(slog.DiscardHandler))
	for _, path := range []string{"/machine/register", "/machine/map"} {
		for _, message := range []any{nil, "text", 7, map[string]any{}, map[string]any{"NodeKey": "nodekey:00"}} {
			if w := send(t, c, key.NewMachine().Public(), path, message); w.Code < 400 {
				t.Errorf("%s with %v: %d", path, message, w.Code)
			}
		}
	}
	if w := send(t, c, key.NewMachine().Public(), "/machine/audit-log", nil); w.Code != http.StatusNotFound {
		t.Errorf("unknown path: %d", w.Code)
	}
}
