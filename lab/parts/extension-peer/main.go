// Command extension-peer is a second extension server, written in Go on the types of Envoy Gateway itself, and a client
// of extension servers: what ours is measured against, and what shows that others can talk to it.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"syscall"
)

// mode is one of the things that the program does.
type mode func(ctx context.Context, args []string, in io.Reader, out io.Writer) error

var modes = map[string]mode{
	"serve":       serve,
	"serving":     awaitServing,
	"check":       check,
	"cluster":     loadCluster,
	"translation": loadTranslation,
	"eds":         follow,
}

func main() {
	// Each side of a comparison has one core.
	runtime.GOMAXPROCS(1)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	err := run(ctx, os.Args[1:], os.Stdin, os.Stdout)
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return
	}
	fmt.Fprintln(os.Stderr, "extension-peer:", err)
	os.Exit(1)
}

func run(ctx context.Context, args []string, in io.Reader, out io.Writer) error {
	var names []string
	for name := range modes {
		names = append(names, name)
	}
	slices.Sort(names)
	if len(args) == 0 || modes[args[0]] == nil {
		return fmt.Errorf("name what to do: %s", strings.Join(names, ", "))
	}
	return modes[args[0]](ctx, args[1:], in, out)
}

// parse reads the flags of a mode, which takes nothing else.
func parse(f *flag.FlagSet, args []string) error {
	if err := f.Parse(args); err != nil {
		return err
	}
	if f.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q: every setting is a flag", f.Arg(0))
	}
	return nil
}

// writeLine writes a value as one line of JSON.
func writeLine(out io.Writer, what any) error {
	return json.NewEncoder(out).Encode(what)
}
