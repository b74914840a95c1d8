package main

import (
	"context"
	"encoding/json"

	"tailscale.com/client/tailscale/v2"
)

// call decodes its argument, makes one call, and returns what the vendor's client decoded.
type call func(context.Context, *tailscale.Client, json.RawMessage) (any, error)

// withArgument is a call whose argument has a type.
func withArgument[T any](run func(context.Context, *tailscale.Client, T) (any, error)) call {
	return func(ctx context.Context, c *tailscale.Client, raw json.RawMessage) (any, error) {
		var argument T
		if len(raw) > 0 {
			if err := json.Unmarshal(raw, &argument); err != nil {
				return nil, err
			}
		}
		return run(ctx, c, argument)
	}
}

// change is a change of a device.
type change struct {
	ID         string   `json:"id"`
	Name       string   `json:"name"`
	Tags       []string `json:"tags"`
	Authorized bool     `json:"authorized"`
	IPv4       string   `json:"ipv4"`
	Routes     []string `json:"routes"`
	NoExpiry   bool     `json:"keyExpiryDisabled"`
}

// listing is what a list of devices is narrowed by.
type listing struct {
	Fields  string              `json:"fields"`
	Filters map[string][]string `json:"filters"`
}

// identity is a credential to make.
type identity = tailscale.CreateFederatedIdentityRequest

// policy is a policy file, and the one that it is to replace.
type policy struct {
	Text string `json:"text"`
	ETag string `json:"etag"`
}

var calls = map[string]call{
	"devices.list": withArgument(func(ctx context.Context, c *tailscale.Client, l listing) (any, error) {
		options := []tailscale.ListDevicesOptions{}
		if l.Fields != "" {
			options = append(options, tailscale.WithFields(tailscale.IncludeFields(l.Fields)))
		}
		for name, values := range l.Filters {
			options = append(options, tailscale.WithFilter(name, values))
		}
		return c.Devices().List(ctx, options...)
	}),
	"devices.get": withArgument(func(ctx context.Context, c *tailscale.Client, id string) (any, error) {
		return c.Devices().GetWithAllFields(ctx, id)
	}),
	"devices.delete": withArgument(func(ctx context.Context, c *tailscale.Client, id string) (any, error) {
		return nil, c.Devices().Delete(ctx, id)
	}),
	"devices.authorize": withArgument(func(ctx context.Context, c *tailscale.Client, d change) (any, error) {
		return nil, c.Devices().SetAuthorized(ctx, d.ID, d.Authorized)
	}),
	"devices.name": withArgument(func(ctx context.Context, c *tailscale.Client, d change) (any, error) {
		return nil, c.Devices().SetName(ctx, d.ID, d.Name)
	}),
	"devices.tags": withArgument(func(ctx context.Context, c *tailscale.Client, d change) (any, error) {
		return nil, c.Devices().SetTags(ctx, d.ID, d.Tags)
	}),
	"devices.key": withArgument(func(ctx context.Context, c *tailscale.Client, d change) (any, error) {
		return nil, c.Devices().SetKey(ctx, d.ID, tailscale.DeviceKey{KeyExpiryDisabled: d.NoExpiry})
	}),
	"devices.ip": withArgument(func(ctx context.Context, c *tailscale.Client, d change) (any, error) {
		return nil, c.Devices().SetIPv4Address(ctx, d.ID, d.IPv4)
	}),
	"devices.setRoutes": withArgument(func(ctx context.Context, c *tailscale.Client, d change) (any, error) {
		return nil, c.Devices().SetSubnetRoutes(ctx, d.ID, d.Routes)
	}),
	"devices.routes": withArgument(func(ctx context.Context, c *tailscale.Client, id string) (any, error) {
		return c.Devices().SubnetRoutes(ctx, id)
	}),

	"keys.create": withArgument(func(ctx context.Context, c *tailscale.Client, k tailscale.CreateKeyRequest) (any, error) {
		return c.Keys().CreateAuthKey(ctx, k)
	}),
	"keys.createClient": withArgument(func(ctx context.Context, c *tailscale.Client, k tailscale.CreateOAuthClientRequest) (any, error) {
		return c.Keys().CreateOAuthClient(ctx, k)
	}),
	"keys.createIdentity": withArgument(func(ctx context.Context, c *tailscale.Client, k identity) (any, error) {
		return c.Keys().CreateFederatedIdentity(ctx, k)
	}),
	"keys.list": withArgument(func(ctx context.Context, c *tailscale.Client, _ any) (any, error) {
		return c.Keys().List(ctx, true)
	}),
	"keys.get": withArgument(func(ctx context.Context, c *tailscale.Client, id string) (any, error) {
		return c.Keys().Get(ctx, id)
	}),
	"keys.delete": withArgument(func(ctx context.Context, c *tailscale.Client, id string) (any, error) {
		return nil, c.Keys().Delete(ctx, id)
	}),

	"services.list": withArgument(func(ctx context.Context, c *tailscale.Client, _ any) (any, error) {
		return c.VIPServices().List(ctx)
	}),
	"services.get": withArgument(func(ctx context.Context, c *tailscale.Client, name string) (any, error) {
		return c.VIPServices().Get(ctx, name)
	}),
	"services.put": withArgument(func(ctx context.Context, c *tailscale.Client, s tailscale.VIPService) (any, error) {
		return nil, c.VIPServices().CreateOrUpdate(ctx, s)
	}),
	"services.delete": withArgument(func(ctx context.Context, c *tailscale.Client, name string) (any, error) {
		return nil, c.VIPServices().Delete(ctx, name)
	}),

	"settings.get": withArgument(func(ctx context.Context, c *tailscale.Client, _ any) (any, error) {
		return c.TailnetSettings().Get(ctx)
	}),
	"settings.update": withArgument(func(ctx context.Context, c *tailscale.Client, s tailscale.UpdateTailnetSettingsRequest) (any, error) {
		return nil, c.TailnetSettings().Update(ctx, s)
	}),

	"policy.get": withArgument(func(ctx context.Context, c *tailscale.Client, _ any) (any, error) {
		return c.PolicyFile().Raw(ctx)
	}),
	"policy.set": withArgument(func(ctx context.Context, c *tailscale.Client, p policy) (any, error) {
		return nil, c.PolicyFile().Set(ctx, p.Text, p.ETag)
	}),
}
