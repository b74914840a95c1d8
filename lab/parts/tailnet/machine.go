package main

import (
	"context"
	"fmt"

	"tailscale.com/types/key"
)

type machineKey struct{}

// vendorMachineKey is the type under which the vendor's server looks for the machine in a context. It is not
// exported, so it is known by name; a version that renames it answers no node, which every test notices.
const vendorMachineKey = "testcontrol.peerMachinePublicContextKey"

// machineContext is a context that knows the machine at the other end of a Noise connection,
// for this program and for the vendor's server.
type machineContext struct {
	context.Context
	machine key.MachinePublic
}

// Value answers for the machine and leaves the rest to the parent.
func (c machineContext) Value(k any) any {
	if _, isOurs := k.(machineKey); isOurs || fmt.Sprintf("%T", k) == vendorMachineKey {
		return c.machine
	}
	return c.Context.Value(k)
}

func withMachine(ctx context.Context, m key.MachinePublic) context.Context {
	return machineContext{ctx, m}
}

// machineOf is the machine that sent a request through a Noise connection.
func machineOf(ctx context.Context) key.MachinePublic {
	m, _ := ctx.Value(machineKey{}).(key.MachinePublic)
	return m
}
