package main

import (
	"flag"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
)

// config is all input of the process.
type config struct {
	name      string
	host      string
	ports     map[string]*int
	control   string
	names     []string
	caFile    string
	readyFile string
}

// protocols are the services that every process has, in the order of its lists.
var protocols = []string{"http", "grpc", "grpcs", "https", "tls", "tcp", "udp"}

// parseConfig reads the flags and refuses, by name, those that cannot work.
func parseConfig(args []string, usage io.Writer) (config, error) {
	c := config{ports: map[string]*int{}}
	f := flag.NewFlagSet("backends", flag.ContinueOnError)
	f.SetOutput(usage)
	f.StringVar(&c.name, "name", "backend", "`name` that every answer gives")
	f.StringVar(&c.host, "host", "127.0.0.1", "`IP` address of every service")
	for _, p := range protocols {
		c.ports[p] = f.Int(p+"-port", 0, "`port` of the "+p+" service; 0 takes a free one")
	}
	f.StringVar(&c.control, "control", "127.0.0.1:0", "loopback `address` of the control endpoint")
	names := f.String("names", "localhost,127.0.0.1", "DNS `names` and IP addresses in the certificate, with commas")
	f.StringVar(&c.caFile, "ca-file", "", "`path` of a PEM file for the certificate authority made at start")
	f.StringVar(&c.readyFile, "ready-file", "", "`path` of a JSON file written when everything answers, removed at exit")
	if err := f.Parse(args); err != nil {
		return c, err
	}
	if f.NArg() > 0 {
		return c, fmt.Errorf("unexpected argument %q: every setting is a flag", f.Arg(0))
	}
	c.names = strings.FieldsFunc(*names, func(r rune) bool { return r == ',' || r == ' ' })
	return c, c.check()
}

// check refuses values that cannot work.
func (c config) check() error {
	if _, err := netip.ParseAddr(c.host); err != nil {
		return fmt.Errorf("--host %q: not an IP address", c.host)
	}
	for _, p := range protocols {
		if port := *c.ports[p]; port < 0 || port > 65535 {
			return fmt.Errorf("--%s-port %d: must be 0 to 65535", p, port)
		}
	}
	host, _, err := net.SplitHostPort(c.control)
	ip, _ := netip.ParseAddr(host)
	if err != nil || !ip.IsLoopback() {
		return fmt.Errorf("--control %q: must be a loopback ip:port, it has no authentication", c.control)
	}
	if len(c.names) == 0 {
		return fmt.Errorf("--names is empty: a certificate needs at least one name")
	}
	return nil
}
