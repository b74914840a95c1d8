package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/protobuf/reflect/protoregistry"
)

// asProgram names the variable that makes the test binary the program itself.
const asProgram = "BACKENDS_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		return
	}
	if err := registerEcho(protoregistry.GlobalFiles); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// lab is a running process' worth of services.
type lab struct {
	t         *testing.T
	addresses map[string]string
	roots     *x509.CertPool
}

// startLab runs the services in this process until the test ends.
func startLab(t *testing.T, flags ...string) lab {
	t.Helper()
	dir := t.TempDir()
	ready, ca := filepath.Join(dir, "ready.json"), filepath.Join(dir, "ca.pem")
	c, err := parseConfig(append([]string{"--ready-file", ready, "--ca-file", ca, "--name", "test"}, flags...), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, c, slog.New(slog.DiscardHandler)) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error("backends:", err)
		}
	})
	l := lab{t: t, roots: x509.NewCertPool()}
	eventually(t, "the services are ready", func() error {
		text, err := os.ReadFile(ready)
		if err != nil {
			return err
		}
		return json.Unmarshal(text, &l.addresses)
	})
	text, err := os.ReadFile(ca)
	if err != nil || !l.roots.AppendCertsFromPEM(text) {
		t.Fatal("no certificate authority:", err)
	}
	return l
}

// call makes a control call, decodes its answer and returns the status.
func (l lab) call(method, path, body string, into any) int {
	l.t.Helper()
	req, err := http.NewRequest(method, l.addresses["control"]+path, bytes.NewBufferString(body))
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

// make puts a service into a mode and returns its state after it.
func (l lab) make(service string, m mode) state {
	l.t.Helper()
	body, err := json.Marshal(m)
	if err != nil {
		l.t.Fatal(err)
	}
	var s state
	if status := l.call("PUT", "/services/"+service, string(body), &s); status != 200 || s.mode != m {
		l.t.Fatalf("%s is to be %+v, got %d %+v", service, m, status, s)
	}
	return s
}

func (l lab) state(service string) state {
	l.t.Helper()
	var s state
	l.call("GET", "/services/"+service, "", &s)
	return s
}

// secure is how a client trusts the services' certificate.
func (l lab) secure(name string) *tls.Config {
	return &tls.Config{RootCAs: l.roots, ServerName: name}
}

const (
	timeout = 60 * time.Second
	delay   = 300 * time.Millisecond
)

var slowly = mode{Condition: slow, DelayMs: int(delay.Milliseconds())}

// eventually tries again until there is no error, and fails with the last one.
func eventually(t *testing.T, what string, try func() error) {
	t.Helper()
	var err error
	for end := time.Now().Add(timeout); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if err = try(); err == nil {
			return
		}
	}
	t.Fatalf("not within %s: %s: %v", timeout, what, err)
}

// took asserts that something is done, and where it is slow no sooner than after the delay.
func took(t *testing.T, what string, isSlow bool, do func() error) {
	t.Helper()
	start := time.Now()
	if err := do(); err != nil {
		t.Errorf("%s: %v", what, err)
	}
	if d := time.Since(start); isSlow && d < delay {
		t.Errorf("%s took %s", what, d)
	}
}

// echoed sends a line and reads as much back.
func echoed(conn net.Conn, line string) error {
	conn.SetDeadline(time.Now().Add(timeout))
	if _, err := io.WriteString(conn, line); err != nil {
		return err
	}
	got := make([]byte, len(line))
	if _, err := io.ReadFull(conn, got); err != nil {
		return err
	}
	if string(got) != line {
		return fmt.Errorf("sent %q, got %q", line, got)
	}
	return nil
}

// mustFail asserts an error of a kind.
func mustFail(t *testing.T, what string, err, kind error) {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Errorf("%s: %v, want %v", what, err, kind)
	}
}
