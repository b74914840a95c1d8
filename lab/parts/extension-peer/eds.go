package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
)

// timeout is how long an answer or a change may take before it counts as lost.
const timeout = 30 * time.Second

// opened is the first line of output, when every stream has had its first answer.
type opened struct {
	Streams int `json:"streams"`
	// How many of the first answers had endpoints.
	WithEndpoints int `json:"withEndpoints"`
	// From the opening of each stream to its answer.
	figures
}

// change is a line of input: put a file into a place, and wait for an address in a cluster's endpoints.
type change struct {
	From    string `json:"from"`
	To      string `json:"to"`
	Cluster string `json:"cluster"`
	Address string `json:"address"`
}

// changed is a line of output, when a change has reached every Envoy.
type changed struct {
	Cluster string `json:"cluster"`
	// From the moment before the file was put there, for each Envoy.
	TookMs []float64 `json:"tookMs"`
}

// follow plays Envoys that follow the endpoints of clusters, until its input ends.
func follow(ctx context.Context, args []string, in io.Reader, out io.Writer) error {
	f := flag.NewFlagSet("eds", flag.ContinueOnError)
	address := f.String("address", "", "`address` of the extension server")
	path := f.String("resources", "", "`path` of a JSON list of clusters and the objects behind them")
	envoys := f.Int("envoys", 4, "`number` of connections")
	gateway := f.String("gateway", "default/gateway", "`namespace/name` of the Gateway that the Envoys serve")
	nodeBytes := f.Int("node-bytes", 0, "`number` of bytes with which an Envoy describes itself on each stream")
	if err := parse(f, args); err != nil {
		return err
	}
	resources, err := readResources(*path)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w := &watch{arrivals: make(chan arrival, *envoys*len(resources)), envoys: *envoys, extensions: someExtensions(*nodeBytes)}
	result, err := w.open(ctx, *address, *gateway, resources)
	if err == nil {
		err = writeLine(out, result)
	}
	if err != nil {
		return err
	}
	return w.obey(ctx, in, out)
}

// watch is all streams of all Envoys.
type watch struct {
	arrivals   chan arrival
	envoys     int
	extensions []*corev3.Extension
}

// open opens all streams and waits for the first answer of each.
func (w *watch) open(ctx context.Context, address, gateway string, resources []resource) (opened, error) {
	type place struct {
		envoy   int
		cluster string
	}
	began := map[place]time.Time{}
	note := func(a arrival) {
		select {
		case w.arrivals <- a:
		case <-ctx.Done():
		}
	}
	for number := range w.envoys {
		conn, err := dial(address)
		if err != nil {
			return opened{}, err
		}
		context.AfterFunc(ctx, func() { conn.Close() })
		for _, r := range resources {
			began[place{number, r.Cluster}] = time.Now()
			e := envoy{number, gateway, conn, w.extensions}
			if err := e.follow(ctx, r.Cluster, note); err != nil {
				return opened{}, err
			}
		}
	}
	result := opened{Streams: len(began)}
	var durations []time.Duration
	for len(began) > 0 {
		a, err := w.next(ctx)
		if err != nil {
			return result, fmt.Errorf("%d of %d streams without an answer: %w", len(began), result.Streams, err)
		}
		at, isFirst := began[place{a.envoy, a.cluster}]
		if !isFirst {
			continue
		}
		delete(began, place{a.envoy, a.cluster})
		durations = append(durations, a.at.Sub(at))
		if len(a.assignment.GetEndpoints()) > 0 {
			result.WithEndpoints++
		}
	}
	if len(durations) == 0 {
		return result, fmt.Errorf("nothing to follow: --envoys and --resources must name at least one")
	}
	result.figures = figuresOf(durations)
	return result, nil
}

// next waits for what arrives; a stream that is over is an error.
func (w *watch) next(ctx context.Context) (arrival, error) {
	select {
	case a := <-w.arrivals:
		if a.err != nil {
			return a, fmt.Errorf("Envoy %d, %s: %w", a.envoy, a.cluster, a.err)
		}
		return a, nil
	case <-time.After(timeout):
		return arrival{}, fmt.Errorf("nothing arrived within %s", timeout)
	case <-ctx.Done():
		return arrival{}, ctx.Err()
	}
}

// obey makes the changes that its input demands, one after the other.
func (w *watch) obey(ctx context.Context, in io.Reader, out io.Writer) error {
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		var c change
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			return fmt.Errorf("a line of input: %w", err)
		}
		result, err := w.change(ctx, c)
		if err == nil {
			err = writeLine(out, result)
		}
		if err != nil {
			return err
		}
	}
	return lines.Err()
}

// change makes one change and waits until every Envoy has it.
func (w *watch) change(ctx context.Context, c change) (changed, error) {
	result := changed{Cluster: c.Cluster}
	reached := make(map[int]bool, w.envoys)
	start := time.Now()
	if err := os.Rename(c.From, c.To); err != nil {
		return result, err
	}
	for len(reached) < w.envoys {
		a, err := w.next(ctx)
		if err != nil {
			return result, fmt.Errorf("%d of %d Envoys have %s in %s: %w", len(reached), w.envoys, c.Address, c.Cluster, err)
		}
		if a.cluster == c.Cluster && !reached[a.envoy] && a.has(c.Address) {
			reached[a.envoy] = true
			result.TookMs = append(result.TookMs, milliseconds(a.at.Sub(start)))
		}
	}
	return result, nil
}
