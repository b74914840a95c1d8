package main

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestControlSaysWhatIsWrongAndWhatIsRight(t *testing.T) {
	l := startLab(t)
	for _, c := range []struct {
		name, method, path, body string
		status                   int
		field                    string
	}{
		{"no such call", "GET", "/nope", "", 404, "path"},
		{"no such service", "GET", "/services/ftp", "", 404, "name"},
		{"no such service to change", "PUT", "/services/ftp", `{"mode": "dead"}`, 404, "name"},
		{"no body", "PUT", "/services/http", "", 400, "body"},
		{"unknown field", "PUT", "/services/http", `{"mode": "dead", "delay": 1}`, 400, "body"},
		{"no such mode", "PUT", "/services/http", `{"mode": "ill"}`, 422, "mode"},
		{"slow without a delay", "PUT", "/services/http", `{"mode": "slow"}`, 422, "delayMs"},
		{"a delay without slow", "PUT", "/services", `{"mode": "dead", "delayMs": 5}`, 422, "delayMs"},
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

func TestAllServicesChangeAtOnce(t *testing.T) {
	l := startLab(t)
	for _, want := range []condition{dead, failing, healthy} {
		var got struct{ Services map[string]state }
		l.call("PUT", "/services", `{"mode": "`+string(want)+`"}`, &got)
		for _, name := range protocols {
			if s := got.Services[name]; s.Condition != want || s.Address != l.addresses[name] {
				t.Errorf("%s is %+v, want %s on its first address", name, s, want)
			}
		}
	}
}

func TestAServiceThatCannotListenAgainStaysDead(t *testing.T) {
	l := startLab(t)
	l.make("tcp", mode{Condition: dead})
	thief, err := net.Listen("tcp", l.addresses["tcp"])
	if err != nil {
		t.Fatal(err)
	}
	var got struct{ Error fault }
	if status := l.call("PUT", "/services/tcp", `{"mode": "healthy"}`, &got); status != 409 || got.Error.Field != "mode" {
		t.Errorf("%d %+v", status, got)
	}
	if s := l.state("tcp"); s.Condition != dead {
		t.Errorf("the state is %s", s.Condition)
	}
	thief.Close()
	l.make("tcp", mode{Condition: healthy})
}

func TestFlagsThatCannotWorkAreRefusedByName(t *testing.T) {
	for _, c := range []struct{ flags, want string }{
		{"--host example.com", "--host"},
		{"--http-port 70000", "--http-port"},
		{"--control 10.0.0.1:0", "--control"},
		{"--control here", "--control"},
		{"--names ,", "--names"},
		{"extra", "extra"},
	} {
		if _, err := parseConfig(strings.Fields(c.flags), io.Discard); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s named", c.flags, err, c.want)
		}
	}
}

func TestProcessIsReadyOnceAndStopsOnSIGTERM(t *testing.T) {
	ready := filepath.Join(t.TempDir(), "ready.json")
	process := exec.Command(os.Args[0], "--ready-file", ready)
	process.Env = append(os.Environ(), asProgram+"=1")
	var log strings.Builder
	process.Stderr = &log
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	defer process.Process.Kill()
	var addresses map[string]string
	eventually(t, "it is ready", func() error {
		text, err := os.ReadFile(ready)
		if err != nil {
			return err
		}
		return json.Unmarshal(text, &addresses)
	})
	for _, name := range []string{"http", "grpc", "https", "tls", "tcp"} {
		conn, err := net.Dial("tcp", addresses[name])
		if err != nil {
			t.Error("it reported that it was ready:", err)
			continue
		}
		defer conn.Close() // open at the end: it must not hold the process
	}
	process.Process.Signal(syscall.SIGTERM)
	if err := process.Wait(); err != nil {
		t.Error("it should end with status 0:", err)
	}
	if _, err := os.Stat(ready); !errors.Is(err, fs.ErrNotExist) {
		t.Error("the ready file is still there:", err)
	}
	for line := range strings.Lines(log.String()) {
		if !json.Valid([]byte(line)) {
			t.Errorf("log line is not JSON: %s", line)
		}
	}
}
