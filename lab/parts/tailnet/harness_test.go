package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// binaries is the folder with tailscaled and tailscale.
var binaries string

// TestMain takes the vendor's binaries from TAILSCALE_BINARIES, or builds them from this module.
func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		return
	}
	os.Exit(testMain(m))
}

// asProgram names the variable that makes the test binary the program itself.
const asProgram = "TAILNET_TEST_AS_PROGRAM"

func testMain(m *testing.M) int {
	binaries = os.Getenv("TAILSCALE_BINARIES")
	if binaries == "" {
		dir, err := os.MkdirTemp("", "tailscale-binaries-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		fmt.Fprintln(os.Stderr, "building tailscaled and tailscale; set TAILSCALE_BINARIES to a folder that has them to save this")
		build := exec.Command("go", "build", "-o", dir+"/", "tailscale.com/cmd/tailscaled", "tailscale.com/cmd/tailscale")
		build.Stderr = os.Stderr
		if err := build.Run(); err != nil {
			fmt.Fprintln(os.Stderr, "building the vendor's binaries:", err)
			return 1
		}
		binaries = dir
	}
	return m.Run()
}

// lab is a running tailnet with its admin endpoint.
type lab struct {
	t     *testing.T
	url   string
	admin string
}

// startLab runs a tailnet in this process until the test ends.
func startLab(t *testing.T, flags ...string) lab {
	t.Helper()
	ready := filepath.Join(t.TempDir(), "ready.json")
	c, err := parseConfig(append([]string{"--ready-file", ready}, flags...), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, c, newLog(t.Output(), false)) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error("tailnet:", err)
		}
	})
	var addresses struct{ URL, Admin string }
	eventually(t, "the tailnet is ready", func() error {
		text, err := os.ReadFile(ready)
		if err != nil {
			return err
		}
		return json.Unmarshal(text, &addresses)
	})
	return lab{t, addresses.URL, addresses.Admin}
}

// call makes an admin call, decodes its answer and returns the status.
func (l lab) call(method, path, body string, into any) int {
	l.t.Helper()
	req, err := http.NewRequest(method, l.admin+path, bytes.NewBufferString(body))
	if err != nil {
		l.t.Fatal(err)
	}
	req.Close = true // a port may have been another process's before; its idle connections are of no use
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		l.t.Fatal(err)
	}
	defer res.Body.Close()
	if err := json.NewDecoder(res.Body).Decode(into); err != nil {
		l.t.Fatalf("%s %s: answer is not JSON: %v", method, path, err)
	}
	return res.StatusCode
}

// must makes an admin call that has to succeed.
func (l lab) must(method, path, body string, into any) {
	l.t.Helper()
	var text json.RawMessage
	if status := l.call(method, path, body, &text); status >= 300 {
		l.t.Fatalf("%s %s: %d %s", method, path, status, text)
	}
	if into != nil {
		if err := json.Unmarshal(text, into); err != nil {
			l.t.Fatal(err)
		}
	}
}

type newKey struct{ ID, Key string }

func (l lab) addKey(body string) newKey {
	l.t.Helper()
	var k newKey
	l.must("POST", "/keys", body, &k)
	return k
}

func (l lab) nodes() []nodeView {
	l.t.Helper()
	var list struct{ Nodes []nodeView }
	l.must("GET", "/nodes", "", &list)
	return list.Nodes
}

// find is the node with this FQDN in the admin's list.
func (l lab) find(fqdn string) nodeView {
	l.t.Helper()
	for _, n := range l.nodes() {
		if n.FQDN == fqdn {
			return n
		}
	}
	l.t.Fatalf("no node %s in %+v", fqdn, l.nodes())
	return nodeView{}
}

const timeout = 100 * time.Second

// eventually tries again until there is no error, and fails with the last one.
func eventually(t *testing.T, what string, try func() error) {
	t.Helper()
	var err error
	for end := time.Now().Add(timeout); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if err = try(); err == nil {
			return
		}
	}
	t.Fatalf("not within %s: %s: %v", timeout, what, err)
}

func (l lab) keys() []joinKey {
	l.t.Helper()
	var list struct{ Keys []joinKey }
	l.must("GET", "/keys", "", &list)
	return list.Keys
}
