package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/net/proxy"
)

// node is a real tailscaled with userspace networking and a proxy for CONNECT and SOCKS5.
type node struct {
	t       *testing.T
	lab     lab
	name    string
	dir     string
	proxy   string
	process *exec.Cmd
}

// startNode starts a tailscaled that has not joined yet; it ends with the test.
func startNode(t *testing.T, l lab, name string) *node {
	t.Helper()
	dir, err := os.MkdirTemp("", "node-") // t.TempDir would make the socket's path too long
	if err != nil {
		t.Fatal(err)
	}
	n := &node{t: t, lab: l, name: name, dir: dir, proxy: freeAddress(t)}
	n.start()
	t.Cleanup(func() {
		n.stop()
		if t.Failed() {
			text, _ := os.ReadFile(filepath.Join(dir, "log"))
			t.Logf("log of node %s, its end:\n%s", name, text[max(0, len(text)-4000):])
		}
		os.RemoveAll(dir)
	})
	return n
}

func (n *node) start() {
	n.t.Helper()
	log, err := os.OpenFile(filepath.Join(n.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		n.t.Fatal(err)
	}
	defer log.Close()
	n.process = exec.Command(filepath.Join(binaries, "tailscaled"), "--tun=userspace-networking", "--statedir="+n.dir,
		"--socket="+n.socket(), "--port=0", "--socks5-server="+n.proxy, "--outbound-http-proxy-listen="+n.proxy)
	n.process.Env = append(os.Environ(), "TS_NO_LOGS_NO_SUPPORT=true", "TS_DISABLE_PORTMAPPER=1", "TS_LOGS_DIR="+n.dir)
	n.process.Stdout, n.process.Stderr = log, log
	if err := n.process.Start(); err != nil {
		n.t.Fatal(err)
	}
	eventually(n.t, n.name+" answers", func() error { _, err := os.Stat(n.socket()); return err })
}

func (n *node) stop() {
	n.process.Process.Signal(syscall.SIGTERM)
	n.process.Wait()
	os.Remove(n.socket())
}

func (n *node) socket() string { return filepath.Join(n.dir, "ts.sock") }

// cli runs a tailscale command and returns what it printed.
func (n *node) cli(limit time.Duration, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	out, err := n.command(ctx, args...).CombinedOutput()
	return string(out), err
}

func (n *node) command(ctx context.Context, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, filepath.Join(binaries, "tailscale"), append([]string{"--socket=" + n.socket()}, args...)...)
}

// cliUntil runs a command that does not end by itself until it has written something, or until the timeout.
func (n *node) cliUntil(want string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	cmd := n.command(ctx, args...)
	out, err := cmd.StderrPipe()
	if err != nil {
		return "", err
	}
	if err := cmd.Start(); err != nil {
		return "", err
	}
	var text strings.Builder
	for lines := bufio.NewScanner(out); !strings.Contains(text.String(), want) && lines.Scan(); {
		text.WriteString(lines.Text() + "\n")
	}
	cancel()
	return text.String(), cmd.Wait()
}

func (n *node) up(key string, more ...string) (string, error) {
	return n.cli(timeout, append([]string{"up", "--login-server=" + n.lab.url, "--hostname=" + n.name, "--accept-dns=false", "--auth-key=" + key}, more...)...)
}

// join brings the node up with a join key and waits until peers can reach it. A client that tried a dead key
// before may show that one's refusal first, so it tries again.
func (n *node) join(key string, more ...string) *node {
	n.t.Helper()
	eventually(n.t, n.name+" joins", func() error {
		out, err := n.up(key, more...)
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	})
	eventually(n.t, n.name+" is reachable", func() error {
		for _, v := range n.lab.nodes() {
			if v.Hostname == n.name && v.Reachable {
				return nil
			}
		}
		return errors.New("it is not")
	})
	return n
}

// hasLogged reports whether the daemon has logged a text.
func (n *node) hasLogged(text string) error {
	log, err := os.ReadFile(filepath.Join(n.dir, "log"))
	if err == nil && !strings.Contains(string(log), text) {
		err = errors.New("it is not in its log")
	}
	return err
}

type status struct {
	BackendState string
	Self         struct {
		TailscaleIPs []string
		DNSName      string
		Tags         []string
	}
	Peer map[string]struct {
		DNSName string
		Online  bool
		Expired bool
		Tags    []string
	}
}

func (n *node) status() status {
	n.t.Helper()
	var s status
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	out, err := exec.CommandContext(ctx, filepath.Join(binaries, "tailscale"), "--socket="+n.socket(), "status", "--json").Output()
	if err != nil {
		n.t.Fatal(err)
	}
	if err := json.Unmarshal(out, &s); err != nil {
		n.t.Fatal(err)
	}
	return s
}

// way is how a node dials into the tailnet.
type way func(target string) (net.Conn, error)

const dialLimit = 3 * time.Second

// connect dials through the node's HTTP proxy.
func (n *node) connect(target string) (net.Conn, error) {
	conn, err := net.DialTimeout("tcp", n.proxy, dialLimit)
	if err != nil {
		return nil, err
	}
	conn.SetDeadline(time.Now().Add(dialLimit))
	fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", target, target)
	res, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: "CONNECT"})
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("CONNECT %s: %s %s", target, res.Status, res.Header.Get("Tailscale-Connect-Error"))
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}

// socks dials through the node's SOCKS5 proxy; the proxy resolves the name.
func (n *node) socks(target string) (net.Conn, error) {
	d, err := proxy.SOCKS5("tcp", n.proxy, nil, proxy.Direct)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), dialLimit)
	defer cancel()
	return d.(proxy.ContextDialer).DialContext(ctx, "tcp", target)
}

// say sends a line and reads the one that comes back.
func say(conn net.Conn, line string) error {
	conn.SetDeadline(time.Now().Add(dialLimit))
	if _, err := io.WriteString(conn, line+"\n"); err != nil {
		return err
	}
	got, err := bufio.NewReader(conn).ReadString('\n')
	if err == nil && got != line+"\n" {
		err = fmt.Errorf("sent %q, got %q", line, got)
	}
	return err
}

// reach dials a target and has a line echoed.
func reach(dial way, target string) error {
	conn, err := dial(target)
	if err != nil {
		return err
	}
	defer conn.Close()
	return say(conn, "hello "+target)
}

// startEcho echoes lines on loopback, where every userspace node delivers what comes to its address; it returns the port.
func startEcho(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			go func() { defer conn.Close(); io.Copy(conn, conn) }()
		}
	}()
	return fmt.Sprint(portOf(ln.Addr()))
}

func freeAddress(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return ln.Addr().String()
}

// refused asserts that a node has no address, runs nothing and is in no list.
func (n *node) refused(wantMessage, out string, err error) {
	n.t.Helper()
	if err == nil {
		n.t.Fatalf("%s joined", n.name)
	}
	if !strings.Contains(out, wantMessage) {
		n.t.Errorf("%s printed %q, want %q in it", n.name, out, wantMessage)
	}
	if s := n.status(); len(s.Self.TailscaleIPs) > 0 || s.BackendState == "Running" {
		n.t.Errorf("%s is %s with addresses %v", n.name, s.BackendState, s.Self.TailscaleIPs)
	}
	for _, v := range n.lab.nodes() {
		if v.Hostname == n.name {
			n.t.Errorf("%s is in the list: %+v", n.name, v)
		}
	}
}
