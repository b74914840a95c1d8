package main

import (
	"fmt"
	"io"
	"log/slog"

	"tailscale.com/types/logger"
)

// newLog writes one JSON object per line; what the vendor's packages send to the log package joins it.
func newLog(w io.Writer, verbose bool) *slog.Logger {
	level := slog.LevelInfo
	if verbose {
		level = slog.LevelDebug
	}
	l := slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level}))
	slog.SetDefault(l)
	return l
}

// vendorLog turns the vendor's printf style into debug lines that name their part.
func vendorLog(l *slog.Logger, part string) logger.Logf {
	return func(format string, args ...any) {
		l.Debug("vendor", "part", part, "text", fmt.Sprintf(format, args...))
	}
}
