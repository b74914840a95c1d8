package main

import (
	"math"
	"slices"
	"time"
)

// figures are what many measurements of one thing come to; durations in milliseconds.
type figures struct {
	P50       float64 `json:"p50Ms"`
	P99       float64 `json:"p99Ms"`
	Mean      float64 `json:"meanMs"`
	Longest   float64 `json:"longestMs"`
	PerSecond float64 `json:"perSecond"`
}

// figuresOf sums up at least one duration.
func figuresOf(durations []time.Duration) figures {
	sorted := slices.Sorted(slices.Values(durations))
	var sum time.Duration
	for _, d := range sorted {
		sum += d
	}
	mean := milliseconds(sum) / float64(len(sorted))
	return figures{
		P50:       milliseconds(quantile(sorted, 0.50)),
		P99:       milliseconds(quantile(sorted, 0.99)),
		Mean:      mean,
		Longest:   milliseconds(sorted[len(sorted)-1]),
		PerSecond: 1000 / mean,
	}
}

// quantile is the smallest of the sorted values that is not below that share of them.
func quantile(sorted []time.Duration, share float64) time.Duration {
	return sorted[max(0, int(math.Ceil(share*float64(len(sorted))))-1)]
}

func milliseconds(d time.Duration) float64 {
	return float64(d) / float64(time.Millisecond)
}

// split gives the whole and the bare durations of calls.
func split(calls []took) (whole, bare []time.Duration) {
	for _, c := range calls {
		whole, bare = append(whole, c.whole), append(bare, c.bare)
	}
	return whole, bare
}
