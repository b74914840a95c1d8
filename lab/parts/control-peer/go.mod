module lab/control-peer

go 1.26.7

require (
	golang.org/x/oauth2 v0.36.0
	tailscale.com/client/tailscale/v2 v2.9.0
)

require github.com/tailscale/hujson v0.0.0-20220506213045-af5ed07155e5 // indirect
