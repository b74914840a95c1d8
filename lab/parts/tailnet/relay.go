package main

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"tailscale.com/derp/derpserver"
	"tailscale.com/net/stunserver"
	"tailscale.com/tailcfg"
	"tailscale.com/types/key"
)

// relay is the vendor's DERP server and STUN server, as the one region of the tailnet. DERP is served over TLS, and over
// plain HTTP on the same port, as the relay inside a headscale does where its URL is http.
type relay struct {
	derp   *derpserver.Server
	server *http.Server
	region *tailcfg.DERPMap
}

// startRelay answers on both ports when it returns; STUN ends with the context, DERP by close.
func startRelay(ctx context.Context, c config, log *slog.Logger) (*relay, error) {
	cert, err := selfSigned(c.derpHost)
	if err != nil {
		return nil, err
	}
	stun := stunserver.New(ctx)
	if err := stun.Listen(net.JoinHostPort(c.derpHost, strconv.Itoa(c.stunPort))); err != nil {
		return nil, fmt.Errorf("--stun-port: %w", err)
	}
	ln, err := net.Listen("tcp", net.JoinHostPort(c.derpHost, strconv.Itoa(c.derpPort)))
	if err != nil {
		return nil, fmt.Errorf("--derp-port: %w", err)
	}
	d := derpserver.New(key.NewNode(), vendorLog(log, "derp"))
	r := &relay{
		derp: d,
		server: &http.Server{
			Handler:           derpserver.AddWebSocketSupport(d, derpserver.Handler(d)),
			ReadHeaderTimeout: 10 * time.Second,
			ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		},
		region: derpMap(c.derpHost, portOf(ln.Addr()), portOf(stun.LocalAddr()), cert),
	}
	go stun.Serve()
	go r.server.Serve(eitherListener{ln, &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12}})
	return r, nil
}

// eitherListener accepts connections with and without TLS.
type eitherListener struct {
	net.Listener
	config *tls.Config
}

func (l eitherListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &eitherConn{c, sync.OnceValue(func() io.ReadWriter { return eitherStream(c, l.config) })}, nil
}

// eitherConn waits for the first byte of its client when it is first read, so that it does not hold up other connections.
type eitherConn struct {
	net.Conn
	stream func() io.ReadWriter
}

func (c *eitherConn) Read(p []byte) (int, error)  { return c.stream().Read(p) }
func (c *eitherConn) Write(p []byte) (int, error) { return c.stream().Write(p) }

// eitherStream is a connection with TLS where its first byte begins a TLS record.
func eitherStream(c net.Conn, config *tls.Config) io.ReadWriter {
	r := bufio.NewReader(c)
	peeked := peekedConn{c, r}
	if first, err := r.Peek(1); err == nil && first[0] == tlsHandshake {
		return tls.Server(peeked, config)
	}
	return peeked
}

const tlsHandshake = 22

type peekedConn struct {
	net.Conn
	r io.Reader
}

func (c peekedConn) Read(p []byte) (int, error) { return c.r.Read(p) }

// address is that of DERP.
func (r *relay) address() string {
	n := r.region.Regions[1].Nodes[0]
	return net.JoinHostPort(n.HostName, strconv.Itoa(n.DERPPort))
}

// close ends DERP and every connection through it.
func (r *relay) close() {
	r.server.Close()
	r.derp.Close()
}

// derpMap returns where the relay is and which certificate it has.
func derpMap(host string, derpPort, stunPort int, cert tls.Certificate) *tailcfg.DERPMap {
	sum := sha256.Sum256(cert.Certificate[0])
	return &tailcfg.DERPMap{Regions: map[int]*tailcfg.DERPRegion{1: {
		RegionID:   1,
		RegionCode: "lab",
		RegionName: "lab",
		Nodes: []*tailcfg.DERPNode{{
			Name:       "lab1",
			RegionID:   1,
			HostName:   host,
			IPv4:       host,
			IPv6:       "none",
			DERPPort:   derpPort,
			STUNPort:   stunPort,
			STUNTestIP: host,
			CertName:   "sha256-raw:" + hex.EncodeToString(sum[:]),
		}},
	}}}
}

// selfSigned makes a certificate for an IP address that nodes trust by its hash.
func selfSigned(ip string) (tls.Certificate, error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().AddDate(1, 0, 0),
		IPAddresses:  []net.IP{net.ParseIP(ip)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: private}, nil
}

// portOf is the port of a TCP or UDP address.
func portOf(a net.Addr) int {
	switch a := a.(type) {
	case *net.TCPAddr:
		return a.Port
	case *net.UDPAddr:
		return a.Port
	}
	return 0
}
