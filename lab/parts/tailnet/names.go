package main

import (
	"fmt"
	"strings"
)

const maxLabel = 63

// freeName is the first of host, host-1, host-2... in the domain that is not taken.
func freeName(hostname, domain string, isTaken func(string) bool) string {
	label := dnsLabel(hostname)
	name := label + "." + domain
	for n := 1; isTaken(name); n++ {
		suffix := fmt.Sprintf("-%d", n)
		name = label[:min(len(label), maxLabel-len(suffix))] + suffix + "." + domain
	}
	return name
}

// dnsLabel makes one DNS label of the name that a machine gives itself.
func dnsLabel(hostname string) string {
	first, _, _ := strings.Cut(strings.ToLower(hostname), ".")
	label := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, first)
	label = strings.Trim(label[:min(len(label), maxLabel)], "-")
	if label == "" {
		return "node"
	}
	return label
}
