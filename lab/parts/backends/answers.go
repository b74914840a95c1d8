package main

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"golang.org/x/net/websocket"
)

const (
	maxBytes   = 64 << 30
	maxLines   = 1_000_000
	maxEveryMs = 60_000
)

// newAnswers is what the HTTP services answer when they are healthy.
//
//	/status/<code>             that status
//	/bytes/<n>                 n bytes, with their length
//	/lines/<n>?everyMs=<ms>    n lines, each sent at once
//	/echo                      the body, while it comes
//	/websocket                 a WebSocket that sends back each message
//	anything else              JSON that describes the request, after its body was read and counted
func newAnswers(name string) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/status/{code}", answerStatus)
	mux.HandleFunc("/bytes/{n}", answerBytes)
	mux.HandleFunc("/lines/{n}", answerLines)
	mux.HandleFunc("/echo", answerEcho)
	mux.Handle("/websocket", websocket.Server{Handler: echoMessages})
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { answerDescription(w, r, name) })
	return mux
}

// number reads a number from a request, or answers what is wrong with it and reports false.
func number(w http.ResponseWriter, name, text string, low, high int64) (int64, bool) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < low || n > high {
		fail(w, http.StatusBadRequest, fault{Field: name, Message: strconv.Quote(text), Fix: fmt.Sprintf("give %d to %d", low, high)})
		return 0, false
	}
	return n, true
}

func answerStatus(w http.ResponseWriter, r *http.Request) {
	if code, ok := number(w, "code", r.PathValue("code"), 200, 599); ok {
		w.WriteHeader(int(code))
	}
}

func answerBytes(w http.ResponseWriter, r *http.Request) {
	n, ok := number(w, "n", r.PathValue("n"), 0, maxBytes)
	if !ok {
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Length", strconv.FormatInt(n, 10))
	for block := make([]byte, 64<<10); n > 0; n -= int64(len(block)) {
		if _, err := w.Write(block[:min(n, int64(len(block)))]); err != nil {
			return
		}
	}
}

func answerLines(w http.ResponseWriter, r *http.Request) {
	n, ok := number(w, "n", r.PathValue("n"), 0, maxLines)
	if !ok {
		return
	}
	var everyMs int64
	if text := r.URL.Query().Get("everyMs"); text != "" {
		if everyMs, ok = number(w, "everyMs", text, 0, maxEveryMs); !ok {
			return
		}
	}
	w.Header().Set("Content-Type", "text/plain")
	out := http.NewResponseController(w)
	for i := range n {
		fmt.Fprintf(w, "line %d\n", i)
		if out.Flush() != nil {
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-time.After(time.Duration(everyMs) * time.Millisecond):
		}
	}
}

func answerEcho(w http.ResponseWriter, r *http.Request) {
	out := http.NewResponseController(w)
	if err := out.EnableFullDuplex(); err != nil {
		fail(w, http.StatusHTTPVersionNotSupported, fault{Field: "protocol", Message: err.Error(), Fix: "use HTTP/1.1 or HTTP/2"})
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	io.Copy(flushing{w, out}, r.Body)
}

// echoMessages sends back each message of a WebSocket, once it is there as a whole.
func echoMessages(ws *websocket.Conn) {
	for {
		var message []byte
		if websocket.Message.Receive(ws, &message) != nil || websocket.Message.Send(ws, message) != nil {
			return
		}
	}
}

// flushing sends each part at once.
type flushing struct {
	io.Writer
	out *http.ResponseController
}

func (f flushing) Write(b []byte) (int, error) {
	n, err := f.Writer.Write(b)
	if err == nil {
		err = f.out.Flush()
	}
	return n, err
}

// description is a request as the backend saw it.
type description struct {
	Backend   string              `json:"backend"`
	Method    string              `json:"method"`
	Path      string              `json:"path"`
	Query     string              `json:"query"`
	Host      string              `json:"host"`
	Protocol  string              `json:"protocol"`
	Remote    string              `json:"remote"`
	TLSName   string              `json:"tlsName,omitempty"`
	Headers   map[string][]string `json:"headers"`
	BodyBytes int64               `json:"bodyBytes"`
}

func answerDescription(w http.ResponseWriter, r *http.Request, name string) {
	n, err := io.Copy(io.Discard, r.Body)
	if err != nil {
		return
	}
	d := description{
		Backend: name, Method: r.Method, Path: r.URL.Path, Query: r.URL.RawQuery, Host: r.Host,
		Protocol: r.Proto, Remote: r.RemoteAddr, Headers: r.Header, BodyBytes: n,
	}
	if r.TLS != nil {
		d.TLSName = r.TLS.ServerName
	}
	reply(w, http.StatusOK, d)
}
