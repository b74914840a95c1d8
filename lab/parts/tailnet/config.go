package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/netip"
	"regexp"
	"strings"
	"time"
)

// config is all input of the process.
type config struct {
	listen         string
	url            string
	admin          string
	domain         string
	derpHost       string
	derpPort       int
	stunPort       int
	ephemeralAfter time.Duration
	readyFile      string
	verbose        bool
}

var domainPattern = regexp.MustCompile(`^([a-z0-9]([a-z0-9-]*[a-z0-9])?\.)+[a-z]{2,}$`)

// parseConfig reads the flags and refuses, by name, those that cannot work.
func parseConfig(args []string, usage io.Writer) (config, error) {
	var c config
	f := flag.NewFlagSet("tailnet", flag.ContinueOnError)
	f.SetOutput(usage)
	f.StringVar(&c.listen, "listen", "127.0.0.1:0", "`address` of the control server; port 0 takes a free one")
	f.StringVar(&c.url, "url", "", "base `URL` that nodes use (default http://<listen>)")
	f.StringVar(&c.admin, "admin", "127.0.0.1:0", "loopback `address` of the admin endpoint")
	f.StringVar(&c.domain, "domain", "example.ts.net", "MagicDNS `domain`")
	f.StringVar(&c.derpHost, "derp-host", "", "`IP` that DERP and STUN bind and nodes dial (default: the IP of --listen)")
	f.IntVar(&c.derpPort, "derp-port", 0, "DERP TCP `port`; 0 takes a free one")
	f.IntVar(&c.stunPort, "stun-port", 0, "STUN UDP `port`; 0 takes a free one")
	f.DurationVar(&c.ephemeralAfter, "ephemeral-after", time.Minute, "`time` without a connection after which an ephemeral node is removed")
	f.StringVar(&c.readyFile, "ready-file", "", "`path` of a JSON file written when everything answers, removed at exit")
	f.BoolVar(&c.verbose, "verbose", false, "also log the messages of the vendor's packages")
	if err := f.Parse(args); err != nil {
		return c, err
	}
	if f.NArg() > 0 {
		return c, fmt.Errorf("unexpected argument %q: every setting is a flag", f.Arg(0))
	}
	return c, c.complete()
}

// complete fills the defaults that depend on other flags and checks each value.
func (c *config) complete() error {
	listenIP, err := hostIP("listen", c.listen)
	if err != nil {
		return err
	}
	adminIP, err := hostIP("admin", c.admin)
	if err != nil {
		return err
	}
	if c.derpHost == "" {
		c.derpHost = listenIP.String()
	}
	derpIP, err := netip.ParseAddr(c.derpHost)
	switch {
	case !adminIP.IsLoopback():
		return fmt.Errorf("--admin %s: not a loopback address; use 127.0.0.1:<port>, it has no authentication", c.admin)
	case err != nil || !derpIP.Is4() || derpIP.IsUnspecified():
		return fmt.Errorf("--derp-host %q: nodes dial it, so give one IPv4 address of this machine", c.derpHost)
	case listenIP.IsUnspecified() && c.url == "":
		return errors.New("--url is missing: with an unspecified --listen, nodes need an address to connect to")
	case !domainPattern.MatchString(c.domain):
		return fmt.Errorf("--domain %q: not a lower-case DNS name such as example.ts.net", c.domain)
	case c.ephemeralAfter <= 0:
		return fmt.Errorf("--ephemeral-after %s: must be more than zero", c.ephemeralAfter)
	case c.derpPort < 0 || c.derpPort > 65535 || c.stunPort < 0 || c.stunPort > 65535:
		return errors.New("--derp-port, --stun-port: must be 0 to 65535")
	}
	c.url = strings.TrimSuffix(c.url, "/")
	return nil
}

// hostIP is the IP of an ip:port flag.
func hostIP(name, value string) (netip.Addr, error) {
	host, _, err := net.SplitHostPort(value)
	if err != nil {
		return netip.Addr{}, fmt.Errorf("--%s %q: not ip:port", name, value)
	}
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return ip, fmt.Errorf("--%s %q: %q is not an IP address", name, value, host)
	}
	return ip, nil
}
