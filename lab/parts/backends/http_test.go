package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/net/websocket"
)

// web is an HTTP service and a client that keeps its connection.
type web struct {
	t      *testing.T
	client *http.Client
	base   string
}

func (l lab) web(t *testing.T, service string) web {
	transport := &http.Transport{TLSClientConfig: l.secure("localhost"), ForceAttemptHTTP2: service == "https"}
	t.Cleanup(transport.CloseIdleConnections)
	scheme := map[string]string{"http": "http://", "https": "https://"}[service]
	return web{t, &http.Client{Transport: transport, Timeout: timeout}, scheme + l.addresses[service]}
}

// get returns the status and the body.
func (w web) get(path string) (int, string, error) {
	res, err := w.client.Get(w.base + path)
	if err != nil {
		return 0, "", err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	return res.StatusCode, string(text), err
}

func (w web) is(want int) error {
	status, _, err := w.get("/")
	if err == nil && status != want {
		err = fmt.Errorf("status %d, want %d", status, want)
	}
	return err
}

func TestEachHTTPServiceTakesEachMode(t *testing.T) {
	for _, name := range []string{"http", "https"} {
		t.Run(name, func(t *testing.T) {
			l := startLab(t)
			w := l.web(t, name)
			took(t, "healthy", false, func() error { return w.is(200) })
			l.make(name, slowly)
			took(t, "slow", true, func() error { return w.is(200) })
			l.make(name, mode{Condition: failing})
			took(t, "failing", false, func() error { return w.is(503) })
			if n := l.state(name).OpenConnections; n != 1 {
				t.Errorf("%d connections, want one for all requests so far", n)
			}
			l.make(name, mode{Condition: dead})
			w.client.CloseIdleConnections() // the client may not have noticed the reset of its own yet
			mustFail(t, "dead", w.is(200), syscall.ECONNREFUSED)
			if n := l.state(name).OpenConnections; n != 0 {
				t.Errorf("%d connections survive death", n)
			}
			l.make(name, mode{Condition: healthy})
			took(t, "mended", false, func() error { return w.is(200) })
			if n := l.state(name).Requests; n != 4 {
				t.Errorf("%d requests counted, want 4", n)
			}
		})
	}
}

func TestARequestThatWaitsHearsOfTheChange(t *testing.T) {
	for want, m := range map[int]mode{200: {Condition: healthy}, 503: {Condition: failing}, 0: {Condition: dead}} {
		l := startLab(t)
		l.make("http", mode{Condition: slow, DelayMs: 60_000})
		got := make(chan int, 1)
		go func() {
			status, _, _ := l.web(t, "http").get("/")
			got <- status
		}()
		eventually(t, "the request is there", func() error {
			if l.state("http").Requests == 0 {
				return errors.New("it is not")
			}
			return nil
		})
		l.make("http", m)
		if status := <-got; status != want {
			t.Errorf("made %s while it waited: status %d, want %d", m.Condition, status, want)
		}
	}
}

func TestHTTPDescribesTheRequest(t *testing.T) {
	l := startLab(t, "--names", "web.example.ts.net,localhost")
	w := l.web(t, "https")
	req, _ := http.NewRequest("POST", w.base+"/some/path?q=1", strings.NewReader("body"))
	req.Host = "shop.example.com"
	req.Header.Set("X-Test", "yes")
	res, err := w.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var d description
	if err := json.NewDecoder(res.Body).Decode(&d); err != nil {
		t.Fatal(err)
	}
	if d.Backend != "test" || d.Method != "POST" || d.Path != "/some/path" || d.Query != "q=1" || d.Host != "shop.example.com" ||
		d.Protocol != "HTTP/2.0" || d.TLSName != "localhost" || d.BodyBytes != 4 || d.Headers["X-Test"][0] != "yes" || d.Remote == "" {
		t.Errorf("%+v", d)
	}
}

func TestHTTPAnswersWhatThePathAsksFor(t *testing.T) {
	w := startLab(t).web(t, "http")
	for _, c := range []struct {
		path   string
		status int
		length int
	}{
		{"/status/418", 418, 0},
		{"/status/204", 204, 0},
		{"/status/x", 400, -1},
		{"/status/99", 400, -1},
		{"/bytes/0", 200, 0},
		{"/bytes/3000000", 200, 3_000_000},
		{"/bytes/-1", 400, -1},
		{"/lines/3", 200, len("line 0\n") * 3},
	} {
		status, text, err := w.get(c.path)
		if err != nil || status != c.status || c.length >= 0 && len(text) != c.length {
			t.Errorf("%s: %d with %d bytes, %v", c.path, status, len(text), err)
		}
	}
}

func TestDownloadAndUploadStream(t *testing.T) {
	l := startLab(t)
	for _, name := range []string{"http", "https"} {
		w := l.web(t, name)
		t.Run(name+" download", func(t *testing.T) {
			res, err := w.client.Get(w.base + "/lines/2?everyMs=60000")
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			if line, err := bufio.NewReader(res.Body).ReadString('\n'); err != nil || line != "line 0\n" {
				t.Errorf("%q %v, want the first line before the second is due", line, err)
			}
		})
		t.Run(name+" both ways at once", func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), timeout)
			defer cancel()
			body, in := io.Pipe()
			defer in.Close()
			req, _ := http.NewRequestWithContext(ctx, "POST", w.base+"/echo", body)
			go io.WriteString(in, "first")
			res, err := w.client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			got := make([]byte, 5)
			for _, part := range []string{"first", "later"} {
				if part == "later" {
					go io.WriteString(in, part)
				}
				if _, err := io.ReadFull(res.Body, got); err != nil || string(got) != part {
					t.Fatalf("%q %v, want %q while the upload is open", got, err, part)
				}
			}
		})
	}
}

