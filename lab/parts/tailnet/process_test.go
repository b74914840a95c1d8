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

func TestFlagsThatCannotWorkAreRefusedByName(t *testing.T) {
	for _, c := range []struct{ flags, want string }{
		{"--listen here", "--listen"},
		{"--listen 0.0.0.0:0", "--derp-host"},
		{"--listen 0.0.0.0:0 --derp-host 127.0.0.1", "--url"},
		{"--admin 10.0.0.1:0", "--admin"},
		{"--derp-host example.com", "--derp-host"},
		{"--derp-port 70000", "--derp-port"},
		{"--domain Example", "--domain"},
		{"--ephemeral-after 0s", "--ephemeral-after"},
		{"extra", "extra"},
	} {
		if _, err := parseConfig(strings.Fields(c.flags), io.Discard); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s named", c.flags, err, c.want)
		}
	}
}

func TestProcessIsReadyOnceAndStopsOnSIGTERM(t *testing.T) {
	ready := filepath.Join(t.TempDir(), "ready.json")
	process := exec.Command(os.Args[0], "--ready-file", ready, "--derp-host", "127.0.0.1")
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
	for _, at := range []string{strings.TrimPrefix(addresses["url"], "http://"), strings.TrimPrefix(addresses["admin"], "http://"), addresses["derp"]} {
		conn, err := net.Dial("tcp", at)
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

func TestNames(t *testing.T) {
	long := strings.Repeat("a", 80)
	taken := map[string]bool{"web.x.net": true, "web-1.x.net": true, long[:63] + ".x.net": true}
	for hostname, want := range map[string]string{
		"db": "db.x.net", "web": "web-2.x.net", "Web.local": "web-2.x.net", "my_pc": "my-pc.x.net", "": "node.x.net", long: long[:61] + "-1.x.net",
	} {
		if got := freeName(hostname, "x.net", func(name string) bool { return taken[name] }); got != want {
			t.Errorf("%q becomes %q, want %q", hostname, got, want)
		}
	}
}
