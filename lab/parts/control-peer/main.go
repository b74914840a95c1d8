// Command control-peer makes the calls of the vendor's own Go client: one JSON object a line on standard input for a
// client or a call, one a line on standard output for what it returned or how it failed.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"

	"golang.org/x/oauth2"
	"tailscale.com/client/tailscale/v2"
)

func main() {
	if err := serve(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "control-peer:", err)
		os.Exit(1)
	}
}

// request is a client to make from now on, or a call with its argument.
type request struct {
	Client   *credentials    `json:"client"`
	Call     string          `json:"call"`
	Argument json.RawMessage `json:"argument"`
}

// credentials are those of an OAuth client, of a federated identity, or an API key.
type credentials struct {
	URL          string   `json:"url"`
	ClientID     string   `json:"clientId"`
	ClientSecret string   `json:"clientSecret"`
	Scopes       []string `json:"scopes"`
	IDToken      string   `json:"idToken"`
	APIKey       string   `json:"apiKey"`
}

// response is what a call returned, or how it failed.
type response struct {
	Result any      `json:"result,omitempty"`
	Error  *failure `json:"error,omitempty"`
}

// failure names the type of an error as the vendor's client distinguishes them.
type failure struct {
	Type     string `json:"type"`
	Status   int    `json:"status,omitempty"`
	Code     string `json:"code,omitempty"`
	Message  string `json:"message"`
	NotFound bool   `json:"notFound"`
	Data     any    `json:"data,omitempty"`
}

func serve(in io.Reader, out io.Writer) error {
	requests := json.NewDecoder(bufio.NewReader(in))
	responses := json.NewEncoder(out)
	var client *tailscale.Client
	for {
		var r request
		if err := requests.Decode(&r); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if err := responses.Encode(answer(&client, r)); err != nil {
			return err
		}
	}
}

func answer(client **tailscale.Client, r request) response {
	if r.Client != nil {
		made, err := newClient(*r.Client)
		if err != nil {
			return response{Error: describe(err)}
		}
		*client = made
		return response{Result: "client made"}
	}
	call, ok := calls[r.Call]
	if !ok || *client == nil {
		return response{Error: &failure{Type: "request", Message: fmt.Sprintf("no client, or no call %q", r.Call)}}
	}
	result, err := call(context.Background(), *client, r.Argument)
	if err != nil {
		return response{Error: describe(err)}
	}
	return response{Result: result}
}

func newClient(c credentials) (*tailscale.Client, error) {
	base, err := url.Parse(c.URL)
	if err != nil {
		return nil, err
	}
	client := &tailscale.Client{BaseURL: base, APIKey: c.APIKey}
	switch {
	case c.IDToken != "":
		token := func() (string, error) { return c.IDToken, nil }
		client.Auth = &tailscale.IdentityFederation{ClientID: c.ClientID, IDTokenFunc: token}
	case c.ClientSecret != "":
		client.Auth = &tailscale.OAuth{ClientID: c.ClientID, ClientSecret: c.ClientSecret, Scopes: c.Scopes}
	}
	return client, nil
}

func describe(err error) *failure {
	var api tailscale.APIError
	if errors.As(err, &api) {
		return &failure{
			Type: "APIError", Status: api.Status, Message: api.Message,
			NotFound: tailscale.IsNotFound(err), Data: tailscale.ErrorData(err),
		}
	}
	var token *oauth2.RetrieveError
	if errors.As(err, &token) {
		return &failure{
			Type: "RetrieveError", Status: token.Response.StatusCode, Code: token.ErrorCode, Message: string(token.Body),
		}
	}
	return &failure{Type: "other", Message: err.Error()}
}