func TestDeathEndsADownload(t *testing.T) {
	l := startLab(t)
	w := l.web(t, "http")
	res, err := w.client.Get(w.base + "/lines/1000?everyMs=60000")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	l.make("http", mode{Condition: dead})
	if _, err := io.Copy(io.Discard, res.Body); err == nil {
		t.Error("the download ended as if it were whole")
	}
}

func TestAWebSocketSendsBackEachMessageWhole(t *testing.T) {
	l := startLab(t)
	for name, scheme := range map[string]string{"http": "ws", "https": "wss"} {
		t.Run(name, func(t *testing.T) {
			config, err := websocket.NewConfig(scheme+"://"+l.addresses[name]+"/websocket", "http://lab")
			if err != nil {
				t.Fatal(err)
			}
			config.TlsConfig = l.secure("localhost")
			ws, err := websocket.DialConfig(config)
			if err != nil {
				t.Fatal(err)
			}
			defer ws.Close()
			ws.SetDeadline(time.Now().Add(timeout))
			for _, n := range []int{0, 1, 1 << 20} {
				sent, got := bytes.Repeat([]byte{'x'}, n), []byte(nil)
				if err := errors.Join(websocket.Message.Send(ws, sent), websocket.Message.Receive(ws, &got)); err != nil || !bytes.Equal(got, sent) {
					t.Fatalf("%d bytes: %d came back, %v", n, len(got), err)
				}
			}
			if n := l.state(name).OpenRequests; n != 1 {
				t.Errorf("%d requests are open, want 1", n)
			}
			l.make(name, mode{Condition: dead})
			if err := websocket.Message.Receive(ws, new([]byte)); err == nil {
				t.Error("it survives the death of its service")
			}
			eventually(t, "no request is open", func() error {
				if n := l.state(name).OpenRequests; n != 0 {
					return fmt.Errorf("%d are", n)
				}
				return nil
			})
			l.make(name, mode{Condition: healthy})
		})
	}
}

func TestARequestIsOpenUntilItsCallerHasGone(t *testing.T) {
	l := startLab(t)
	ctx, cancel := context.WithCancel(context.Background())
	w := l.web(t, "http")
	req, _ := http.NewRequestWithContext(ctx, "GET", w.base+"/lines/1000?everyMs=60000", nil)
	res, err := w.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if n := l.state("http").OpenRequests; n != 1 {
		t.Errorf("%d requests are open, want 1", n)
	}
	cancel()
	eventually(t, "no request is open", func() error {
		if n := l.state("http").OpenRequests; n != 0 {
			return fmt.Errorf("%d are", n)
		}
		return nil
	})
}
